"""Objects of a manifest file, and errors for those that cannot be applied."""

import io
import sys
from pathlib import Path

import pytest

from apis.crd import KINDS
from cli.manifests import BadManifest, apply, parse, read
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.world import new_world

_HEAD = "apiVersion: pingcap.com/v1alpha1\nkind: TidbCluster\n"

_REFUSED = {
    "[a]": "f, document 1: is a list, expected an object with apiVersion and kind",
    "12": "f, document 1: is a number, expected an object",
    "": "f: contains no object; write at least one document",
    "{kind: Secret}": "f, document 1: apiVersion is missing; write for example apiVersion: pingcap.com/v1alpha1",
    "{apiVersion: 'v1?a=b', kind: Secret}": 'f, document 1: apiVersion: "v1?a=b": can not be used',
    "{apiVersion: 1.2, kind: Secret}": "f, document 1: apiVersion: 1.2: can not be used",
    "{apiVersion: v1, kind: [a]}": 'f, document 1: kind: ["a"]: can not be used',
    _HEAD: "f, document 1: metadata.name is missing",
    f"{_HEAD}metadata: {{name: ''}}": "f, document 1: metadata.name is missing",
    f"{_HEAD}metadata: {{name: 17}}": "f, document 1: metadata.name: 17: can not be used",
    f"{_HEAD}metadata: {{name: ../a}}": 'f, document 1: metadata.name: "../a": can not be used',
    f"{_HEAD}metadata: {{name: a, namespace: b/c}}": 'f, document 1: metadata.namespace: "b/c": can not be used',
    f"{_HEAD}metadata: {{name: a}}": "f, document 1: spec: is required",
    "{apiVersion: v1, kind: List}": "f, document 1: items is missing; write the objects of the List",
    "{apiVersion: v1, kind: List, items: {}}": "f, document 1: items: {}: can not be used",
    "{apiVersion: v1, kind: List, items: [12]}": "f, document 1, item 1: is a number, expected an object",
    f"{_HEAD}metadata: {{name: a}}\nspec: {{tikv: {{replica: 3}}}}": "spec.tikv.replica: unknown field; did you mean",
}


@pytest.mark.parametrize("text", _REFUSED)
def test_refuses_a_document_that_is_no_object_and_names_the_field(text: str) -> None:
    with pytest.raises(BadManifest) as refused:
        parse(text.encode(), "f")
    assert str(refused.value).startswith(_REFUSED[text]) or _REFUSED[text] in str(refused.value)


def test_reports_the_mistakes_of_all_components_at_once() -> None:
    spec = """spec:
  version: v8.5.2
  pd: {baseImage: pingcap/pd, replicas: -1, requests: {storage: 1Gi}}
  tikv: {baseImage: pingcap/tikv, replicas: 1, requests: {storage: 1Gx}, affinity: {nodeAffinity: here}}
  tidb: {baseImage: pingcap/tidb, replicas: 1, maxFailoverCount: -3}
  pdms: [{name: tso, baseImage: pingcap/pd, replicas: many}]
"""
    with pytest.raises(BadManifest) as refused:
        parse(f"{_HEAD}metadata: {{name: a}}\n{spec}".encode(), "f")
    assert [
        "spec.pd.replicas: -1",
        "spec.pdms[0].replicas",
        "spec.tidb.maxFailoverCount: -3",
        "spec.tikv.affinity.nodeAffinity",
        "spec.tikv.requests.storage",
    ] == sorted(
        line.removeprefix("f, document 1: ").partition(': "')[0].partition(": must")[0]
        for line in str(refused.value).splitlines()
    )


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_names_an_unknown_field_of_each_kind(kind: str) -> None:
    text = f"{{apiVersion: pingcap.com/v1alpha1, kind: {kind}, metadata: {{name: a}}, spec: {{nonsense: 1}}}}"
    with pytest.raises(BadManifest, match=r"f, document 1: spec\.nonsense: unknown field"):
        parse(text.encode(), "f")


@pytest.mark.parametrize(
    ("spec", "mistake"),
    [
        ("kind: Backup, spec: {br: {cluster: a}, s3: {provider: aws}, cleanPolicy: Never}", "spec.cleanPolicy: "),
        ("kind: DMCluster, spec: {version: v8.5.2, master: {replicas: 3, requests: {storage: many}}}", "spec.master"),
    ],
)
def test_names_a_bad_value_of_other_kinds(spec: str, mistake: str) -> None:
    with pytest.raises(BadManifest) as refused:
        parse(f"{{apiVersion: pingcap.com/v1alpha1, metadata: {{name: a}}, {spec}}}".encode(), "f")
    assert f"f, document 1: {mistake}" in str(refused.value)


def test_accepts_objects_of_any_kind_unchanged() -> None:
    (found,) = parse(b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {1: x}}", "f")
    assert ("ConfigMap", "default", "a", {"1": "x"}) == (found.kind, found.namespace, found.name, found.body["data"])


def test_a_list_stands_for_its_items() -> None:
    text = b"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]}\n---\n"
    assert ["a", "a"] == [each.name for each in parse(text + text, "f")]


def test_a_list_of_one_kind_gives_its_kind_to_its_items() -> None:
    text = b"{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}, {kind: Secret, metadata: {name: b}}]}"
    assert [("v1", "Secret", "a"), ("v1", "Secret", "b")] == [
        (each.body["apiVersion"], each.kind, each.name) for each in parse(text, "f")
    ]
    assert ["lists"] == [
        each.name for each in parse(b"{apiVersion: a/v1, kind: TodoList, metadata: {name: lists}}", "f")
    ]


@pytest.mark.parametrize(
    ("api_version", "said"),
    [
        ("pingcap.com/v1alpha", "is not served here; did you mean pingcap.com/v1alpha1?"),
        ("pincap.com/v1alpha1", "is not served here; did you mean pingcap.com/v1alpha1?"),
        ("app/v1", "is not served here; did you mean apps/v1?"),
        ("example.org/v7beta3", "is not served here"),
        ("core.pingcap.com/v1alpha1", "belongs to TiDB Operator v2, which this operator does not manage; write a"),
    ],
)
def test_names_an_unserved_api_version_and_the_nearest_served_one(api_version: str, said: str) -> None:
    world = new_world(FakeClock(), SeededRandomness(1))
    manifests = parse(f"{{apiVersion: {api_version}, kind: Cluster, metadata: {{name: a}}}}".encode(), "f")
    with pytest.raises(BadManifest) as refused:
        apply(world.client(), manifests)
    assert str(refused.value).startswith(f"f, document 1: apiVersion {api_version} {said}")


def test_a_dash_means_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def type_in(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))

    type_in(b"{apiVersion: v1, kind: Secret, metadata: {name: a}}")
    assert ["a"] == [each.name for each in read(Path("-"))]
    type_in(b"[a]")
    with pytest.raises(BadManifest, match="standard input, document 1: is a list"):
        read(Path("-"))
