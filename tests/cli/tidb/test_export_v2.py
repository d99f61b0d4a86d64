"""`export-v2`: every set field of a TidbCluster is in a manifest of TiDB Operator v2, or named as having none."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from apis import toml
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from cli.failures import Failure
from cli.fields.samples import pairs
from cli.tidb.export_v2.groups import GROUPS, manifests, refused
from cli.tidb.export_v2.leftovers import without_counterpart
from kube.objects import Json
from member.fields.declared import fields
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import OperatorWorld, sample

NAME = "basic-v2"


def exported(cluster: Json) -> tuple[list[Json], dict[str, str]]:
    """The manifests, and what has no counterpart, by field."""
    tc = with_defaults(decode(cluster, TidbCluster))
    return manifests(tc, NAME), {**dict(without_counterpart(cluster)), **dict(refused(tc, NAME))}


def of_kind(objects: list[Json], kind: str) -> Json:
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def cluster(**spec: Any) -> Json:
    tree = sample("basic")
    tree["metadata"]["namespace"] = "default"
    for key, value in spec.items():
        there = tree["spec"].get(key)
        tree["spec"][key] = {**there, **value} if isinstance(there, Mapping) and isinstance(value, Mapping) else value
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("owner", sorted({path.partition(".")[0] for path in fields()}))
def test_each_field_changes_a_manifest_or_is_listed(owner: str) -> None:
    lost = []
    for path, node in fields().items():
        if path.partition(".")[0] != owner:
            continue
        pair = next(iter(pairs(path, node)))
        try:
            before, after = exported(pair.before), exported(pair.after)
        except InvalidField:
            continue
        is_listed = any(f"spec.{path.replace('[]', '')}.".startswith(f"{field}.") for field in after[1])
        if before == after and not is_listed:
            lost.append(path)
    assert "" == "\n".join(lost)


def test_a_group_has_what_runs_in_v1() -> None:
    config = '[log]\nlevel = "warn"\n[storage]\ndata-dir = "/x"\n'
    tikv = {"replicas": 3, "config": config, "requests": {"storage": "5Gi"}, "nodeSelector": {"disk": "ssd"}}
    objects, left = exported(cluster(tikv=tikv, version="v8.5.2"))
    spec = of_kind(objects, "TiKVGroup")["spec"]
    template = spec["template"]["spec"]
    assert ({"name": NAME}, 3, "v8.5.2") == (spec["cluster"], spec["replicas"], template["version"])
    assert {"log": {"level": "warn"}, "storage": {}} == toml.loads(template["config"])
    assert [{"name": "data", "mounts": [{"type": "data"}], "storage": "5Gi"}] == template["volumes"]
    assert {"disk": "ssd"} == template["overlay"]["pod"]["spec"]["nodeSelector"]
    assert "v2's operator sets it" == left["spec.tikv.config: storage.data-dir"]


def test_limits_and_requests_that_differ_are_in_the_overlay() -> None:
    alike = {"limits": {"cpu": "2"}, "requests": {"cpu": "2", "storage": "1Gi"}}
    differ = {"limits": {"memory": "2Gi"}, "requests": {"cpu": "1", "storage": "1Gi"}}
    both = [
        of_kind(exported(cluster(tikv=each))[0], "TiKVGroup")["spec"]["template"]["spec"] for each in (alike, differ)
    ]
    assert {"cpu": "2"} == both[0]["resources"]
    assert "resources" not in both[1]
    (container,) = both[1]["overlay"]["pod"]["spec"]["containers"]
    assert {"name": "tikv", "resources": {"limits": {"memory": "2Gi"}, "requests": {"cpu": "1"}}} == container


def test_names_what_has_no_counterpart_and_the_way_round() -> None:
    pump = {"replicas": 1, "requests": {"storage": "1Gi"}}
    _, left = exported(
        cluster(pump=pump, version="nightly", tlsCluster={"enabled": True}, tidb={"maxFailoverCount": 2})
    )
    assert "v2 has no Pump; replicate with TiCDC" == left["spec.pump"]
    assert "v2 replaces no lost member by itself" == left["spec.tidb.maxFailoverCount"]
    assert "not 'nightly'" in left["spec.version"]
    assert "*.basic-v2-pd-peer.default" in left["spec.tlsCluster.enabled"]


def test_names_the_annotations_that_only_v1s_operator_reads() -> None:
    tree = cluster()
    tree["metadata"]["annotations"] = {"tikv.tidb.pingcap.com/delete-slots": "[1]", "example.com/team": "a"}
    _, left = exported(tree)
    listed = {field: note for field, note in left.items() if field.startswith("metadata.")}
    assert {'metadata.annotations["tikv.tidb.pingcap.com/delete-slots"]': "v2's instances have no ordinals"} == listed


def test_the_groups_are_of_v2s_api_and_its_rules() -> None:
    objects, _ = exported(cluster())
    assert ["Cluster", "PDGroup", "TiKVGroup", "TiDBGroup"] == [each["kind"] for each in objects]
    assert {"core.pingcap.com/v1alpha1"} == {each["apiVersion"] for each in objects}
    for group in (each for each in GROUPS if each.needs_data and each.name != "tiflash"):
        volumes = of_kind(objects, group.kind)["spec"]["template"]["spec"]["volumes"]
        assert "data" in [volume["name"] for volume in volumes]


@pytest.mark.slow
def test_prints_manifests_with_the_rest_in_comments(terminal: Terminal, running: OperatorWorld) -> None:
    text = terminal.type("export-v2", "basic")
    objects = list(yaml.safe_load_all(text))
    document = terminal.document("export-v2", "basic")
    assert document["manifests"] == objects
    assert {NAME} == {each["metadata"]["name"] for each in objects}
    comments = [line for line in text.splitlines() if line.startswith("#   ")]
    assert [f"#   {each['field']}: {each['note']}" for each in document["withoutCounterpart"]] == comments
    assert terminal.type("export-v2", "basic", width=20) == text
    for name in ("basic", "x" * 41):
        with pytest.raises(Failure, match="choose"):
            terminal.type("export-v2", "basic", "--name", name)
