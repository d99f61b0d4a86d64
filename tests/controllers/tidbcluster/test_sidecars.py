"""A user's container that cannot start keeps a pod Pending; the server beside it serves (sandbox/kubelet)."""

import pytest

from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS
from rehearsal.operator import Operator
from tests.older_kubernetes import Older
from tests.operator_world import OperatorWorld, sample

pytestmark = pytest.mark.slow

SIDECAR: Json = {"name": "beside", "image": "example.com/beside:v1"}


def cluster(component: str, replicas: int) -> Json:
    body = sample("basic")
    body["spec"][component] |= {"replicas": replicas, "additionalContainers": [SIDECAR]}
    return body


def pending(world: OperatorWorld, component: str) -> list[str]:
    """The pods of a component whose phase is Pending though its server runs."""
    found = []
    for pod in world.every(PODS):
        states = {each["name"]: each["state"] for each in pod["status"].get("containerStatuses", ())}
        if pod["status"]["phase"] == "Pending" and "running" in states.get(component, {}):
            found.append(pod["metadata"]["name"])
    return found


@pytest.mark.rule("9.4")
def test_servers_beside_a_broken_sidecar_are_healthy_and_not_replaced(world: OperatorWorld) -> None:
    world.world.faults.image_missing(SIDECAR["image"])
    world.apply(cluster("tidb", 2))
    world.run_until(lambda: 2 == len(pending(world, "tidb")), 60.0)
    world.run(900.0)

    status = world.cluster()["status"]["tidb"]
    assert [True, True] == [member["health"] for member in status["members"].values()]
    assert {} == (status.get("failureMembers") or {})
    assert "container beside: ImagePullBackOff: example.com/beside:v1" in world.condition("Ready")["message"]


@pytest.mark.rule("5.1")
def test_a_cluster_starts_and_waits_for_pods_with_broken_sidecars(world: OperatorWorld) -> None:
    world.world.faults.image_missing(SIDECAR["image"])
    body = cluster("pd", 3)
    body["spec"]["tikv"]["additionalContainers"] = [SIDECAR]
    world.apply(body)
    world.run(120.0)

    assert "container beside: ImagePullBackOff: example.com/beside:v1" in world.condition("Ready")["message"]
    world.world.faults.heal()
    world.run_until_ready(within=120.0)


@pytest.mark.rule("8.5")
def test_a_store_beside_a_broken_sidecar_leaves_before_its_pod(world: OperatorWorld) -> None:
    world.apply(cluster("tikv", 4))
    world.run_until_ready()
    world.world.faults.image_missing("*/beside:*")
    world.admin.delete(PODS, "basic-tikv-3", "default")
    world.run_until(lambda: ["basic-tikv-3"] == pending(world, "tikv"), 60.0)
    world.change(tikv={"replicas": 3})
    world.run_until(lambda: 3 == world.replicas("tikv"), 600.0)

    assert 3 == len(world.cluster()["status"]["tikv"]["stores"])


def native(component: str, tailer: str) -> Json:
    """The sample with a native sidecar that prints a log."""
    body = sample("basic")
    body["spec"][component] |= {"separateRocksDBLog": True, tailer: {"useSidecar": True}}
    if component != "tikv":
        del body["spec"][component]["separateRocksDBLog"]
    return body


@pytest.mark.rule("TAIL-1")
def test_a_cluster_with_native_sidecars_becomes_ready_and_idle(world: OperatorWorld) -> None:
    world.apply(native("tidb", "slowLogTailer"))
    world.run_until_ready()
    pod = next(each for each in world.every(PODS) if each["metadata"]["name"] == "basic-tidb-0")
    assert ["slowlog"] == [each["name"] for each in pod["spec"]["initContainers"]]
    world.run(60)
    world.forget()
    world.run(120)
    assert [] == world.writes()


@pytest.mark.rule("TAIL-5")
@pytest.mark.parametrize("is_new", [True, False])
def test_native_sidecars_that_kubernetes_does_not_know_are_refused(world: OperatorWorld, *, is_new: bool) -> None:
    """v1.7 makes pods that never start; those that run are lost one by one."""
    world.operator = Operator(world.world, world.clock, 2, kubernetes=lambda inner: Older(inner, "28"))
    body = native("tikv", "logTailer")
    if is_new:
        world.apply(body)
        world.run(60)
    else:
        world.apply(sample("basic"))
        world.run_until_ready()
        before = {pod["metadata"]["uid"] for pod in world.every(PODS)}
        world.change(tikv=body["spec"]["tikv"])
        world.run(120)
        assert before == {pod["metadata"]["uid"] for pod in world.every(PODS)}
    expected = "spec.tikv has native sidecars (rocksdblog), which need Kubernetes 1.29, and this is 1.28"
    assert expected in str(world.cluster()["status"])
    assert ("basic-tikv" in [each["metadata"]["name"] for each in world.every(STATEFUL_SETS)]) is not is_new


def test_a_sidecar_of_the_user_is_refused_as_well(world: OperatorWorld) -> None:
    world.operator = Operator(world.world, world.clock, 2, kubernetes=lambda inner: Older(inner, "28"))
    body = sample("basic")
    body["spec"]["pd"]["initContainers"] = [{"name": "mesh", "image": "i:1", "restartPolicy": "Always"}]
    world.apply(body)
    world.run(30)
    assert "spec.pd has native sidecars (mesh)" in str(world.cluster()["status"])
