"""A leader that was paused beyond its lease wakes beside the next one and does no harm (design.md 3.5, LE-11, LE-22).

It is stopped at a write: what it had sent by then is held back, as a slow network would, until the next leader has
finished the work. Then both go on, the process and what was held back.
"""

import contextlib
import itertools
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from dataplane.http_transport import USER_AGENT
from tests.e2e import operators
from tests.e2e.gate import Call, Gate
from tests.e2e.operators import QUICK_LEASE, Operator
from tests.e2e.taking_over import leads, stands_by
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = pytest.mark.slow

_WORKERS = 5
_NAMES = ("first", "second")
"""Several clusters, so that several workers may have a request on its way."""
_REFUSALS = {404, 409}
_POINTS = {"sandbox": 8, "real": 3}


class _Freezer:
    """Stops an operator at one of its writes, and holds back what of it has not reached the server by then."""

    def __init__(self, operator: Operator, at: int) -> None:
        self.frozen = threading.Event()
        self.held: list[Call] = []
        """Before the server saw them."""
        self.answered: list[Call] = []
        """What became of all that reached the gate after the stop."""
        self._operator = operator
        self._at = at
        self._numbers = itertools.count(1)
        self._thawed = threading.Event()
        self._lock = threading.Lock()
        self._late: set[int] = set()

    def __call__(self, call: Call) -> None:
        """Told of each write, before and after."""
        if call.resource == "events":
            return
        if call.status:
            self._note(call)
            return
        with self._lock:
            if next(self._numbers) == self._at:
                self._operator.signal(signal.SIGSTOP)
                self.frozen.set()
            if not self.frozen.is_set():
                return
            self._late.add(threading.get_ident())
            self.held.append(call)
        self._thawed.wait(60.0)

    def _note(self, call: Call) -> None:
        with self._lock:
            if threading.get_ident() in self._late:
                self._late.discard(threading.get_ident())
                self.answered.append(call)

    def thaw(self) -> None:
        """Let the process run, and pass on what was held back."""
        self._operator.signal(signal.SIGCONT)
        self._thawed.set()


@dataclass(frozen=True, slots=True)
class _Candidate:
    operator: Operator
    gate: Gate


class _Pair:
    """A leader and a standby, each with a way to the API server of its own."""

    def __init__(self, place: Place, running: contextlib.ExitStack) -> None:
        self._place = place
        self._running = running
        self._environment = place.environment()
        self.leader = self._start()
        eventually(lambda: leads(self.leader.operator), told=lambda: self.leader.operator.said[-3000:])
        self.standby = self._start()
        self._await_standby()

    def _start(self) -> _Candidate:
        gate = self._running.enter_context(self._place.gate())
        environment: Mapping[str, str] = dict(
            self._place.environment(gate), HELM_RELEASE=self._environment["HELM_RELEASE"]
        )
        flags = (f"--workers={_WORKERS}", *QUICK_LEASE)
        operator = operators.running(self._place.new_log(), environment, *flags)
        return _Candidate(self._running.enter_context(operator), gate)

    def renew(self) -> None:
        """The leader is gone and the standby leads: have another one stand by."""
        self.leader, self.standby = self.standby, self._start()
        self._await_standby()

    def _await_standby(self) -> None:
        eventually(lambda: stands_by(self.standby.operator), told=lambda: self.standby.operator.said[-3000:])


@pytest.fixture
def pair(place: Place) -> Iterator[_Pair]:
    with contextlib.ExitStack() as running:
        yield _Pair(place, running)


def _create(place: Place, namespace: str) -> None:
    for name in _NAMES:
        tree = sample("basic")
        tree["metadata"]["name"] = name
        create_cluster(place.client, tree, namespace)


def _writes_of_a_bring_up(place: Place, leader: _Candidate) -> int:
    with place.namespace() as namespace:
        _create(place, namespace)
        for name in _NAMES:
            await_ready(place, leader.operator, name, namespace)
        leader.gate.await_quiet()
    return len([call for call in leader.gate.writes if call.resource != "events"])


def _wake_beside_another(place: Place, pair: _Pair, at: int) -> list[Call]:
    """Stop the leader at a write, let the standby do the work, wake it; what it then still wrote."""
    old, new = pair.leader, pair.standby
    freezer = old.gate.hook = _Freezer(old.operator, at)
    with place.namespace() as namespace:
        _create(place, namespace)
        assert freezer.frozen.wait(30.0), f"there was no write {at}"
        try:
            for name in _NAMES:
                await_ready(place, new.operator, name, namespace)
            new.gate.await_quiet()
            new.gate.forget()
            place.data_plane.network.reset_counts()
        finally:
            freezer.thaw()
        assert 1 == old.operator.wait()
        eventually(lambda: len(freezer.held) == len(freezer.answered), told=lambda: freezer.held)
        new.gate.await_quiet()
        counts = place.data_plane.network.counts()

        assert old.operator.has_said(event="leader election lost")
        assert [] == [call for call in new.gate.writes if call.resource != "events"], "the new leader had to repair"
        assert {"GET"} >= {count.method for count in counts if count.user_agent == USER_AGENT}
    return freezer.answered


def test_LE_22_a_leader_that_wakes_after_its_lease_changes_nothing(
    place: Place, pair: _Pair, request: pytest.FixtureRequest
) -> None:
    points, writes = _POINTS[place.name], _writes_of_a_bring_up(place, pair.leader)
    passed: list[list[Call]] = []
    for step in range(points):
        passed.append(_wake_beside_another(place, pair, 1 + writes * step // points))
        pair.renew()

    counts = [len(calls) for calls in passed]
    refused = sum(call.status in _REFUSALS for calls in passed for call in calls)
    print(f"{points} pauses in {writes} writes; past the lease check {counts}, refused by the API server {refused}")  # noqa: T201
    assert max(counts) <= _WORKERS
    assert [] == [call for calls in passed for call in calls if call.status not in _REFUSALS]
