import threading
from collections.abc import Iterator

import msgspec
import pytest
import structlog

from kube.client import Client
from kube.event_correlation import Correlator, Happening, NewEvent, ObjectReference, RepeatedEvent
from kube.events import NORMAL, WARNING, EventRecorder
from kube.objects import Object
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ConnectionRefused
from tests.kube.fakes import FakeApi, status, step_until

TC = Object(
    b'{"apiVersion":"pingcap.com/v1alpha1","kind":"TidbCluster",'
    b'"metadata":{"name":"basic","namespace":"ns","uid":"u","resourceVersion":"7"}}'
)
DOWN = ConnectionRefused("POST", "/", "refused")


class Recorder:
    """A started recorder over a fake API."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.api = FakeApi()
        self.recorder = EventRecorder(Client(self.api), clock, SeededRandomness(1))

    def flush(self) -> bool:
        return self.recorder.stop()


@pytest.fixture
def bench(clock: FakeClock) -> Iterator[Recorder]:
    made = Recorder(clock)
    made.recorder.start()
    yield made
    made.recorder.stop(0)


@pytest.mark.rule("EV-2")
def test_an_event_names_object_source_and_time(bench: Recorder) -> None:
    bench.recorder.event(TC, NORMAL, "Created", "it is there")
    assert bench.flush()

    (event,) = bench.api.objects.values()
    assert "basic.18867251edfa0000" == event["metadata"]["name"]
    assert "ns" == event["metadata"]["namespace"]
    assert {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "namespace": "ns",
        "name": "basic",
        "uid": "u",
        "resourceVersion": "7",
    } == event["involvedObject"]
    said = (event["type"], event["reason"], event["message"], event["count"], event["source"]["component"])
    assert ("Normal", "Created", "it is there", 1, "tidb-controller-manager") == said
    assert "2026-01-01T00:00:00Z" == event["firstTimestamp"] == event["lastTimestamp"]


@pytest.mark.rule("EV-1")
def test_a_simulated_process_sends_in_its_own_thread(clock: FakeClock) -> None:
    quiet = Recorder(clock)
    for message in ("one", "two"):
        quiet.recorder.event(TC, WARNING, "Failed", message)
    assert {} == quiet.api.objects
    quiet.recorder.send_queued()
    assert ["one", "two"] == [event["message"] for event in quiet.api.objects.values()]


@pytest.mark.rule("EV-2")
def test_events_about_cluster_scoped_objects_live_in_default(bench: Recorder) -> None:
    bench.recorder.event(ObjectReference("v1", "PersistentVolume", "", "pv-1"), WARNING, "Lost", "gone")
    assert bench.flush()

    assert ["POST events"] == bench.api.calls
    assert bench.api.requests[0].url.endswith("/namespaces/default/events")


def test_simultaneous_creations_become_one_event(bench: Recorder) -> None:
    for message in ("create Service a", "create Service b", "create Service a"):
        bench.recorder.event(TC, NORMAL, "SuccessfulCreate", message)
    bench.recorder.event(TC, NORMAL, "Other", "something else")
    bench.recorder.event(TC, NORMAL, "SuccessfulCreate", "x" * 1000)
    assert bench.flush()

    told = [event["message"] for event in bench.api.objects.values()]
    assert ["create Service a; create Service b", "create Service a", "something else", "x" * 1000] == told


@pytest.mark.parametrize(("reason", "seconds"), [("Other", 3.0), ("SuccessfulCreate", 10.0)])
def test_events_are_collected_for_seconds_only(bench: Recorder, reason: str, seconds: float) -> None:
    bench.recorder.event(TC, NORMAL, reason, "one")
    step_until(bench.clock, lambda: bool(bench.api.objects), by=0.25)
    assert seconds <= bench.clock.now() < seconds + 1.0


def test_an_event_that_is_not_joined_sends_the_waiting_ones(bench: Recorder) -> None:
    bench.recorder.event(TC, NORMAL, "SuccessfulCreate", "one")
    step_until(bench.clock, lambda: bench.clock.now() >= 5.0, by=0.25)
    bench.recorder.event(TC, NORMAL, "Other", "two")
    step_until(bench.clock, lambda: len(bench.api.objects) == 2, by=0.25)
    assert 8.0 <= bench.clock.now() < 9.0


def test_an_event_does_not_send_the_events_of_other_objects(bench: Recorder) -> None:
    other = ObjectReference(TC.api_version, TC.kind, "ns", "other")
    bench.recorder.event(TC, NORMAL, "SuccessfulCreate", "create Service a")
    bench.recorder.event(other, NORMAL, "Other", "something else")
    step_until(bench.clock, lambda: bool(bench.api.objects), by=0.25)
    bench.recorder.event(TC, NORMAL, "SuccessfulCreate", "create Service b")
    step_until(bench.clock, lambda: len(bench.api.objects) == 2, by=0.25)

    told = [event["message"] for event in bench.api.objects.values()]
    assert ["something else", "create Service a; create Service b"] == told


@pytest.mark.rule("EV-3")
def test_a_repeated_event_is_counted(bench: Recorder) -> None:
    for _ in range(3):
        bench.recorder.event(TC, NORMAL, "Created", "again")
    assert bench.flush()

    (event,) = bench.api.objects.values()
    assert 3 == event["count"]
    assert ["POST", "PATCH", "PATCH"] == [request.method for request in bench.api.requests]


@pytest.mark.rule("EV-4")
def test_recreates_a_deleted_known_event(bench: Recorder) -> None:
    bench.api.failures = [None, status(404, "NotFound")]
    for _ in range(2):
        bench.recorder.event(TC, NORMAL, "Created", "again")
    assert bench.flush()

    assert ["POST", "PATCH", "POST"] == [request.method for request in bench.api.requests]
    assert [1, 2] == [event["count"] for event in bench.api.objects.values()]


@pytest.mark.rule("EV-4")
def test_drops_an_event_that_the_server_refuses(bench: Recorder) -> None:
    ending = status(403, "Forbidden", causes=[{"reason": "NamespaceTerminating"}])
    bench.api.failures = [status(403, "Forbidden"), ending, None]
    with structlog.testing.capture_logs() as logs:
        for message in ("one", "two", "three"):
            bench.recorder.event(TC, WARNING, "Failed", message)
        assert bench.flush()

    assert ["three"] == [event["message"] for event in bench.api.objects.values()]
    assert ["warning", "debug"] == [entry["log_level"] for entry in logs if entry["event"] == "event refused"]


@pytest.mark.rule("EV-4")
def test_an_unreachable_server_is_tried_again(bench: Recorder) -> None:
    bench.api.failures = [DOWN, DOWN]
    bench.recorder.event(TC, NORMAL, "Created", "late")
    step_until(bench.clock, lambda: bool(bench.api.objects), by=0.5)

    assert 3 == len(bench.api.requests)
    assert 10.0 <= bench.clock.now() < 21.0


@pytest.mark.rule("EV-4")
def test_after_twelve_tries_an_event_is_lost(bench: Recorder) -> None:
    bench.api.failures = [DOWN] * 12
    with structlog.testing.capture_logs() as logs:
        bench.recorder.event(TC, NORMAL, "Created", "never")
        step_until(bench.clock, lambda: len(bench.api.requests) == 12, by=10)
        assert bench.flush()

    assert ["event lost"] == [entry["event"] for entry in logs]
    assert 12 == len(bench.api.requests)


@pytest.mark.rule("EV-5")
def test_stopping_waits_at_most_two_seconds(bench: Recorder) -> None:
    bench.api.failures = [DOWN] * 12
    bench.recorder.event(TC, NORMAL, "Created", "one")
    bench.recorder.event(TC, NORMAL, "Created", "two")
    result: list[bool] = []
    stopping = threading.Thread(target=lambda: result.append(bench.flush()), name="stopping")
    stopping.start()
    step_until(bench.clock, lambda: bool(result), by=2, waiters=2)
    stopping.join(5)

    assert [False] == result
    bench.recorder.event(TC, NORMAL, "Created", "too late")


@pytest.mark.rule("EV-1")
def test_a_full_queue_drops_with_a_log(clock: FakeClock) -> None:
    recorder = Recorder(clock).recorder
    with structlog.testing.capture_logs() as logs:
        for index in range(1001):
            recorder.event(TC, NORMAL, "Created", str(index))

    assert [("event dropped", "1000")] == [(entry["event"], entry["message"]) for entry in logs]


class Teller:
    """Feeds a correlator and remembers the events that it creates, like the recorder."""

    def __init__(self) -> None:
        self.correlator = Correlator()
        self.now = 0.0
        self.names = 0

    def tell(self, message: str, name: str = "a", reason: str = "R") -> NewEvent | RepeatedEvent | None:
        about = ObjectReference("v1", "Pod", "ns", name)
        event = self.correlator.correlate(Happening(about, "Normal", reason, message, FakeClock().wall()), self.now)
        if event is not None:
            self.names += 1
            count = event.count if isinstance(event, RepeatedEvent) else 1
            self.correlator.remember(event.key, f"e{self.names}", FakeClock().wall(), count)
        return event


@pytest.mark.rule("EV-3")
def test_the_tenth_different_message_is_combined() -> None:
    teller = Teller()

    told = [teller.tell(str(index)) for index in range(12)]

    messages = [event.message for event in told if event]
    assert [str(index) for index in range(9)] == messages[:9]
    assert [f"(combined from similar events): {index}" for index in (9, 10, 11)] == messages[9:]
    assert [NewEvent] * 10 + [RepeatedEvent] * 2 == [type(event) for event in told]


@pytest.mark.parametrize(("pause", "combined"), [(600.0, True), (600.1, False)])
@pytest.mark.rule("EV-3")
def test_a_new_series_begins_after_ten_minutes(pause: float, combined: bool) -> None:
    teller = Teller()
    for index in range(9):
        teller.tell(str(index))
    teller.now = pause

    event = teller.tell("later")

    assert event is not None
    assert combined == event.message.startswith("(combined")


@pytest.mark.rule("EV-3")
def test_a_flood_about_one_object_is_cut_and_refills_each_second() -> None:
    teller = Teller()

    assert [True] * 25 + [False] * 5 == [teller.tell("same") is not None for _ in range(30)]
    assert teller.tell("same", name="other") is not None
    teller.now = 2.0
    assert [True, True, False] == [teller.tell("same") is not None for _ in range(3)]


@pytest.mark.rule("EV-3")
def test_only_4096_objects_are_remembered() -> None:
    teller = Teller()
    for index in range(4097):
        teller.tell("same", name=str(index))

    assert isinstance(teller.tell("same", name="4096"), RepeatedEvent)
    assert isinstance(teller.tell("same", name="0"), NewEvent)


def test_a_patch_contains_only_the_change(bench: Recorder) -> None:
    for _ in range(2):
        bench.recorder.event(TC, NORMAL, "Created", "again")
    assert bench.flush()

    assert bench.api.requests[1].body is not None
    assert {"count": 2, "lastTimestamp": "2026-01-01T00:00:00Z", "message": "again"} == msgspec.json.decode(
        bench.api.requests[1].body
    )
