"""Volumes that are added to running components, or removed: a roll brings them, one pod after another (R26)."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

WAL: Json = {"name": "wal", "storageSize": "1Gi", "mountPath": "/wal"}
LOGS: Json = {"name": "logs", "storageSize": "1Gi", "mountPath": "/logs"}


def running(world: OperatorWorld, **spec: Json) -> OperatorWorld:
    """Three of PD and TiKV, and two of TiDB, Ready, with these additions."""
    cluster = sample("basic")
    for name, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][name] |= {"replicas": replicas} | spec.get(name, {})
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    world.forget()
    return world


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock)
    yield made
    made.stop()


def uids(world: OperatorWorld, component: str) -> dict[str, str]:
    found = (pod["metadata"] for pod in world.every(PODS) if f"-{component}-" in pod["metadata"]["name"])
    return {each["name"]: each["uid"] for each in found}


def mounted(world: OperatorWorld, component: str) -> list[set[str]]:
    """The claims that each pod of a component mounts, in the order of the pods."""
    pods = sorted(
        (each for each in world.every(PODS) if f"-{component}-" in each["metadata"]["name"]),
        key=lambda each: str(each["metadata"]["name"]),
    )
    return [
        {
            each["persistentVolumeClaim"]["claimName"]
            for each in pod["spec"]["volumes"]
            if "persistentVolumeClaim" in each
        }
        for pod in pods
    ]


def claims(world: OperatorWorld) -> set[str]:
    return {each["metadata"]["name"] for each in world.every(PERSISTENT_VOLUME_CLAIMS)}


def restarts(world: OperatorWorld, component: str, within: float = 300.0) -> list[str]:
    """Run until the change is done, and return the order of the restarts; never are two pods away at a time."""
    before, order = uids(world, component), list[str]()

    def done() -> bool:
        now = uids(world, component)
        unready = [pod for pod in before if not _is_ready(world, pod)]
        assert len(unready) <= 1, unready
        order.extend(pod for pod, uid in now.items() if uid != before[pod] and pod not in order)
        return len(order) == len(before) and world.is_ready() and world.reason() == "Done"

    world.run_until(done, within)
    return order


def _is_ready(world: OperatorWorld, name: str) -> bool:
    found = next((each for each in world.every(PODS) if each["metadata"]["name"] == name), None)
    if found is None or found["metadata"].get("deletionTimestamp"):
        return False
    return any((each["type"], each["status"]) == ("Ready", "True") for each in found["status"].get("conditions") or ())


@pytest.mark.parametrize("component", ["tikv", "pd", "tidb"])
@pytest.mark.rule("R26", "#3949")
def test_a_roll_adds_a_volume_pod_by_pod_from_the_lowest_up(world: OperatorWorld, component: str) -> None:
    running(world).change(**{component: {"storageVolumes": [WAL]}})
    order = restarts(world, component)
    assert sorted(order) == order
    new = [f"{component}-wal-{pod}" for pod in order]
    assert [True] * len(order) == [claim in each for claim, each in zip(new, mounted(world, component), strict=True)]
    assert set(new) <= claims(world)
    world.run(60.0)
    assert order == sorted(uids(world, component))


@pytest.mark.rule("R26")
def test_tiflash_gets_another_claim_and_loses_none(world: OperatorWorld) -> None:
    claim: Json = {"resources": {"requests": {"storage": "1Gi"}}}
    tiflash = {"baseImage": "pingcap/tiflash", "replicas": 2, "storageClaims": [claim]}
    cluster = sample("basic")
    cluster["spec"]["tiflash"] = tiflash
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    world.change(tiflash={"storageClaims": [claim, claim]})
    order = restarts(world, "tiflash")
    assert [{f"data0-{pod}", f"data1-{pod}"} for pod in order] == mounted(world, "tiflash")
    world.change(tiflash={"storageClaims": [claim]})
    world.run_until(lambda: "FailedUpdateTiFlashSTS" == world.reason())
    assert "lacks data1, which the pods mount, and TiFlash keeps data on each of them; restore it" in world.progressing


@pytest.mark.rule("R26", "#3949")
def test_a_roll_removes_a_volume_and_keeps_its_claims(world: OperatorWorld) -> None:
    running(world, tikv={"storageVolumes": [LOGS]})
    there = claims(world)
    world.change(tikv={"storageVolumes": None})
    assert ["basic-tikv-2", "basic-tikv-1", "basic-tikv-0"] == restarts(world, "tikv")
    assert [{f"tikv-basic-tikv-{ordinal}"} for ordinal in range(3)] == mounted(world, "tikv")
    assert there == claims(world)


@pytest.mark.rule("R26")
def test_a_renamed_volume_is_added_and_the_old_one_removed(world: OperatorWorld) -> None:
    running(world, tidb={"storageVolumes": [LOGS]})
    world.change(tidb={"storageVolumes": [LOGS | {"name": "more"}]})
    restarts(world, "tidb")
    assert [{f"tidb-more-basic-tidb-{ordinal}"} for ordinal in range(2)] == mounted(world, "tidb")


@pytest.mark.rule("R26")
def test_a_taken_back_addition_restarts_only_pods_that_have_the_volume(world: OperatorWorld) -> None:
    running(world)
    before = uids(world, "tikv")
    world.change(tikv={"storageVolumes": [WAL]})
    world.run_until(lambda: _is_new(world, "basic-tikv-0", before), 120.0)
    world.change(tikv={"storageVolumes": None})
    world.run_until_ready(within=300.0)
    world.run_until(lambda: world.reason() == "Done", 120.0)
    after = uids(world, "tikv")
    assert before["basic-tikv-2"] == after["basic-tikv-2"]
    assert [{f"tikv-basic-tikv-{ordinal}"} for ordinal in range(3)] == mounted(world, "tikv")


@pytest.mark.rule("R26")
def test_a_pod_that_is_lost_above_one_without_the_volume_returns(world: OperatorWorld) -> None:
    # Kubernetes acts on one, two, then four pods at a time, and stops after a failure
    running(world, tikv={"replicas": 4})
    before = uids(world, "tikv")
    world.change(tikv={"storageVolumes": [WAL]})
    world.run_until(lambda: _is_new(world, "basic-tikv-0", before), 120.0)
    world.admin.delete(PODS, "basic-tikv-3", NAMESPACE)
    world.run_until(lambda: _is_new(world, "basic-tikv-3", before) and _is_ready(world, "basic-tikv-3"), 120.0)
    assert before["basic-tikv-2"] == uids(world, "tikv")["basic-tikv-2"]
    world.run_until(lambda: world.is_ready() and world.reason() == "Done", 300.0)
    assert [True] * 4 == [len(each) == 2 for each in mounted(world, "tikv")]


def _is_new(world: OperatorWorld, pod: str, before: dict[str, str]) -> bool:
    return uids(world, "tikv").get(pod, before[pod]) != before[pod]


DATA: dict[str, tuple[Json, Json, str]] = {
    "a setting": (
        {"storageVolumes": [WAL], "config": {"raft-engine": {"dir": "/wal/raft"}}},
        {"storageVolumes": None},
        "raft-engine.dir = /wal/raft in the configuration is there",
    ),
    "the data directory": (
        {"storageVolumes": [WAL | {"mountPath": "/var/lib/tikv/wal"}]},
        {"storageVolumes": None},
        "it is part of the data directory /var/lib/tikv",
    ),
}


@pytest.mark.parametrize("what", DATA)
@pytest.mark.rule("R26")
def test_refuses_to_remove_a_volume_with_data(world: OperatorWorld, what: str) -> None:
    had, change, why = DATA[what]
    running(world, tikv=had)
    before = uids(world, "tikv")
    world.change(tikv=change)
    world.run_until(lambda: "FailedUpdateTiKVSTS" == world.reason())
    told = f"spec.tikv.storageVolumes lacks tikv-wal, which the pods mount, and {why}; restore it"
    assert told in world.progressing
    world.run(60.0)
    assert before == uids(world, "tikv")
    # not even after the user has deleted the StatefulSet around its pods
    world.admin.delete(STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    world.run(60.0)
    assert (before, True) == (uids(world, "tikv"), told in world.progressing)


@pytest.mark.rule("R26")
def test_removes_a_volume_that_holds_only_logs(world: OperatorWorld) -> None:
    running(world, tikv={"storageVolumes": [LOGS], "config": {"log": {"file": {"filename": "/logs/tikv.log"}}}})
    world.change(tikv={"storageVolumes": None, "config": {"log": {"file": {"filename": ""}}}})
    restarts(world, "tikv")
    assert [{f"tikv-basic-tikv-{ordinal}"} for ordinal in range(3)] == mounted(world, "tikv")
