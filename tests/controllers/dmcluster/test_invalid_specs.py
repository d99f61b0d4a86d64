"""A DMCluster with an invalid spec reports what runs, and names the field (lifecycle.md 2.2)."""

import pytest

from kube.resources import PODS, STATEFUL_SETS
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE, sample

FIELD = "spec.master.storageSize"


def ready(world: DMWorld) -> tuple[str, bool]:
    """The status of Ready, and True if its message names the field."""
    condition = world.condition("Ready", NAME)
    return condition.get("status", ""), FIELD in condition.get("message", "")


def test_a_cluster_that_was_never_valid_is_not_ready(world: DMWorld) -> None:
    cluster = sample("dm")
    cluster["spec"]["master"]["storageSize"] = "many"
    world.apply(cluster)
    world.run_until(lambda: ready(world) == ("False", True), within=10.0)
    assert [] == world.every(STATEFUL_SETS)


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "new process"])
def test_without_pods_it_is_not_ready_until_they_return(dm: DMWorld, restarted: bool) -> None:
    dm.set(master={"storageSize": "many"})
    dm.run_until(lambda: ready(dm) == ("True", True), within=10.0)
    if restarted:
        dm.restart()
    for pod in dm.every(PODS):
        dm.admin.delete(PODS, pod["metadata"]["name"], NAMESPACE)
    dm.run_until(lambda: ready(dm) == ("False", True), within=10.0)
    dm.run_until(lambda: ready(dm) == ("True", True), within=120.0)


@pytest.mark.slow
def test_a_new_process_reports_that_nothing_serves_without_workloads(dm: DMWorld) -> None:
    dm.set(master={"storageSize": "many"})
    dm.run_until(lambda: ready(dm) == ("True", True), within=10.0)
    for each in dm.every(STATEFUL_SETS):
        dm.admin.delete(STATEFUL_SETS, each["metadata"]["name"], NAMESPACE)
    dm.restart()
    dm.run_until(lambda: ready(dm) == ("False", True), within=10.0)
    dm.run(60.0)
    assert [0, 0] == [dm.status(part)["statefulSet"]["readyReplicas"] for part in ("master", "worker")]
