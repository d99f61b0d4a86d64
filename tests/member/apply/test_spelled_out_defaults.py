"""A default that the spec states explicitly changes no pod (lifecycle.md 7.1)."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from apis.decoding import decode, encode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member.apply import record_shape
from member.apply.last_applied import same_template
from member.components import workload, workload_names
from sandbox.apiserver.defaults import pod_spec
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.worlds import CLUSTERS
from simulate.families.homes import home_of

_OF_PODS: Json = {
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "hostNetwork": False,
}
"""The values that the API server sets on every pod, by the component's field for them."""

_CONTAINER: Json = {"name": "beside", "image": "beside:1", "ports": [{"name": "web", "containerPort": 80}]}
_SPELLED: Json = {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}


def cluster(component: str) -> Any:
    home = home_of(component)
    if home.is_of_dm:
        return decode({"metadata": {"name": "a", "namespace": "b"}, "spec": spec_of_kind(DM_CLUSTERS)}, DMCluster)
    return decode(CLUSTERS[home.cluster](), TidbCluster)


def changed(component: str, tc: Any, **fields: Any) -> Any:
    tree = encode(tc)
    return decode(tree | {"spec": home_of(component).changed(tree["spec"], fields)}, type(tc))


def _with_field_of_all(tc: Any, key: str, value: Any) -> Any:
    tree = encode(tc)
    return decode(tree | {"spec": tree["spec"] | {key: value}}, type(tc))


def template(component: str, tc: Any) -> Json:
    found: Json = workload(component).stateful_set(with_defaults(tc), "")["spec"]["template"]
    return found


def ours(component: str) -> Iterator[tuple[str, Any]]:
    """The fields of a component's section that are filled in where the user leaves them out."""
    before = cluster(component)
    home = home_of(component)
    if isinstance(encode(before)["spec"][home.part], list):
        return
    left, filled = (home.section_in(encode(each)["spec"]) for each in (before, with_defaults(before)))
    yield from ((key, value) for key, value in filled.items() if key not in left)


def ours_of_all(component: str) -> Iterator[tuple[str, Any]]:
    """The fields for all components that are filled in where the user leaves them out."""
    before = cluster(component)
    left, filled = (encode(each)["spec"] for each in (before, with_defaults(before)))
    yield from ((key, value) for key, value in filled.items() if key not in left)


_COMPONENTS = (*workload_names(), *workload_names("DMCluster"))


@pytest.mark.parametrize("component", _COMPONENTS)
@pytest.mark.rule("lifecycle-7.1")
def test_a_default_that_is_spelled_out_makes_no_other_pods(component: str) -> None:
    tc = cluster(component)
    found = {key: changed(component, tc, **{key: value}) for key, value in (*_OF_PODS.items(), *ours(component))}
    found |= {f"spec.{key}": _with_field_of_all(tc, key, value) for key, value in ours_of_all(component)}
    assert [] == [
        key for key, each in found.items() if not same_template(template(component, tc), template(component, each))
    ]


@pytest.mark.parametrize("component", _COMPONENTS)
@pytest.mark.rule("lifecycle-7.1")
def test_another_value_changes_pods(component: str) -> None:
    tc = cluster(component)
    others = {"schedulerName": "mine", "terminationGracePeriodSeconds": 31, "dnsPolicy": "Default"}
    found = {key: changed(component, tc, **{key: value}) for key, value in others.items()}
    assert [] == [
        key for key, each in found.items() if same_template(template(component, tc), template(component, each))
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (_SPELLED, True),
        ({"imagePullPolicy": "Always"}, False),
        ({"restartPolicy": "Always"}, False),
        ({"ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}]}, True),
        ({"ports": [{"name": "web", "containerPort": 80, "hostPort": 80}]}, False),
        ({"livenessProbe": {"terminationGracePeriodSeconds": 30}}, False),
    ],
)
@pytest.mark.rule("lifecycle-7.1")
def test_so_it_is_in_containers(more: Json, *, expected: bool) -> None:
    one, other = ({"spec": {"containers": [each]}} for each in (_CONTAINER, _CONTAINER | more))
    assert expected is same_template(one, other)


@pytest.mark.rule("lifecycle-7.1")
def test_the_keys_of_users_have_no_defaults() -> None:
    one, other = ({"spec": {"containers": [], "nodeSelector": each}} for each in ({}, {"protocol": "TCP"}))
    assert not same_template(one, other)


_GET: Json = {"httpGet": {"port": 80}}
_NAME: Json = {"fieldRef": {"fieldPath": "metadata.name"}}
_CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_EVERYTHING: Json = _CONTAINER | {
    "env": [{"name": "NAME", "valueFrom": _NAME}],
    "livenessProbe": _GET,
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "startupProbe": {"grpc": {"port": 80}},
    "lifecycle": {"postStart": _GET, "preStop": _GET},
    "resources": {"limits": {"cpu": "1"}},
}
_VOLUMES: Mapping[str, Json] = {
    "azureDisk": {"diskName": "disk", "diskURI": "disk"},
    "configMap": {"name": "texts"},
    "downwardAPI": {"items": [{"path": "name", **_NAME}]},
    "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}},
    "hostPath": {"path": "/data"},
    "image": {"reference": "files:1"},
    "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2026-01.com.example", "lun": 1},
    "projected": {
        "sources": [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": [{"path": "a", **_NAME}]}}]
    },
    "rbd": {"monitors": ["10.0.0.1"], "image": "disk"},
    "scaleIO": {"gateway": "https://10.0.0.1", "system": "a", "secretRef": {"name": "a"}},
    "secret": {"secretName": "keys"},
}
_USERS_OWN: Json = {
    "initContainers": [_EVERYTHING | {"name": "first", "image": "first"}],
    "containers": [_EVERYTHING],
    "volumes": [{"name": source.lower(), source: volume} for source, volume in _VOLUMES.items()] + [{"name": "empty"}],
}
"""A user's additions to a pod, with everything in which the API server sets defaults."""


def _with_additions(component: str) -> Json:
    pod = template(component, cluster(component))["spec"]
    return {"spec": pod | {key: [*pod.get(key, ()), *added] for key, added in _USERS_OWN.items()}}


def _filled(template: Json) -> Json:
    """A template as the API server stores it."""
    found: Json = msgspec.json.decode(msgspec.json.encode(template))
    pod_spec(found["spec"])
    return found


def _spelled(one: Any, filled: Any) -> Iterator[tuple[str, Any]]:
    """For each default: its path, and the tree in which only this one is spelled out."""
    if isinstance(filled, list):
        for index, value in enumerate(filled):
            yield from (
                (f"[{index}]{path}", [*one[:index], inner, *one[index + 1 :]])
                for path, inner in _spelled(one[index], value)
            )
    elif isinstance(filled, dict):
        for key, value in filled.items():
            if key not in one:
                yield f".{key}", one | {key: value}
            else:
                yield from ((f".{key}{path}", one | {key: inner}) for path, inner in _spelled(one[key], value))


def _seen_as_changes(component: str) -> list[str]:
    """The defaults that would restart pods if they were spelled out."""
    bare = _with_additions(component)
    filled = _filled(bare)
    alone = [path for path, spelled in _spelled(bare, filled) if not same_template(bare, spelled)]
    return alone if same_template(bare, filled) else [*alone, "all"]


@pytest.mark.parametrize("component", _COMPONENTS)
@pytest.mark.rule("lifecycle-7.1")
def test_no_default_of_the_api_server_makes_other_pods(component: str) -> None:
    assert [] == _seen_as_changes(component)


@pytest.mark.planted
@pytest.mark.parametrize("default", ["imagePullPolicy", "pullPolicy", "defaultMode", "scheme", "iscsiInterface"])
def test_reports_a_default_that_counts_as_a_change(monkeypatch: pytest.MonkeyPatch, default: str) -> None:
    known = record_shape._WITH_DEFAULTS
    monkeypatch.setattr(record_shape, "_WITH_DEFAULTS", known - {default})
    assert any(path.endswith(f".{default}") for path in _seen_as_changes("tikv"))


@pytest.mark.parametrize(
    "volume",
    [
        {"csi": {"driver": "example.com", "volumeAttributes": {"path": "/"}}},
        {"flexVolume": {"driver": "example.com/a", "options": {"protocol": "TCP"}}},
        {"rbd": _VOLUMES["rbd"] | {"pool": "other"}},
        {"azureDisk": _VOLUMES["azureDisk"] | {"fsType": "xfs"}},
    ],
    ids=lambda volume: next(iter(volume)),
)
@pytest.mark.rule("lifecycle-7.1")
def test_another_value_in_a_volume_changes_pods(volume: Json) -> None:
    ((source, tree),) = volume.items()
    bare = _VOLUMES.get(source) or {key: {} if isinstance(value, dict) else value for key, value in tree.items()}
    one, other = ({"spec": {"containers": [], "volumes": [{"name": "a", source: each}]}} for each in (bare, tree))
    assert not same_template(one, other)
