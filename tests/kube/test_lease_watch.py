"""A standby learns of a freed Lease through a watch, or by polling if it cannot watch (LE-13, LE-14)."""

import queue
import threading
from collections.abc import Iterator, Mapping

import msgspec
import pytest

from kube.client import Client
from kube.lease_watch import LeaseWatch
from kube.objects import Json
from ports.clock import FakeClock
from ports.stopping import Stop
from ports.transport import ByteStream, ConnectionLost, ConnectionRefused, Request, Response, TransportError
from tests.kube.fakes import Answer, FakeApi, ScriptedTransport, answer, status, step_until
from tests.kube.test_leader_election import PATH, Candidate, lease, spec_of

_REFUSED = ConnectionRefused("GET", PATH, "nobody listens")


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


def _event(type: str, holder: str = "") -> bytes:  # noqa: A002
    return msgspec.json.encode({"type": type, "object": lease(holder)}) + b"\n"


def _watch(transport: ScriptedTransport, clock: FakeClock) -> LeaseWatch:
    return LeaseWatch(Client(transport), lambda: None, "ns", "tidb-controller-manager", clock)


def _heard(*lines: bytes) -> int:
    """The number of times that a watch with these lines reports a free Lease."""
    calls: list[None] = []
    transport = ScriptedTransport([Response(200, {}, b"".join(lines))])
    _watch(transport, FakeClock()).step(lambda: calls.append(None))
    return len(calls)


@pytest.mark.rule("LE-13")
def test_a_lease_without_holder_and_a_deleted_lease_are_free() -> None:
    assert 0 == _heard(_event("ADDED", "other"), _event("MODIFIED", "other"), _event("BOOKMARK"))
    assert 1 == _heard(_event("ADDED", "other"), _event("MODIFIED", ""))
    assert 1 == _heard(_event("ADDED", ""))
    assert 1 == _heard(_event("DELETED", "other"))


def test_watches_one_lease_from_its_current_state(clock: FakeClock) -> None:
    transport = ScriptedTransport([Response(200, {}, b"")])
    _watch(transport, clock).step(lambda: None)

    path, _, query = transport.requests[0].url.partition("?")
    assert PATH.rpartition("/")[0] == path
    assert "fieldSelector=metadata.name%3Dtidb-controller-manager" in query
    assert "resourceVersion" not in query


@pytest.mark.parametrize(
    ("what", "pause"),
    [
        (answer(200), 1.0),
        (_REFUSED, 10.0),
        (answer(200, {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}), 10.0),
        (status(403, "Forbidden"), 300.0),
    ],
)
@pytest.mark.rule("LE-14")
def test_the_delay_depends_on_how_the_watch_ended(clock: FakeClock, what: Answer, pause: float) -> None:
    assert pause == _watch(ScriptedTransport([what]), clock).step(lambda: None)


class _Watchable(FakeApi):
    """An API with a watch that the test feeds."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.watching = threading.Event()

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        self.watching.set()
        return _Lines(self.lines)

    def close(self) -> None:
        self.lines.put(b"")


class _Lines:
    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, lines: "queue.SimpleQueue[bytes]") -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[bytes]:
        while line := self._lines.get(timeout=10):
            yield line
        raise ConnectionLost("GET", PATH, "closed")

    def abort(self) -> None:
        """Do nothing: the watch is ended through its transport."""

    def close(self) -> None: ...


class _Standby:
    """An elector in its own thread that watches, behind another holder."""

    def __init__(self, api: FakeApi, watched: _Watchable, clock: FakeClock) -> None:
        api.put(PATH, lease("other", duration=1000))
        watch = LeaseWatch(Client(watched), watched.close, "ns", "tidb-controller-manager", clock)
        self.candidate = Candidate(api, clock, watch=watch)
        self.stop = Stop()
        self.thread = threading.Thread(target=self.candidate.elector.run, args=(self.stop,), name="elector")

    def __enter__(self) -> "_Standby":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(5)
        assert not self.thread.is_alive()


def _release(api: FakeApi) -> Json:
    return api.put(PATH, lease("", duration=1))


@pytest.mark.rule("LE-13")
def test_a_released_lease_is_taken_immediately(api: FakeApi, clock: FakeClock) -> None:
    watched = _Watchable()
    with _Standby(api, watched, clock) as standby:
        assert watched.watching.wait(5)
        clock.wait_for_waiters()
        _release(api)
        watched.lines.put(_event("MODIFIED", ""))
        assert standby.candidate.heard.started.wait(5)

    assert 0.0 == clock.now()
    assert 4 == spec_of(api)["leaseTransitions"]


def test_a_leader_ends_its_watch(api: FakeApi, clock: FakeClock) -> None:
    watched = _Watchable()
    with _Standby(api, watched, clock) as standby:
        assert watched.watching.wait(5)
        _release(api)
        watched.lines.put(_event("MODIFIED", ""))
        assert standby.candidate.heard.started.wait(5)
        for thread in threading.enumerate():
            if thread.name == "lease-watch":
                thread.join(5)

        assert "lease-watch" not in {thread.name for thread in threading.enumerate()}
        assert "me" == spec_of(api)["holderIdentity"]


def test_a_stopped_standby_ends_its_watch(api: FakeApi, clock: FakeClock) -> None:
    watched = _Watchable()
    with _Standby(api, watched, clock) as standby:
        assert watched.watching.wait(5)

    assert 1 == standby.candidate.heard.stopped
    assert "other" == spec_of(api)["holderIdentity"]


@pytest.mark.parametrize("failure", [_REFUSED, status(403, "Forbidden")])
@pytest.mark.rule("LE-14")
def test_a_standby_that_cannot_watch_polls(api: FakeApi, clock: FakeClock, failure: Response | TransportError) -> None:
    class Unwatchable(_Watchable):
        def stream(self, request: Request, idle_timeout: float) -> ByteStream:
            return ScriptedTransport([failure]).stream(request, idle_timeout)

    with _Standby(api, Unwatchable(), clock) as standby:
        clock.wait_for_waiters(2)
        _release(api)
        step_until(clock, standby.candidate.heard.started.is_set, by=0.1, waiters=2)

    assert 2.0 <= clock.now() <= 4.5
