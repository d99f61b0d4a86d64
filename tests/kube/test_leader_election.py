import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from kube.client import Client
from kube.leader_election import (
    Callbacks,
    ElectionMetrics,
    LeaderElectionConfigError,
    LeaderElector,
    Timing,
    identity,
)
from kube.leases import LeaseLock, LeaseRecord
from kube.objects import Json, Object
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from ports.transport import RequestTimeout, Response
from tests.informers.support import eventually
from tests.kube.fakes import Answer, FakeApi, answer, status, step_until

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/tidb-controller-manager"
DOWN = RequestTimeout("PUT", PATH, "no answer")
BUSY = status(409, "Conflict")


class Heard:
    """Records the calls of callbacks and recorder. Waits for callbacks that have their own threads."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.stopped = 0
        self.leaders: list[str] = []
        self.events: list[str] = []

    def callbacks(self) -> Callbacks:
        return Callbacks(self.started.set, self._stop, self.leaders.append)

    def _stop(self) -> None:
        self.stopped += 1

    def event(self, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        self.events.append(f"{about.kind} {type} {reason} {message}")


class Candidate:
    """An elector over a fake API."""

    def __init__(self, api: FakeApi, clock: FakeClock, name: str = "me", **options: Any) -> None:
        self.heard = Heard()
        self.registry = CollectorRegistry()
        lock = LeaseLock(Client(api), "ns", "tidb-controller-manager")
        self.elector = LeaderElector(
            lock,
            name,
            self.heard.callbacks(),
            clock,
            SeededRandomness(1),
            name="tidb-controller-manager",
            recorder=self.heard,
            metrics=ElectionMetrics(self.registry),
            **options,
        )

    def status(self) -> float | None:
        return self.registry.get_sample_value("leader_election_master_status", {"name": "tidb-controller-manager"})


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def me(api: FakeApi, clock: FakeClock) -> Candidate:
    return Candidate(api, clock)


def lease(holder: str = "other", duration: int = 15, **spec: Any) -> Json:
    given = {"holderIdentity": holder, "leaseDurationSeconds": duration, "leaseTransitions": 3} | spec
    return {"metadata": {"name": "tidb-controller-manager", "namespace": "ns"}, "spec": given}


def spec_of(api: FakeApi) -> Json:
    spec: Json = api.objects[PATH]["spec"]
    return spec


def calls(api: FakeApi) -> list[str]:
    """The requests as `get`, `create`, `update`."""
    words = {"GET": "get", "POST": "create", "PUT": "update"}
    return [words[request.method] for request in api.requests]


@pytest.mark.rule("LE-13", "LE-25")
def test_an_absent_lease_is_created(api: FakeApi, me: Candidate) -> None:
    assert 2.0 == me.elector.tick()

    assert {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    } == spec_of(api)
    assert me.heard.started.wait(5)
    assert (1.0, True) == (me.status(), me.elector.is_leader)
    assert ["Lease Normal LeaderElection me became leader"] == me.heard.events


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": "", "leaseDurationSeconds": 15}])
@pytest.mark.rule("LE-13")
def test_a_free_lease_is_taken_immediately(api: FakeApi, me: Candidate, spec: Json) -> None:
    api.put(PATH, lease() | {"spec": spec})

    assert 2.0 == me.elector.tick()
    assert ("me", 1) == (spec_of(api)["holderIdentity"], spec_of(api)["leaseTransitions"])


@pytest.mark.rule("LE-11", "LE-14")
def test_takes_a_lease_that_stayed_unchanged_for_its_duration(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    api.put(PATH, lease(duration=40, renewTime="2020-01-01T00:00:00.000000Z"))

    delay = me.elector.tick()
    assert delay is not None
    assert 2.0 <= delay < 4.4
    clock.step(39.9)
    me.elector.tick()
    assert "other" == spec_of(api)["holderIdentity"]
    clock.step(0.1)
    me.elector.tick()

    assert ("me", 4) == (spec_of(api)["holderIdentity"], spec_of(api)["leaseTransitions"])
    assert me.heard.started.wait(5)


@pytest.mark.rule("LE-11")
def test_a_change_of_the_record_restarts_the_time(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    api.put(PATH, lease())
    me.elector.tick()
    clock.step(14)
    api.put(PATH, lease(renewTime="2026-01-01T00:00:14.000000Z"))
    me.elector.tick()
    clock.step(14)
    me.elector.tick()

    assert "other" == spec_of(api)["holderIdentity"]
    assert not me.elector.is_leader


@pytest.mark.rule("LE-18")
def test_renewals_take_the_fast_path(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    for _ in range(3):
        me.elector.tick()
        clock.step(2)

    assert ["get", "create", "update", "update"] == calls(api)
    assert "2026-01-01T00:00:04.000000Z" == spec_of(api)["renewTime"]
    assert "2026-01-01T00:00:00.000000Z" == spec_of(api)["acquireTime"]


@pytest.mark.rule("LE-12", "LE-18")
def test_a_conflict_takes_the_slow_path(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    for failure in (None, None, BUSY, None):
        api.failures = [None, None] if failure is None else [failure]
        me.elector.tick()
        clock.step(2)

    assert ["get", "create", "update", "update", "get", "update", "update"] == calls(api)
    labels = {"name": "tidb-controller-manager"}
    assert 1.0 == me.registry.get_sample_value("leader_election_slowpath_total", labels)


@pytest.mark.rule("LE-3", "LE-23")
def test_keeps_foreign_fields_of_the_lease(api: FakeApi, me: Candidate) -> None:
    there = lease(holder="", preferredHolder="them", strategy="OldestEmulationVersion")
    there["metadata"]["labels"] = {"foreign": "1"}
    api.put(PATH, there)

    me.elector.tick()

    assert ("them", "OldestEmulationVersion") == (spec_of(api)["preferredHolder"], spec_of(api)["strategy"])
    assert {"foreign": "1"} == api.objects[PATH]["metadata"]["labels"]


@pytest.mark.rule("LE-3")
def test_an_update_without_a_read_is_a_mistake(api: FakeApi) -> None:
    with pytest.raises(RuntimeError, match="after it was read"):
        LeaseLock(Client(api), "ns", "x").update(LeaseRecord(), 1)


def run(elector: LeaderElector, clock: FakeClock, stop: Stop, until: Callable[[], bool]) -> float:
    """Run the loop, stepping the clock while it waits, until `until` holds or it ends; return the virtual time."""
    started = clock.now()
    thread = threading.Thread(target=elector.run, args=(stop,), name="elector")
    thread.start()
    step_until(clock, lambda: until() or not thread.is_alive(), by=0.5)
    stop.set()
    thread.join(5)
    return clock.now() - started


@pytest.mark.rule("LE-15")
def test_leadership_ends_when_renewals_fail_for_the_renew_deadline(
    api: FakeApi, me: Candidate, clock: FakeClock
) -> None:
    me.elector.tick()
    api.failures = [DOWN] * 100
    renewed = clock.now()

    took = run(me.elector, clock, Stop(), lambda: False)

    assert 10.0 == took
    assert renewed + 10.0 == clock.now()
    assert (1, 0.0, False) == (me.heard.stopped, me.status(), me.elector.lease.is_valid())
    assert "Lease Normal LeaderElection me stopped leading" == me.heard.events[-1]


@pytest.mark.rule("LE-15")
def test_no_request_outlives_the_deadline(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    me.elector.tick()
    api.failures = [DOWN] * 100
    for _ in range(6):
        me.elector.tick()
        clock.step(1.9)

    timeouts = [request.timeout for request in api.requests[2:]]
    assert [5.0, 5.0, 5.0, 5.0, 5.0, 5.0] == timeouts[:6]
    assert 0.5 == pytest.approx(timeouts[-1])


def test_a_leader_that_sees_another_holder_ends_immediately(api: FakeApi, me: Candidate) -> None:
    me.elector.tick()
    api.put(PATH, lease("other"))

    assert me.elector.tick() is None
    assert not me.elector.lease.is_valid()


@pytest.mark.rule("LE-16")
def test_a_stopped_standby_calls_on_stopped_leading(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    api.put(PATH, lease(duration=1000))

    run(me.elector, clock, Stop(), lambda: clock.now() > 20)

    assert 1 == me.heard.stopped
    assert not me.heard.started.is_set()
    assert "other" == spec_of(api)["holderIdentity"]
    assert [] == me.heard.events


@pytest.mark.rule("LE-19")
def test_a_stopped_leader_frees_the_lease(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    run(me.elector, clock, Stop(), me.heard.started.is_set)

    assert ("", 1, 0) == tuple(spec_of(api)[k] for k in ("holderIdentity", "leaseDurationSeconds", "leaseTransitions"))
    rival = Candidate(api, clock, "rival")
    rival.elector.tick()
    assert "rival" == spec_of(api)["holderIdentity"]


@pytest.mark.parametrize("failure", [DOWN, status(404, "NotFound")])
@pytest.mark.rule("LE-19")
def test_a_failed_release_is_not_an_error(api: FakeApi, me: Candidate, failure: Answer) -> None:
    me.elector.tick()
    api.failures = [failure]

    assert not me.elector.release()


@pytest.mark.rule("LE-19")
def test_does_not_release_the_lease_of_another_holder(api: FakeApi, me: Candidate) -> None:
    me.elector.tick()
    api.put(PATH, lease("other"))

    assert not me.elector.release()
    assert "other" == spec_of(api)["holderIdentity"]


@pytest.mark.rule("LE-17")
def test_reports_every_new_holder(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    api.put(PATH, lease("first", duration=1))
    for holder in ("first", "second", "second"):
        api.put(PATH, lease(holder, duration=1))
        me.elector.tick()
    clock.step(1)
    me.elector.tick()
    me.elector.release()
    for thread in threading.enumerate():
        if thread.name == "leader-election-callback":
            thread.join(5)

    assert ["first", "second", "me"] == me.heard.leaders


@pytest.mark.rule("LE-21")
def test_only_a_leader_that_is_long_overdue_is_unhealthy(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    healthy = [me.elector.is_healthy()]
    me.elector.tick()
    for seconds in (35, 0.1):
        clock.step(seconds)
        healthy.append(me.elector.is_healthy())

    assert [True, True, False] == healthy


@pytest.mark.rule("LE-22")
def test_the_fence_closes_with_the_lease_without_the_elector(api: FakeApi, me: Candidate, clock: FakeClock) -> None:
    with pytest.raises(LeaseExpired):
        me.elector.lease.check()
    me.elector.tick()
    clock.step(14.9)
    me.elector.lease.check()
    clock.step(0.1)
    with pytest.raises(LeaseExpired):
        me.elector.lease.check()
    assert me.elector.is_leader


@pytest.mark.rule("LE-22")
def test_a_lease_counts_from_the_moment_the_renewal_was_sent(clock: FakeClock) -> None:
    class Slow(FakeApi):
        def request(self, request: Any) -> Any:
            clock.step(4)
            return super().request(request)

    me = Candidate(Slow(), clock)
    me.elector.tick()  # get until 4, create until 8

    clock.step(10.9)
    me.elector.lease.check()
    clock.step(0.1)
    assert not me.elector.lease.is_valid()


@pytest.mark.parametrize(
    ("timing", "message"),
    [
        ((10, 10, 2), "lease duration .10 s. must be greater than the renew deadline"),
        ((10.5, 10.9, 2), "lease duration"),
        ((15, 2.4, 2), "renew deadline .2.4 s. must be greater than 1.2 times"),
        ((15, 10, 0), "retry period must be positive"),
        ((0, 10, 2), "lease duration must be at least 1 s"),
    ],
)
@pytest.mark.rule("LE-10")
def test_rejects_contradictory_durations(timing: tuple[float, float, float], message: str) -> None:
    with pytest.raises(LeaderElectionConfigError, match=message):
        Timing(*timing)


@pytest.mark.rule("LE-10")
def test_rounds_the_duration_in_the_lease_up() -> None:
    assert [11, 15] == [Timing(seconds, 10.2, 2).noted_duration for seconds in (10.5, 15)]


@pytest.mark.rule("LE-10")
def test_rejects_an_empty_identity(api: FakeApi, clock: FakeClock) -> None:
    with pytest.raises(LeaderElectionConfigError, match="identity"):
        Candidate(api, clock, "")


@pytest.mark.rule("LE-4")
def test_one_hung_request_cannot_cost_the_lease() -> None:
    assert (5.0, 1.0) == (Timing().request_timeout, Timing(3, 1.5, 1).request_timeout)


@pytest.mark.rule("LE-24")
def test_a_restarted_process_has_another_identity() -> None:
    randomness = SeededRandomness(7)
    first, second = identity("host", randomness), identity("host", randomness)

    assert first != second
    assert first.startswith("host_")


@pytest.mark.rule("LE-2")
def test_keeps_every_field_of_a_malformed_lease(api: FakeApi) -> None:
    api.put(PATH, lease(futureField={"a": 1}))
    lock = LeaseLock(Client(api), "ns", "tidb-controller-manager")
    record = lock.read(1)
    lock.update(record, 1)

    assert {"a": 1} == spec_of(api)["futureField"]
    assert lock.object is not None
    assert spec_of(api) == msgspec.json.decode(lock.object.raw)["spec"]


NO_LEASES = {
    "a page": Response(200, {}, b"<html>moved</html>"),
    "nothing": Response(200, {}, b""),
    "null": answer(200),
    "half": Response(200, {}, b'{"kind":"Lease","metadata":{"name":'),
    "no utf-8": Response(200, {}, b'{"kind":"Lease","metadata":{"name":"\xff"}}'),
    "a status": answer(200, {"kind": "Status", "metadata": {}, "status": "Success"}),
    "a list": answer(200, {"kind": "LeaseList", "metadata": {}, "items": []}),
    "another lease": answer(200, {"kind": "Lease", "metadata": {"name": "other"}, "spec": {}}),
    "odd types": answer(200, lease() | {"kind": "Lease", "spec": {"holderIdentity": 5}}),
    "an odd spec": answer(200, lease() | {"kind": "Lease", "spec": []}),
}


@pytest.mark.parametrize("odd", NO_LEASES.values(), ids=NO_LEASES.keys())
@pytest.mark.rule("LE-12")
def test_a_200_without_a_lease_is_a_failed_attempt(api: FakeApi, me: Candidate, clock: FakeClock, odd: Answer) -> None:
    api.put(PATH, lease(holder=""))
    api.failures = [odd, None, odd]

    assert (me.elector.tick() or 0) > 2.0, "read"
    assert not me.elector.is_leader
    assert (me.elector.tick() or 0) > 2.0, "written"
    assert not me.elector.lease.is_valid()
    assert 2.0 == me.elector.tick()
    api.failures = [odd]
    assert 2.0 == me.elector.tick(), "renewed by reading first"
    api.failures = [odd] * 12
    delays = []
    while (delay := me.elector.tick()) is not None:
        delays.append(delay)
        clock.step(delay)
    assert 10 == sum(delays), "LE-15: lost when the deadline has passed"


@pytest.mark.rule("LE-15")
def test_an_answer_with_another_holder_is_not_a_success(api: FakeApi, me: Candidate) -> None:
    api.put(PATH, lease(holder=""))
    api.failures = [None, answer(200, lease(holder="other") | {"kind": "Lease"})]

    assert (me.elector.tick() or 0) > 2.0
    assert not me.elector.is_leader
    assert not me.elector.lease.is_valid()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
@pytest.mark.rule("LE-14")
def test_a_leader_that_cannot_start_ends_without_releasing_the_lease(
    api: FakeApi, clock: FakeClock, error: BaseException
) -> None:
    heard = Heard()

    def fail() -> None:
        raise error

    lock = LeaseLock(Client(api), "ns", "tidb-controller-manager")
    callbacks = Callbacks(fail, heard._stop)
    elector = LeaderElector(lock, "me", callbacks, clock, SeededRandomness(1), name="tidb-controller-manager")
    elector.run(Stop())

    assert (1, "me") == (heard.stopped, spec_of(api)["holderIdentity"])


@pytest.mark.rule("LE-17")
def test_a_failed_on_new_leader_ends_nothing(api: FakeApi, clock: FakeClock) -> None:
    def fail(_leader: str) -> None:
        raise SystemExit

    lock = LeaseLock(Client(api), "ns", "tidb-controller-manager")
    callbacks = Callbacks(lambda: None, lambda: None, fail)
    elector = LeaderElector(lock, "me", callbacks, clock, SeededRandomness(1), name="tidb-controller-manager")
    with capture_logs() as logs:
        assert 2.0 == elector.tick()
        eventually(lambda: any(entry["event"] == "callback failed" for entry in logs))
