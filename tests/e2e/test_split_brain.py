"""A leader that was paused beyond its lease wakes while the next one works, and does no harm (design.md 3.5, LE-11,
LE-22).

It is stopped at a write: its requests are held back, as by a slow network, until the next leader has finished the work.
Then both the process and its requests continue. `test_late_requests.py` has every point of a scale-in, in one process.
"""

import contextlib
import itertools
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from dataplane.http_transport import USER_AGENT
from kube.resources import STATEFUL_SETS, TIDB_CLUSTERS
from ports.transport import ByteStream, Request, Response, Transport
from sandbox.forward_proxy import ForwardProxy
from tests.e2e import operators
from tests.e2e.gate import Call, Gate, Hook
from tests.e2e.marks import IN_ONE_WORLD, ON_THE_REAL_ONE
from tests.e2e.operators import QUICK_LEASE, Operator
from tests.e2e.taking_over import leads, stands_by
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, conditions, create_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(300)]

_WORKERS = 5
_NAMES = ("first", "second")
"""Several clusters, so that several workers may have a request on its way."""
_REFUSALS = {404, 409}
_POINTS = (0.0, 0.5)
"""The point of a bring-up at which the leader is stopped, as a part of its writes."""
_DATA_PLANE = "data plane"


class _Freezer:
    """Stops an operator at one of its writes, and holds back what of it has not reached the server by then."""

    def __init__(self, operator: Operator, when: Callable[[int, Call], bool]) -> None:
        """`when` receives each write and its number, from 1."""
        self.frozen = threading.Event()
        self.held: list[Call] = []
        """Before the server saw them."""
        self.answered: list[Call] = []
        """The results of all requests that reached the gate after the stop."""
        self._operator = operator
        self._when = when
        self._numbers = itertools.count(1)
        self._thawed = threading.Event()
        self._lock = threading.Lock()
        self._late: set[int] = set()

    def __call__(self, call: Call) -> None:
        """Called before and after each write."""
        if call.resource == "events":
            return
        if call.status:
            self._note(call)
            return
        with self._lock:
            if not self.frozen.is_set() and self._when(next(self._numbers), call):
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
        """Let the process continue, and pass on its held requests."""
        self._operator.signal(signal.SIGCONT)
        self._thawed.set()


def _reads(method: str, path: str) -> bool:
    """True if a request to the data plane changes nothing; etcd is read by POST."""
    return method == "GET" or path.endswith("/v3/kv/range")


class _Door:
    """A way to PD, TiKV and TiDB for one operator, with the hook of a gate."""

    def __init__(self, transport: Transport) -> None:
        self.hook: Hook = lambda _: None
        self._transport = transport

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        path = urlsplit(request.url).path
        if _reads(request.method, path):
            return self._transport.request(request)
        call = Call(request.method, _DATA_PLANE, path, "", "")
        self.hook(call)
        answer = self._transport.request(request)
        self.hook(replace(call, status=answer.status))
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`; no test opens one."""
        return self._transport.stream(request, idle_timeout)


@contextlib.contextmanager
def _proxy(door: _Door) -> Iterator[str]:
    proxy = ForwardProxy(door)
    proxy.start()
    try:
        yield f"http://127.0.0.1:{proxy.port}"
    finally:
        proxy.stop()


@dataclass(frozen=True, slots=True)
class _Candidate:
    operator: Operator
    gate: Gate
    door: _Door

    def freeze(self, when: Callable[[int, Call], bool]) -> _Freezer:
        """Stop the leader at a write."""
        freezer = self.gate.hook = self.door.hook = _Freezer(self.operator, when)
        return freezer


class _Pair:
    """A leader and a standby, each with its own connection to the API server."""

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
        door = _Door(self._place.data_plane.transport())
        proxy = self._running.enter_context(_proxy(door))
        environment: Mapping[str, str] = dict(
            self._place.environment(gate), HELM_RELEASE=self._environment["HELM_RELEASE"], HTTP_PROXY=proxy
        )
        flags = (f"--workers={_WORKERS}", *QUICK_LEASE)
        operator = operators.running(self._place.new_log(), environment, *flags)
        return _Candidate(self._running.enter_context(operator), gate, door)

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
    """Stop the leader at a write, let the standby do the work, wake the leader; returns the leader's late writes."""
    old, new = pair.leader, pair.standby
    freezer = old.freeze(lambda number, _: number == at)
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
        repaired = [call for call in new.gate.writes if call.resource != "events"]
        assert [] == repaired, "the new leader had to repair"
        own = [count for count in counts if count.user_agent == USER_AGENT]
        assert [] == [count for count in own if not _reads(count.method, count.path_class)]
    return freezer.answered


@IN_ONE_WORLD
@pytest.mark.rule("LE-22")
def test_a_leader_that_wakes_after_its_lease_changes_nothing(place: Place, pair: _Pair) -> None:
    writes = _writes_of_a_bring_up(place, pair.leader)
    passed: list[list[Call]] = []
    for point in _POINTS:
        passed.append(_wake_beside_another(place, pair, 1 + int(writes * point)))
        pair.renew()

    counts = [len(calls) for calls in passed]
    refused = sum(call.status in _REFUSALS for calls in passed for call in calls)
    told = f"past the lease check {counts}, refused by the API server {refused}"
    print(f"{len(_POINTS)} pauses in {writes} writes; {told}")  # noqa: T201
    assert max(counts) <= _WORKERS
    # the first patch of a volume is sent unread: it says what the next leader has said, so it changes nothing either
    unread = ("patch", "persistentvolumes")
    late = [call for calls in passed for call in calls if (call.verb, call.resource) != unread]
    assert [] == [call for call in late if call.status not in _REFUSALS]


_SCALE_IN: Mapping[str, Callable[[Call], bool]] = {
    "a member leaves": lambda call: call.group == _DATA_PLANE and "/members/" in call.resource,
    "a store leaves": lambda call: call.group == _DATA_PLANE and "/store/" in call.resource,
    "a StatefulSet shrinks": lambda call: (call.verb, call.resource) == ("patch", "statefulsets"),
}


@ON_THE_REAL_ONE
@pytest.mark.rule("LE-22")
def test_a_late_removal_repeats_one_that_the_next_leader_made(place: Place, pair: _Pair, namespace: str) -> None:
    tree = sample("basic")
    for component in ("pd", "tikv"):
        tree["spec"][component]["replicas"] = 4
    create_cluster(place.client, tree, namespace)
    _settle(place, namespace, 4)
    answered: list[Call] = []
    for what, is_it in _SCALE_IN.items():
        _settle(place, namespace, 4)
        old, new = pair.leader, pair.standby
        freezer = old.freeze(lambda _, call: is_it(call))  # noqa: B023
        try:
            _ask_for(place, namespace, 3)
            assert freezer.frozen.wait(60.0), what
            _settle(place, namespace, 3)
            new.gate.await_quiet()
            new.gate.forget()
            before = _quorum(place, namespace)
        finally:
            freezer.thaw()
        assert 1 == old.operator.wait()
        eventually(lambda: len(freezer.held) == len(freezer.answered), told=lambda: freezer.held)  # noqa: B023
        new.gate.await_quiet()
        assert before == _quorum(place, namespace), what
        told = ("events", "tidbclusters/status")  # details of the status come a while later
        assert [] == [call for call in new.gate.writes if call.resource not in told], what
        assert len(freezer.answered) <= _WORKERS
        answered += freezer.answered
        pair.renew()
        _ask_for(place, namespace, 4)

    removals = [call.resource for call in answered if (call.verb, call.group) == ("DELETE", _DATA_PLANE)]
    writes = [call for call in answered if call.group != _DATA_PLANE]
    print(f"past the lease check: {len(writes)} writes, all refused; removals, both made already: {removals}")  # noqa: T201
    assert [] == [call for call in writes if call.status not in _REFUSALS]
    assert 2 == len(removals)


def _ask_for(place: Place, namespace: str, count: int) -> None:
    spec = {component: {"replicas": count} for component in ("pd", "tikv")}
    place.client.patch(TIDB_CLUSTERS, "basic", namespace, {"spec": spec})


def _settle(place: Place, namespace: str, count: int) -> None:
    """Wait until this many PDs and TiKVs exist, and no work is left."""

    def sizes() -> set[int]:
        names = ("basic-pd", "basic-tikv")
        found = [place.client.get(STATEFUL_SETS, name, namespace).decode() for name in names]
        return {tree["spec"]["replicas"] for tree in found} | {tree["status"].get("readyReplicas") for tree in found}

    def settled() -> bool:
        told = conditions(place.client, "basic", namespace)
        return {"Ready=True Ready", "Progressing=False Done"} == {
            each.partition(":")[0] for each in told
        } and sizes() == {count}

    eventually(settled, 60.0, lambda: conditions(place.client, "basic", namespace))


def _quorum(place: Place, namespace: str) -> tuple[set[str], set[str]]:
    """PD's members and the stores that are left."""
    pd = place.data_plane.pd_cluster(namespace, "basic")
    assert pd is not None
    members = {member.name for member in pd.members.values()}
    return members, {store.address for store in pd.stores.all() if store.node_state.name == "SERVING"}
