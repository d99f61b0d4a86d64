"""The whole operator reads the checkpoint of a log backup from the PD of its cluster, and costs nothing else (3.8)."""

from collections.abc import Iterator

import pytest

from kube.resources import BACKUPS
from ports.clock import FakeClock
from sandbox.dataplane.log_backup import LogTask
from tests.apis.backups import by_br, tree
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

TSO = 448_000_000_000_000_000


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic`, Ready, and a log backup of it that runs."""
    made = OperatorWorld(clock=clock)
    made.apply(sample("basic"))
    made.run_until_ready()
    status = {"phase": "Running", "commitTs": str(TSO)}
    body = tree("Backup", by_br(backupMode="log"), status=status, name="log", namespace=NAMESPACE)
    made.admin.create(BACKUPS, body, NAMESPACE)
    task(made).begin(TSO)
    yield made
    made.stop()


def task(world: OperatorWorld) -> LogTask:
    cluster = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert cluster is not None
    return LogTask(cluster.etcd, "log", world.clock.now)


def checkpoint(world: OperatorWorld) -> str:
    return str(world.get(BACKUPS, "log")["status"].get("logCheckpointTs") or "")


@pytest.mark.rule("3.8")
def test_the_checkpoint_comes_from_pd_and_is_written_only_when_it_changes(world: OperatorWorld) -> None:
    world.run(5)
    assert str(TSO) == checkpoint(world)
    task(world).advance(TSO + 9)
    world.run(65)
    assert str(TSO + 9) == checkpoint(world)
    world.forget()
    world.run(300)
    assert ([], []) == (world.writes(), world.reads())


@pytest.mark.rule("3.8")
def test_a_lost_pd_changes_nothing_and_is_asked_again(world: OperatorWorld) -> None:
    world.run(5)
    before = world.get(BACKUPS, "log")["status"]
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-pd-0")
    world.run(200)
    assert before == world.get(BACKUPS, "log")["status"]
    assert world.cluster()
