"""Foreign edits of a cluster's objects are undone, and no pod restarts for it (reliability.md R27)."""

from typing import Any

import pytest

from apis.pod_commands import REPLACE_VOLUME
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    TIDB_CLUSTERS,
    Resource,
)
from tests.operator_world import NAMESPACE, OperatorWorld

POD = "basic-tikv-0"


def change(world: OperatorWorld, resource: Resource, name: str, patch: Json, **how: Any) -> None:
    world.admin.patch(resource, name, NAMESPACE, patch, **how)
    world.run(35.0)


def uids(world: OperatorWorld) -> set[str]:
    return {pod["metadata"]["uid"] for pod in world.every(PODS) if "discovery" not in pod["metadata"]["name"]}


def ours(world: OperatorWorld) -> dict[str, str]:
    """The labels of the pod, except node labels and its ordinal, and its annotations."""
    meta = world.get(PODS, POD)["metadata"]
    others = ("topology.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/")
    labels: dict[str, str] = {key: text for key, text in meta["labels"].items() if not key.startswith(others)}
    marks: dict[str, str] = meta["annotations"]
    return labels | marks


@pytest.mark.slow
@pytest.mark.parametrize(
    "meta",
    [
        {"labels": None},
        {"labels": {"app.kubernetes.io/managed-by": None}},
        {"labels": {"app.kubernetes.io/instance": "another"}},
        {"labels": {"app.kubernetes.io/component": "tidb"}},
        {"labels": {"controller-revision-hash": None}},
        {"labels": {"tidb.pingcap.com/store-id": "77"}},
        {"annotations": {"prometheus.io/port": "1"}},
        {"annotations": None},
    ],
    ids=str,
)
@pytest.mark.rule("R27")
def test_restores_labels_and_annotations_of_pods_without_a_restart(meta: Json, basic: OperatorWorld) -> None:
    before, pods = ours(basic), uids(basic)
    change(basic, PODS, POD, {"metadata": meta})
    assert before == ours(basic)
    assert pods == uids(basic)
    assert basic.is_ready()


@pytest.mark.parametrize("key", ["app.kubernetes.io/component", "more"])
@pytest.mark.rule("R27")
def test_restores_a_service_selector_as_a_whole(key: str, basic: OperatorWorld) -> None:
    before = basic.get(SERVICES, "basic-pd")["spec"]["selector"]
    change(basic, SERVICES, "basic-pd", {"spec": {"selector": {key: "other"}}})
    assert before == basic.get(SERVICES, "basic-pd")["spec"]["selector"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "patch",
    [
        {"data": {"config-file": "a = 1"}},
        {"data": {"startup-script": "exit 1"}},
        {"data": {"more": "text"}},
        {"data": None},
        {"metadata": {"annotations": None}},
    ],
    ids=str,
)
@pytest.mark.rule("R27")
def test_restores_a_config_map_without_a_restart(patch: Json, basic: OperatorWorld) -> None:
    (name,) = (each["metadata"]["name"] for each in basic.every(CONFIG_MAPS) if "tikv" in each["metadata"]["name"])
    before, pods = basic.get(CONFIG_MAPS, name), uids(basic)
    change(basic, CONFIG_MAPS, name, patch)
    after = basic.get(CONFIG_MAPS, name)
    assert before["data"] == after["data"]
    assert before["metadata"]["annotations"] == after["metadata"]["annotations"]
    assert pods == uids(basic)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [{"strategy": None}, {"template": {"metadata": {"labels": {"more": "label"}}}}, {"replicas": 3}],
    ids=["strategy", "label", "replicas"],
)
@pytest.mark.rule("R27")
def test_restores_discovery(spec: Json, basic: OperatorWorld) -> None:
    before = basic.get(DEPLOYMENTS, "basic-discovery")["spec"]
    change(basic, DEPLOYMENTS, "basic-discovery", {"spec": spec})
    assert before == basic.get(DEPLOYMENTS, "basic-discovery")["spec"]


@pytest.mark.slow
@pytest.mark.parametrize("time", ["lastTransitionTime", "lastUpdateTime"])
@pytest.mark.rule("R27")
def test_adds_the_missing_time_of_a_condition(time: str, basic: OperatorWorld) -> None:
    edited = [{**each, time: None} for each in basic.cluster()["status"]["conditions"]]
    change(basic, TIDB_CLUSTERS, "basic", {"status": {"conditions": edited}}, subresource="status")
    assert all(each[time].endswith("Z") for each in basic.cluster()["status"]["conditions"])


@pytest.mark.rule("R27")
def test_keeps_a_pod_whose_volume_was_deleted_and_names_the_way_out(basic: OperatorWorld) -> None:
    pods = uids(basic)
    basic.admin.delete(PERSISTENT_VOLUME_CLAIMS, f"tikv-{POD}", NAMESPACE)
    basic.change(tikv={"version": "v8.5.3"})
    basic.run(60.0)
    assert pods == uids(basic)
    assert "VolumeBeingDeleted" == basic.reason()
    assert f"annotate the pod with {REPLACE_VOLUME}=true" in basic.condition("Progressing")["message"]
