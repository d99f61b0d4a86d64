"""The process crashes after any write, an answer is lost, a new process begins with old caches: the cluster still
reaches its spec (F1-F6). Some of the many writes are tested here, all of them by `make simulate` (workloads
`dm-bring-up`, `dm-upgrade-in`)."""

from collections.abc import Callable

import pytest

from kube.resources import PERSISTENT_VOLUME_CLAIMS
from tests.controllers.dmcluster.dm_world import NAME, AtWrite, DMWorld
from tests.operator_world import sample

_BRING_UP = range(1, 34, 8)
_CHANGE = range(1, 26, 6)
"""Each so manieth write."""
FAULTS = pytest.mark.parametrize("fault", ["crash", "lost answer", "crash, then old caches"])


def strike(world: DMWorld, number: int, fault: str) -> Callable[[], None]:
    """Cause a fault at a write; returns the function that starts the next process."""
    world.replace_operator(lambda transport: AtWrite(transport, number, dies=fault != "lost answer"))

    def restart() -> None:
        version = world.world.server.storage.version
        world.replace_operator(lambda transport: transport, at=max(version - 12, 1) if "old" in fault else None)

    return restart


def is_settled(world: DMWorld, masters: int, workers: int) -> bool:
    if not (world.is_ready(NAME) and world.reason(NAME) == "Done" and world.members()):
        return False
    return (
        (masters, workers)
        == (world.size("dm-master"), world.size("dm-worker"))
        == (
            len(world.masters.members),
            len(world.workers()),
        )
    )


@pytest.mark.slow
@FAULTS
@pytest.mark.parametrize("number", _BRING_UP)
@pytest.mark.rule("F1", "F4", "F45")
def test_a_bring_up_survives_a_fault_at_any_write(world: DMWorld, number: int, fault: str) -> None:
    world.apply(sample("dm"))
    restart = strike(world, number, fault)
    world.run_through(lambda: is_settled(world, 3, 2), restart)

    clusters = {id(each.cluster) for each in world.master_processes()}
    assert 1 == len(clusters)
    assert 5 == len(world.every(PERSISTENT_VOLUME_CLAIMS))


@pytest.mark.slow
@FAULTS
@pytest.mark.parametrize("number", _CHANGE)
@pytest.mark.rule("F1", "F45")
def test_a_scale_in_with_an_upgrade_survives_it_at_any_write(dm: DMWorld, number: int, fault: str) -> None:
    source = dm.create_source("orders")
    dm.lead(2)
    restart = strike(dm, number, fault)
    dm.set(version="v8.5.3", master={"replicas": 1}, worker={"replicas": 1})
    had_quorum: list[bool] = []

    def is_done() -> bool:
        members = dm.members()
        had_quorum.append(len(members) < 2 or 2 * sum(each.healthy for each in members) > len(members))
        return is_settled(dm, 1, 1) and all(each.version == "8.5.3" for each in members)

    dm.run_through(is_done, restart, 240.0)
    assert all(had_quorum)
    assert ["orders"] == [each.source for each in dm.workers()], source
    marked = [
        each["metadata"]["name"]
        for each in dm.every(PERSISTENT_VOLUME_CLAIMS)
        if "tidb.pingcap.com/pvc-defer-deleting" in each["metadata"].get("annotations", {})
    ]
    masters = [f"dm-master-{NAME}-dm-master-{ordinal}" for ordinal in (1, 2)]
    assert [*masters, f"dm-worker-{NAME}-dm-worker-1"] == sorted(marked)
