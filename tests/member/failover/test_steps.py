"""The decisions of a failover, without a world around them (lifecycle.md 9)."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import msgspec
import pytest

from apis.component_statuses import PDFailureMember, TiKVStatus
from apis.shared import TiKVStore
from dataplane.pd import DISCONNECTED, DOWN, TOMBSTONE, UP, Health
from kube.objects import Json
from member.evidence import may_remove
from member.failover import node_failure
from member.failover.node_failure import host_failure
from member.failover.quorum import (
    DropRecord,
    LimitReached,
    Nothing,
    Postpone,
    QuorumLost,
    RecordFailure,
    Recover,
    Replace,
    Situation,
    Step,
    SubstituteLost,
    Wait,
    next_step,
)
from member.failover.steps import still_waiting, to_record
from member.failover.witnesses import Failing, PodState, is_lost
from member.memory import LONGEST_GAP, FailureTimers
from member.observed.nodes import Node, NodeState
from member.observed.pod import Pod
from member.outcome import Done
from member.stores.failover import down_stores
from ports.clock import FakeClock
from tests.kube.fakes import FakeApi
from tests.member.reconciling import context

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERIOD = 300.0


@pytest.mark.rule("lifecycle-9")
def test_a_new_loss_is_not_reported_but_checked_again_at_its_deadline() -> None:
    lost = [Failing("demo-tikv-0", "1", NOW, 10.0), Failing("demo-tikv-1", "4", NOW, 5.0)]
    assert Done(retry_after=20.0) == still_waiting(context(FakeApi()), "tikv", "TiKVStoreDown", lost, PERIOD)


# R18: the matrix of witnesses

_LOST = {
    (DOWN, PodState.READY, NodeState.NOT_READY),
    *product([DOWN], [PodState.NOT_READY, PodState.UNKNOWN, PodState.ABSENT], NodeState),
}


@pytest.mark.parametrize(
    ("state", "pod", "node"), list(product([UP, DISCONNECTED, DOWN, TOMBSTONE], PodState, NodeState)), ids=str
)
@pytest.mark.rule("R18")
def test_a_store_is_lost_when_pd_and_kubernetes_both_say_so(state: str, pod: PodState, node: NodeState) -> None:
    store = TiKVStore(id="1", pod_name="demo-tikv-0", ip="", leader_count=0, state=state)
    pd_says_so = bool(down_stores(TiKVStatus(stores={"1": store})))
    assert ((state, pod, node) in _LOST) is is_lost(pd_says_so, pod, node)


# F44, I22: time counts while the process observes


@pytest.mark.rule("F44")
def test_only_time_observed_without_a_gap_counts() -> None:
    clock, failure_timers = FakeClock(), FailureTimers()

    def lasted(*keys: str) -> list[float]:
        return [each.seconds for each in failure_timers.update("pd", keys, clock).values()]

    assert [0.0] == lasted("a")
    clock.step(100.0)
    assert [100.0, 0.0] == lasted("a", "b")
    clock.step(100.0)
    assert [100.0] == lasted("b")
    assert [0.0, 100.0] == lasted("a", "b"), "a was well in between"


@pytest.mark.rule("F44")
def test_time_without_observation_does_not_count() -> None:
    clock, failure_timers = FakeClock(), FailureTimers()
    failure_timers.update("pd", ["a"], clock)
    clock.step(LONGEST_GAP + 1)
    seen = failure_timers.update("pd", ["a"], clock)["a"]
    assert (0.0, clock.wall()) == (seen.seconds, seen.since)


@pytest.mark.rule("F44")
def test_an_unobserved_member_restarts_its_period() -> None:
    clock, failure_timers = FakeClock(), FailureTimers()
    failure_timers.update("pd", ["a"], clock)
    clock.step(60.0)
    failure_timers.reset("pd")
    assert 0.0 == failure_timers.update("pd", ["a"], clock)["a"].seconds


# I21, I22, I25: caps


def lost(ordinal: int, lasted: float = PERIOD) -> Failing:
    return Failing(str(ordinal), f"demo-pd-{ordinal}", NOW, lasted)


@pytest.mark.parametrize(
    ("lasting", "records", "limit", "expected"),
    [
        ([PERIOD - 1], 0, 3, []),
        ([PERIOD], 0, 3, [0]),
        ([PERIOD, 10.0, PERIOD], 0, 3, [0, 2]),
        ([PERIOD, PERIOD, PERIOD], 1, 3, [0, 1]),
        ([PERIOD], 3, 3, []),
        ([PERIOD], 4, 3, []),
        ([PERIOD], 0, 0, []),
    ],
)
@pytest.mark.rule("I21")
def test_as_many_as_the_limit_allows_are_recorded(
    lasting: list[float], records: int, limit: int, expected: list[int]
) -> None:
    failing = [lost(ordinal, seconds) for ordinal, seconds in enumerate(lasting)]
    assert [failing[index] for index in expected] == list(to_record(failing, records, limit, PERIOD))


# PD


def situation(**changes: object) -> Situation[PDFailureMember]:
    """Three members, one of them lost for the whole period."""
    plain: Situation[PDFailureMember] = Situation(
        lost=[lost(2)],
        failing=[lost(2)],
        recorded=(),
        open_record=None,
        open_record_is_over=False,
        all_healthy=False,
        enough_serve=True,
        has_majority=True,
        lost_substitutes=[],
        awaited="",
        limit=3,
        period=PERIOD,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


OPEN = PDFailureMember(pod_name="demo-pd-2", member_id="2")
OPENED = {"recorded": ["demo-pd-2"], "open_record": OPEN, "failing": []}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, RecordFailure(lost(2))),
        ({"failing": []}, Nothing()),
        ({"failing": [lost(2, PERIOD - 1)]}, Wait()),
        ({"failing": [], "lost_substitutes": [lost(3)]}, SubstituteLost(lost(3))),
        ({"failing": [], "lost_substitutes": [lost(3, PERIOD - 1)]}, Nothing()),
        ({"lost_substitutes": [lost(3)]}, RecordFailure(lost(2))),
        ({"failing": [lost(1, 10.0), lost(2)]}, RecordFailure(lost(2))),
        ({"limit": 0}, Nothing()),
        ({"recorded": ["demo-pd-0", "demo-pd-1", "demo-pd-3"]}, LimitReached(lost(2))),
        ({"recorded": ["demo-pd-1"], "enough_serve": False}, RecordFailure(lost(2))),
        (
            {"recorded": ["demo-pd-1"], "enough_serve": False, "awaited": "pd-3 runs"},
            Postpone(lost(2), "pd-3 runs"),
        ),
        ({"recorded": ["demo-pd-2"], "awaited": "pd-3 runs", "limit": 1}, RecordFailure(lost(2))),
        ({"has_majority": False}, QuorumLost()),
        ({"has_majority": False, "limit": 0}, QuorumLost()),
        (OPENED, Replace(OPEN)),
        (OPENED | {"open_record_is_over": True}, DropRecord(OPEN)),
        (OPENED | {"has_majority": False}, QuorumLost()),
        (OPENED | {"limit": 0}, Nothing()),
        (OPENED | {"all_healthy": True}, Recover()),
        ({"recorded": ["demo-pd-1", "demo-pd-2"], "all_healthy": True, "failing": [], "limit": 0}, Recover()),
        ({"all_healthy": True, "failing": []}, Nothing()),
    ],
    ids=str,
)
@pytest.mark.rule("lifecycle-9.2")
def test_the_next_step_of_a_failover_of_pd(changes: Json, expected: Step[PDFailureMember]) -> None:
    assert expected == next_step(situation(**changes))


@pytest.mark.parametrize(
    ("healths", "expected"),
    [
        ([True, True, False], True),
        ([True, False, False], False),
        ([True, True, True], False),
        ([True, True, None], False),
        ([True, False], False),
        ([False], False),
        ([True, True, True, False, False], True),
        ([True, True, False, False], False),
    ],
    ids=["3", "no majority", "it is back", "it is gone", "1 of 2", "alone", "5, 2 lost", "4, 2 lost"],
)
@pytest.mark.rule("I24")
def test_a_member_is_removed_when_a_majority_is_healthy_without_it(healths: list[bool | None], expected: bool) -> None:
    """The last one is the one to remove; None: PD does not list it."""
    answer = [Health(f"pd-{id_}", id_, (), healthy) for id_, healthy in enumerate(healths) if healthy is not None]
    assert expected is may_remove(answer, len(healths) - 1)


# 9.5

_UNKNOWN, _PENDING = {"phase": "Unknown"}, {"phase": "Pending"}
_RUNNING = {"phase": "Running", "containerStatuses": [{"name": "tikv", "state": {"running": {}}}]}
_WITHOUT_SIDECAR = _RUNNING | _PENDING
"""Its phase is Pending as long as one of its containers has not started."""
_READY = {"conditions": [{"type": "Ready", "status": "True"}]}
_RO_DISK = {"conditions": [*_READY["conditions"], {"type": "RODiskFound", "status": "True"}]}


@pytest.mark.parametrize(
    ("pod", "node", "lasted", "expected"),
    [
        (_RUNNING, {}, 0.0, node_failure.NODE_FAILURE),
        (_RUNNING, _READY, 0.0, ""),
        (_RUNNING, None, 0.0, ""),
        (_WITHOUT_SIDECAR, {}, 0.0, node_failure.NODE_FAILURE),
        (_UNKNOWN, None, 0.0, node_failure.NODE_FAILURE),
        (_PENDING, {}, 0.0, ""),
        (_RUNNING | _READY, _RO_DISK, 0.0, node_failure.RO_DISK_FOUND),
        (_RUNNING | _READY, _READY, 0.0, ""),
        (_PENDING, None, 86401.0, node_failure.STORE_DOWN_TIME_EXCEEDED),
    ],
)
@pytest.mark.rule("lifecycle-9.5")
def test_when_a_host_counts_as_down(pod: Json, node: Json | None, lasted: float, expected: str) -> None:
    seen = msgspec.convert({"spec": {}, "status": pod}, Pod)
    host = None if node is None else msgspec.convert({"status": node}, Node)
    assert expected == host_failure("tikv", seen, host, lasted, 86400.0)


@pytest.mark.rule("lifecycle-9.5")
def test_a_hard_recovery_period_of_0_is_none() -> None:
    assert "" == host_failure("tikv", msgspec.convert({"spec": {}, "status": _PENDING}, Pod), None, 1e9, 0.0)
