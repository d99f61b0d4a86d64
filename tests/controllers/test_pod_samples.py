"""One series for each pod that does not serve, with the reason."""

from collections.abc import Callable, Iterator

import pytest

from controllers.pod_samples import reason_of
from kube.objects import Json
from kube.resources import PODS
from ports.clock import FakeClock
from tests.informers.support import as_object
from tests.operator_world import NAMESPACE, OperatorWorld, sample

READY: Json = {"type": "Ready", "status": "True"}
UNREADY: Json = {"type": "Ready", "status": "False"}


def pod(*conditions: Json, containers: tuple[Json, ...] = (), going: bool = False) -> Json:
    metadata: Json = {"name": "basic-tikv-0", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"conditions": list(conditions), "containerStatuses": [{"name": "tikv"} | each for each in containers]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status}


def waiting(reason: str, **more: object) -> Json:
    return {"state": {"waiting": {"reason": reason}}, **more}


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (None, "Missing"),
        (pod(READY), ""),
        (pod(READY, going=True), "Terminating"),
        (pod(UNREADY), "NotReady"),
        (pod({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}), "Unschedulable"),
        (pod(UNREADY, {"type": "ContainersReady", "status": "True"}), "NodeSilent"),
        (pod(UNREADY, containers=(waiting("ErrImagePull"),)), "ImagePullBackOff"),
        (pod(UNREADY, containers=(waiting("CrashLoopBackOff", restartCount=3),)), "CrashLoopBackOff"),
        (pod(UNREADY, containers=(waiting("CreateContainerConfigError"),)), "CreateContainerConfigError"),
        (pod(UNREADY, containers=(waiting("AnythingElse"),)), "NotReady"),
    ],
)
def test_a_pod_that_is_not_ready_has_one_of_a_few_reasons(tree: Json | None, reason: str) -> None:
    assert reason == reason_of(as_object(tree) if tree else None)


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 3
    made.apply(cluster)
    made.run_until_ready()
    yield made
    made.stop()


def unready(world: OperatorWorld) -> dict[str, str]:
    """The reason of each pod that has a series."""
    samples = (each for family in world.operator.registry.collect() for each in family.samples)
    own = [each for each in samples if each.name == "tidb_operator_cluster_pod_unready"]
    assert {1.0} >= {each.value for each in own}
    return {each.labels["pod"]: each.labels["reason"] for each in own}


def sees(world: OperatorWorld, pod: str, reason: str) -> Callable[[], bool]:
    return lambda: reason == unready(world).get(pod)


@pytest.mark.slow
def test_a_series_begins_with_the_trouble_and_ends_with_it(world: OperatorWorld) -> None:
    assert {} == unready(world)
    world.world.faults.image_missing("*tikv*")
    world.admin.delete(PODS, "basic-tikv-0", NAMESPACE)
    world.run_until(sees(world, "basic-tikv-0", "ImagePullBackOff"))
    world.world.faults.heal()
    world.run_until_ready(within=120.0)
    world.run_until(lambda: unready(world) == {}, 60.0)


@pytest.mark.slow
def test_a_ready_pod_whose_store_leaves_has_a_series(world: OperatorWorld) -> None:
    world.change(tikv={"replicas": 4})
    world.run_until_ready(within=120.0)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    (store,) = (each for each in pd.stores.all() if each.address.startswith("basic-tikv-2."))
    world.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    pd.stores.remove(store.id, world.clock.now())
    world.run_until(sees(world, "basic-tikv-2", "StoreOffline"), 60.0)


@pytest.mark.slow
def test_a_suspended_component_has_no_series(world: OperatorWorld) -> None:
    world.change(suspendAction={"suspendStatefulSet": True})
    world.run_until(lambda: not world.every(PODS) or unready(world) == {}, 300.0)
    assert {} == unready(world)
