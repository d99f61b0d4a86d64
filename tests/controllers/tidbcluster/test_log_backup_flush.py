"""TiKV flushes a running log backup before its pod restarts, and no roll waits for that longer than three minutes."""

import sys
from collections.abc import Callable, Iterator

import pytest

from dataplane.grpc_calls import GrpcCalls
from kube.resources import PODS, TIDB_CLUSTERS
from ports.clock import FakeClock
from ports.protobuf import message
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.grpc import GrpcNetwork
from sandbox.dataplane.log_backup import LogTask
from sandbox.dataplane.pd.cluster import PdCluster
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

FLUSH = "/logbackup.LogBackup/FlushNow"
POD = "basic-tikv-0"
WITHOUT = "tidb.pingcap.com/tikv-restart-without-flush-log-backup"


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """Two TiKV, Ready; nothing is counted yet."""
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 2
    made.apply(cluster)
    made.run_until_ready()
    made.forget()
    yield made
    made.stop()


def pd_of(world: OperatorWorld) -> PdCluster:
    found = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert found is not None
    return found


def begin_log_backup(world: OperatorWorld) -> LogTask:
    """Start a log backup, as BR does."""
    world.world.faults.log_backup(f"{NAMESPACE}/basic")
    return LogTask(pd_of(world).etcd, "demo", world.clock.now)


def requested(world: OperatorWorld) -> list[str]:
    """The hosts to which a flush was requested, in order."""
    asked = (each.url for each in world.operator.dataplane.requests if each.url.endswith(FLUSH))
    return [url.partition("//")[2].partition(".")[0] for url in asked]


def told(world: OperatorWorld) -> list[str]:
    return [event["message"] for event in world.events("LogBackupNotFlushed")]


def roll(world: OperatorWorld, within: float = 120.0) -> float:
    """Restart all TiKV pods, and return the seconds that took."""
    before, begun = uids(world), world.clock.now()
    world.change(tikv={"annotations": {"a": str(begun)}})
    world.run_until(lambda: all_new(world, before) and world.is_ready() and world.reason() == "Done", within)
    return world.clock.now() - begun


def uids(world: OperatorWorld) -> dict[str, str]:
    tikv = (pod["metadata"] for pod in world.every(PODS) if "-tikv-" in pod["metadata"]["name"])
    return {each["name"]: each["uid"] for each in tikv}


def all_new(world: OperatorWorld, before: dict[str, str]) -> bool:
    now = uids(world)
    return now.keys() == before.keys() and not set(now.values()) & set(before.values())


def fault(trouble: Trouble, **fields: object) -> Fault:
    return Fault(trouble, f"{NAMESPACE}/basic-tikv-*", path=FLUSH, **fields)  # type: ignore[arg-type]  # passed on


@pytest.mark.rule("lifecycle-7.4.1")
def test_each_tikv_flushes_its_log_backup_once_before_its_pod_restarts(world: OperatorWorld) -> None:
    begin_log_backup(world)
    before = uids(world)
    world.change(tikv={"annotations": {"a": "b"}})
    world.run_until(lambda: requested(world) == ["basic-tikv-1"])
    assert (before, ["basic-tikv-1"]) == (uids(world), requested(world))
    world.run_until(lambda: all_new(world, before) and world.is_ready() and world.reason() == "Done", 120.0)
    assert ["basic-tikv-1", "basic-tikv-0"] == requested(world)
    assert [] == told(world)


@pytest.mark.rule("lifecycle-7.4.1")
def test_asks_no_tikv_for_a_flush_without_a_log_backup(world: OperatorWorld) -> None:
    roll(world)
    begin_log_backup(world).stop()
    roll(world)
    assert ([], []) == (requested(world), told(world))


@pytest.mark.rule("lifecycle-7.4.1")
def test_the_annotation_skips_the_flush_whatever_its_value(world: OperatorWorld) -> None:
    begin_log_backup(world)
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {WITHOUT: ""}}})
    roll(world)
    assert ([], []) == (requested(world), told(world))


@pytest.mark.rule("lifecycle-7.4.1")
def test_a_pod_that_a_command_restarts_flushes_first(world: OperatorWorld) -> None:
    begin_log_backup(world)
    before = uids(world)
    world.admin.patch(
        PODS, POD, NAMESPACE, {"metadata": {"annotations": {"tidb.pingcap.com/evict-leader": "delete-pod"}}}
    )
    world.run_until(lambda: uids(world).get(POD, before[POD]) != before[POD], 120.0)
    assert ([POD], []) == (requested(world), told(world))


@pytest.mark.rule("lifecycle-7.4.1")
def test_silence_delays_a_restart_by_three_minutes_and_is_reported(world: OperatorWorld) -> None:
    begin_log_backup(world)
    world.world.faults.network_fault(fault(Trouble.BLACK_HOLE))
    assert 360.0 <= roll(world, within=600.0) <= 420.0
    assert ["basic-tikv-1", "basic-tikv-0"] == requested(world)
    assert [f"pod {pod} restarts although its log backup is not flushed" for pod in ("basic-tikv-1", POD)] == [
        each.partition(":")[0] for each in sorted(told(world), reverse=True)
    ]


REFUSALS: dict[str, tuple[Fault, str]] = {
    "an error": (fault(Trouble.ANSWER, status=500), "status 2"),
    "no connection": (fault(Trouble.REFUSE), "connection refused"),
    "a lost answer": (fault(Trouble.LOSE_ANSWER), "the connection ended before the answer"),
    "half an answer": (fault(Trouble.TRUNCATE), "malformed answer"),
}


@pytest.mark.parametrize("trouble", REFUSALS)
@pytest.mark.rule("lifecycle-7.4.1")
def test_a_refused_flush_is_repeated_for_half_a_minute_and_reported(world: OperatorWorld, trouble: str) -> None:
    begin_log_backup(world)
    injected, why = REFUSALS[trouble]
    world.world.faults.network_fault(injected)
    assert 60.0 <= roll(world, within=240.0) <= 120.0
    assert 3 <= requested(world).count(POD) <= 5
    assert [True, True] == [why in each for each in told(world)]


@pytest.mark.rule("lifecycle-7.4.1")
def test_a_tikv_that_is_too_old_to_flush_restarts_at_once(world: OperatorWorld) -> None:
    begin_log_backup(world)
    world.world.faults.network_fault(fault(Trouble.ANSWER, status=404))
    assert roll(world) <= 60.0
    assert ["basic-tikv-1", POD] == requested(world)
    assert 2 == len(told(world))


@pytest.mark.rule("lifecycle-7.4.1")
def test_a_failed_task_is_named(world: OperatorWorld) -> None:
    begin_log_backup(world)
    failed = message([(1, message([(1, b"demo"), (2, 0), (3, b"no space left\x1b[2J")]))])
    world.world.faults.network_fault(fault(Trouble.ANSWER, status=200, body=failed))
    roll(world, within=240.0)
    assert [True, True] == ["the flush of task demo failed: no space left" in each for each in told(world)]
    assert [] == [each for each in told(world) if "\x1b" in each]


@pytest.mark.rule("lifecycle-7.4.1")
def test_without_grpcio_a_pod_restarts_at_once_and_the_event_names_the_package(
    world: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.setattr(GrpcNetwork, "begin", lambda _, call: GrpcCalls().begin(call))
    begin_log_backup(world)
    assert roll(world) <= 60.0
    assert [True, True] == ["the Python package grpcio is not installed" in each for each in told(world)]


def test_a_flush_that_succeeds_at_the_second_attempt_is_no_news(world: OperatorWorld) -> None:
    begin_log_backup(world)
    heal: list[Callable[[], None]] = [world.world.faults.network_fault(fault(Trouble.REFUSE))]
    world.change(tikv={"annotations": {"a": "b"}})
    world.run_until(lambda: requested(world) == ["basic-tikv-1"])
    heal[0]()
    world.run_until(lambda: requested(world) == ["basic-tikv-1"] * 2 + [POD], 120.0)
    assert [] == told(world)


def test_silence_of_pds_keys_leaves_the_question_to_tikv(world: OperatorWorld) -> None:
    begin_log_backup(world)
    world.world.faults.etcd_down(f"{NAMESPACE}/basic")
    roll(world, within=180.0)
    assert (["basic-tikv-1", POD], []) == (requested(world), told(world))


def test_no_worker_waits_for_a_silent_flush(world: OperatorWorld) -> None:
    begin_log_backup(world)
    world.world.faults.network_fault(fault(Trouble.BLACK_HOLE))
    world.change(tikv={"annotations": {"a": "b"}})
    world.run_until(lambda: requested(world) == ["basic-tikv-1"])
    at, begun = world.clock.now(), len(world.operator.dataplane.requests)
    world.run(20.0)
    assert 20.5 >= world.clock.now() - at
    assert len(world.operator.dataplane.requests) > begun
    assert world.reason() == "FlushingLogBackup"
    assert "waiting until pod basic-tikv-1 has flushed its log backup, at most until " in world.progressing
