"""The reflector, one step at a time: no thread, no waiting."""

from collections.abc import Iterable, MutableMapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from informers.list_watch import ListWatch
from informers.metrics import InformerMetrics
from informers.reflector import Reflector, log_watch_error
from kube.errors import ApiError, Forbidden, Status, error_from_status
from kube.objects import Object
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, Response
from tests.informers.fake_source import FakeSource, pod, refusal


class RecordingSink:
    """Writes down what the reflector learned, as short texts."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.kinds: set[str] = set()
        self.failing = False

    def add(self, obj: Object) -> None:
        self._tell("add", obj)

    def update(self, obj: Object) -> None:
        self._tell("update", obj)

    def delete(self, obj: Object) -> None:
        self._tell("delete", obj)

    def replace(self, objects: Iterable[Object], resource_version: str) -> None:
        objects = list(objects)
        self.kinds |= {f"{obj.api_version} {obj.kind}" for obj in objects}
        self.told.append(f"replace {','.join(obj.metadata.name for obj in objects)} @{resource_version}")

    def bookmark(self, resource_version: str) -> None:
        self.told.append(f"bookmark @{resource_version}")

    def _tell(self, what: str, obj: Object) -> None:
        if self.failing:
            raise RuntimeError("the sink failed")
        self.told.append(f"{what} {obj.metadata.name}@{obj.metadata.resource_version}")


class World:
    """A reflector in front of a source."""

    def __init__(self, clock: FakeClock, source: FakeSource | None = None, *, streaming: bool = False) -> None:
        self.clock = clock
        self.source = source or FakeSource()
        self.sink = RecordingSink()
        self.errors: list[Exception] = []
        self.reflector = Reflector(
            ListWatch(self.source.client(), self.source.resource),
            self.sink,
            clock,
            SeededRandomness(1),
            streaming=streaming,
        )
        self.reflector.on_error = lambda _, error: self.errors.append(error)

    def step(self, count: int = 1) -> float:
        """Take steps; return the pause after the last."""
        return [self.reflector.step() for _ in range(count)][-1]

    def watching(self) -> "World":
        """List and open the watch; the next step takes an event."""
        self.step(2)
        return self


@pytest.fixture
def world(clock: FakeClock) -> World:
    return World(clock)


def _is_backoff(pause: float) -> bool:
    return pause >= 0.8


@pytest.mark.rule("REF-1")
def test_a_failed_round_calls_the_handler_and_backs_off(world: World) -> None:
    world.source.fail("LIST", ConnectionRefused("GET", "/", "refused"))
    assert 0.8 <= world.step() < 1.6
    assert [ConnectionRefused] == [type(error) for error in world.errors]
    assert world.step() == 0.0
    assert ["replace  @10"] == world.sink.told


@pytest.mark.rule("INF-41")
def test_a_failing_error_handler_does_not_end_the_reflector(world: World) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    world.reflector.on_error = fail
    world.source.fail("LIST", refusal(403, "Forbidden"))
    assert _is_backoff(world.step())
    assert world.step() == 0.0


@pytest.mark.rule("REF-10", "REF-12")
def test_an_expired_version_is_followed_by_the_latest_at_once(world: World) -> None:
    world.watching()
    world.source.send_error(410, "Expired")
    assert _is_backoff(world.step())
    world.source.fail("LIST", refusal(410, "Expired"))
    assert world.step() == 0.0
    assert ["0", "10", ""] == world.source.params("LIST", "resourceVersion")
    assert [] == world.errors


@pytest.mark.rule("REF-12")
def test_after_a_failing_second_list_the_next_list_requests_the_latest_version(world: World) -> None:
    world.source.fail("LIST", refusal(410, "Expired"), refusal(403, "Forbidden"))
    assert _is_backoff(world.step())
    assert [Forbidden] == [type(error) for error in world.errors]
    world.step()
    assert ["0", "", ""] == world.source.params("LIST", "resourceVersion")


@pytest.mark.parametrize(
    "answer",
    [
        refusal(500, "InternalError", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
        refusal(504, "Timeout", details={"causes": [{"message": "Too large resource version"}]}),
        refusal(504, "Timeout", "Too large resource version: 99, current: 10"),
    ],
)
@pytest.mark.rule("REF-13")
def test_a_version_that_is_too_large_counts_as_unavailable(world: World, answer: Response) -> None:
    world.source.fail("LIST", answer)
    assert world.step() == 0.0
    assert ["0", ""] == world.source.params("LIST", "resourceVersion")


@pytest.mark.rule("REF-14")
def test_a_list_replaces_everything_and_sets_the_version(world: World) -> None:
    world.source.add(pod("a"))
    world.source.add(pod("b"))
    world.step()
    assert ["replace a,b @12"] == world.sink.told
    assert world.reflector.last_sync_resource_version == "12"


@pytest.mark.rule("REF-14")
def test_an_item_without_metadata_is_left_out(world: World) -> None:
    body = b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"spec":{}},{"metadata":{"name":"a"}}]}'
    world.source.fail("LIST", Response(200, {}, body))
    assert world.step() == 0.0
    assert ["replace a @1"] == world.sink.told


@pytest.mark.rule("REF-11")
def test_lists_from_the_cache_are_not_paged_again_at_a_known_version(world: World) -> None:
    world.watching()
    world.source.send_error(410, "Expired")
    world.step(2)
    assert ["500", ""] == world.source.params("LIST", "limit")


@pytest.mark.rule("REF-15")
def test_a_server_without_a_cache_keeps_getting_paged_lists(clock: FakeClock) -> None:
    world = World(clock, FakeSource(watch_cache=False))
    for number in range(501):
        world.source.add_drop_watch(pod(f"p{number}"))
    world.watching()
    world.source.send_error(410, "Expired")
    world.step(2)
    assert ["500", "500", "500", "500"] == world.source.params("LIST", "limit")


@pytest.mark.rule("REF-16")
def test_a_table_is_refused_as_list_and_skipped_as_event(world: World) -> None:
    world.source.fail("LIST", Response(200, {}, b'{"kind":"Table","metadata":{"resourceVersion":"1"},"rows":[]}'))
    assert _is_backoff(world.step())
    assert [406] == [error.code for error in world.errors if isinstance(error, ApiError)]
    world.watching()
    world.source.send_event("ADDED", {"kind": "Table", "metadata": {"resourceVersion": "99"}})
    assert world.step() == 0.0
    assert world.reflector.last_sync_resource_version == "10"


@pytest.mark.rule("REF-17")
def test_items_of_a_list_know_their_kind(world: World) -> None:
    world.source.add(pod("a"))
    world.step()
    assert {"v1 Pod"} == world.sink.kinds


@pytest.mark.rule("REF-20")
def test_a_watch_continues_the_list_and_requests_bookmarks(world: World) -> None:
    world.watching()
    (watch,) = [request for request in world.source.requests if request.verb == "WATCH"]
    assert ("10", "true") == (watch.params["resourceVersion"], watch.params["allowWatchBookmarks"])


@pytest.mark.rule("REF-20")
def test_watches_last_five_to_ten_minutes_each_its_own_time(world: World) -> None:
    world.watching()
    for _ in range(20):
        world.clock.step(2)
        world.source.end_watches()
        world.step(2)
    seconds = [int(text) for text in world.source.params("WATCH", "timeoutSeconds")]
    assert all(300 <= each <= 600 for each in seconds)
    assert len(set(seconds)) > 10


@pytest.mark.parametrize("fault", [ConnectionRefused("GET", "/", "refused"), refusal(429, "TooManyRequests")])
@pytest.mark.rule("REF-21")
def test_four_refused_watches_cost_waits_and_no_list(world: World, fault: ConnectionRefused | Response) -> None:
    world.step()
    world.source.fail("WATCH", fault, fault, fault, fault)
    pauses = [world.step() for _ in range(5)]
    assert [True, True, True, True, False] == [_is_backoff(pause) for pause in pauses]
    assert (1, 5) == (world.source.count("LIST"), world.source.count("WATCH"))
    assert [] == world.errors


@pytest.mark.parametrize(
    "fault",
    [
        refusal(410, "Expired"),
        refusal(403, "Forbidden"),
        refusal(500, "InternalError"),
        ConnectionLost("GET", "/", "reset"),
    ],
)
@pytest.mark.rule("REF-2", "REF-21")
def test_any_other_refusal_of_a_watch_leads_to_a_list(world: World, fault: ConnectionLost | Response) -> None:
    world.step()
    world.source.fail("WATCH", fault)
    assert _is_backoff(world.step())
    world.step()
    assert len(world.errors) == 1
    assert world.source.count("LIST") == 2


@pytest.mark.rule("REF-22")
def test_events_reach_the_sink_and_move_the_version(world: World) -> None:
    world.watching()
    world.source.add(pod("a"))
    world.source.modify(pod("a"))
    world.source.delete("ns/a")
    world.source.bookmark()
    world.step(4)
    assert ["add a@11", "update a@12", "delete a@13", "bookmark @14"] == world.sink.told[1:]
    assert world.reflector.last_sync_resource_version == "14"


@pytest.mark.rule("REF-22")
def test_unknown_events_and_a_failing_sink_do_not_end_the_watch(world: World) -> None:
    world.watching()
    world.source.send_event("PATCHED", pod("a") | {"metadata": {"name": "a", "resourceVersion": "15"}})
    world.step()
    world.sink.failing = True
    world.source.add(pod("a"))
    world.step()
    world.sink.failing = False
    world.source.add(pod("b"))
    world.step()
    assert ["add b@12"] == world.sink.told[1:]
    assert world.source.count("WATCH") == 1


@pytest.mark.rule("REF-23")
def test_initial_events_of_a_watch_from_the_start_do_not_move_the_version(world: World) -> None:
    world.source.fail("LIST", Response(200, {}, b'{"kind":"PodList","metadata":{"resourceVersion":"0"},"items":[]}'))
    world.source.add(pod("a"))
    world.watching()
    world.step()
    assert world.reflector.last_sync_resource_version == "0"
    world.source.modify(pod("a"))
    world.step()
    assert world.reflector.last_sync_resource_version == "12"
    world.source.add(pod("b"))
    world.step()
    assert world.reflector.last_sync_resource_version == "13"


@pytest.mark.parametrize("obj", [{"kind": "Pod", "spec": {}}, {"kind": "Node", "metadata": {"resourceVersion": "99"}}])
@pytest.mark.rule("REF-24")
def test_skips_items_of_another_kind(world: World, obj: dict[str, object]) -> None:
    world.watching()
    world.source.send_event("ADDED", obj)
    assert world.step() == 0.0
    assert (1, "10") == (len(world.sink.told), world.reflector.last_sync_resource_version)
    world.source.add(pod("a"))
    world.step()
    assert ["add a@11"] == world.sink.told[1:]


@pytest.mark.parametrize("after_event", [True, False])
@pytest.mark.rule("REF-25")
def test_a_watch_that_was_of_use_is_followed_by_another(world: World, after_event: bool) -> None:
    world.watching()
    if after_event:
        world.source.add(pod("a"))
        world.step()
    world.clock.step(0.25 if after_event else 1)
    world.source.end_watches()
    pause = 0.75 if after_event else 0.0
    assert [pause, 0.0] == [world.step(), world.step()], "watches begin at least a second apart"
    assert ["10", "11" if after_event else "10"] == world.source.params("WATCH", "resourceVersion")
    assert world.source.count("LIST") == 1


@pytest.mark.rule("TH-13")
def test_a_watch_that_falls_silent_after_events_resumes_at_its_version(world: World) -> None:
    world.watching()
    world.source.add(pod("a"))
    world.step()
    world.clock.step(180)
    world.source.send(RequestTimeout("GET", "/", "silent"))
    assert 0.0 == world.step(2)
    assert (["10", "11"], 1) == (world.source.params("WATCH", "resourceVersion"), world.source.count("LIST"))


@pytest.mark.rule("TH-13")
def test_after_a_silent_watch_of_a_future_version_the_reflector_lists(world: World) -> None:
    """A real API server answers it 200, and sends not even bookmarks: so it is when etcd was restored from a backup."""
    world.watching()
    world.clock.step(180)
    world.source.send(RequestTimeout("GET", "/", "silent"))
    assert _is_backoff(world.step())
    world.source.fail("LIST", refusal(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}))
    world.step()
    assert ["0", "10", ""] == world.source.params("LIST", "resourceVersion")
    assert ["replace  @10", "replace  @10"] == world.sink.told


@pytest.mark.rule("REF-2", "REF-26")
def test_a_very_short_watch_ends_the_round(world: World) -> None:
    world.watching()
    world.clock.step(0.9)
    world.source.end_watches()
    assert _is_backoff(world.step())
    world.step()
    assert (2, []) == (world.source.count("LIST"), world.errors)


@pytest.mark.rule("REF-28")
def test_too_many_requests_in_a_watch_costs_a_wait_and_no_list(world: World) -> None:
    world.watching()
    world.source.send_error(429, "TooManyRequests")
    assert _is_backoff(world.step())
    world.step()
    assert (1, 2) == (world.source.count("LIST"), world.source.count("WATCH"))


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (500, "StorageReadError")])
@pytest.mark.rule("REF-29")
def test_errors_of_a_watch_end_the_round(world: World, code: int, reason: str) -> None:
    world.watching()
    world.source.send_error(code, reason)
    assert _is_backoff(world.step())
    world.step()
    assert (2, []) == (world.source.count("LIST"), world.errors)


@pytest.mark.rule("REF-30")
def test_a_line_that_cannot_be_read_is_an_internal_error(world: World) -> None:
    world.watching()
    world.source.send(b"{broken\n")
    assert _is_backoff(world.step())


@pytest.mark.rule("REF-30")
def test_a_connection_reset_in_mid_stream_costs_no_list(world: World) -> None:
    world.watching()
    world.source.add(pod("a"))
    world.source.break_watches()
    world.clock.step(1)
    world.step()
    assert [0.0, 0.0] == [world.step(), world.step()]
    assert ["10", "11"] == world.source.params("WATCH", "resourceVersion")
    assert world.source.count("LIST") == 1


@pytest.mark.rule("REF-31", "REF-32")
def test_a_stop_ends_a_blocked_watch_and_closes_it(world: World) -> None:
    stop = Stop()
    world.watching()
    stream = world.source.streams[0]
    stop.set()
    world.reflector.run(stop)
    assert stream.closed
    assert (1, []) == (world.source.count("LIST"), world.errors)


@pytest.mark.parametrize("end", ["error", "end", "break"])
@pytest.mark.rule("REF-32")
def test_a_watch_is_closed_however_it_ends(world: World, end: str) -> None:
    world.watching()
    stream = world.source.streams[0]
    {
        "error": lambda: world.source.send_error(410, "Expired"),
        "end": world.source.end_watches,
        "break": world.source.break_watches,
    }[end]()
    world.step()
    assert stream.closed


@pytest.mark.rule("REF-3")
def test_a_list_that_ends_with_the_stop_is_no_failure(world: World) -> None:
    stop = Stop()
    world.source.fail("LIST", ConnectionLost("GET", "/", "the transport was closed"))
    world.source.before_list(stop.set)
    world.reflector.run(stop)
    assert [] == world.errors


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (error_from_status(Status(code=410, reason="Expired")), "debug"),
        (ConnectionLost("GET", "/", "eof"), "info"),
        (error_from_status(Status(code=403, reason="Forbidden")), "error"),
        (ConnectionRefused("GET", "/", "refused"), "error"),
        (ValueError("a transform failed"), "error"),
    ],
)
@pytest.mark.rule("REF-4")
def test_failed_rounds_are_logged_as_loudly_as_they_deserve(
    world: World, error: Exception, level: str, logs: list[MutableMapping[str, Any]]
) -> None:
    log_watch_error(world.reflector, error)
    assert [(level, "pods", str(error))] == [(entry["log_level"], entry["resource"], entry["error"]) for entry in logs]
    assert isinstance(error, ValueError) == ("exc_info" in logs[0])


@pytest.mark.rule("MET-20")
def test_lists_watches_and_events_are_counted(clock: FakeClock) -> None:
    source = FakeSource()
    registry = CollectorRegistry()
    reflector = Reflector(
        ListWatch(source.client(), source.resource),
        RecordingSink(),
        clock,
        SeededRandomness(1),
        metrics=InformerMetrics(registry).claim("", source.resource),
    )
    source.fail("LIST", refusal(410, "Expired"), refusal(403, "Forbidden"))
    for _ in range(3):
        reflector.step()
    for end in (source.end_watches, lambda: source.send_error(410, "Expired"), source.break_watches):
        source.add(pod("a"))
        reflector.step()
        end()
        reflector.step()
        while not source.streams:
            reflector.step()
    source.end_watches()
    reflector.step()

    def count(metric: str, **labels: str) -> float | None:
        return registry.get_sample_value(metric, {"resource": "pods", **labels})

    results = {result: count("informer_lists_total", result=result) for result in ("success", "expired", "error")}
    assert {"success": 2.0, "expired": 1.0, "error": 1.0} == results
    reasons = ("timeout", "expired", "error", "very_short")
    assert [1.0] * 4 == [count("informer_watches_total", reason=reason) for reason in reasons]
    assert count("informer_last_event_timestamp_seconds") == clock.wall().timestamp()


@pytest.mark.rule("REF-42")
def test_rounds_and_watches_draw_from_one_backoff(world: World) -> None:
    world.source.fail("LIST", refusal(403, "Forbidden"))
    assert 0.8 <= world.step() < 1.6
    world.source.fail("WATCH", refusal(429, "TooManyRequests"))
    assert 1.6 <= world.step(2) < 3.2
    assert 0.0 == world.step()
    world.source.send_error(410, "Expired")
    assert 3.2 <= world.step() < 6.4


@pytest.mark.rule("REF-27")
def test_a_version_that_expires_twice_is_followed_by_a_list_of_the_latest(world: World) -> None:
    for _ in range(3):
        world.watching()
        world.source.send_error(410, "Expired")
        assert _is_backoff(world.step())

    assert ["0", "10", ""] == world.source.params("LIST", "resourceVersion")


@pytest.mark.parametrize("gone", [None, {"kind": "Pod"}, {"kind": "Pod", "metadata": {}}, {"kind": "Node"}])
@pytest.mark.rule("REF-24")
def test_a_deletion_without_an_object_is_followed_by_a_list(world: World, gone: Any) -> None:
    world.source.add(pod("a"))
    world.watching()
    world.source.send_event("DELETED", gone)

    assert _is_backoff(world.step())
    world.step()

    assert ["0", ""] == world.source.params("LIST", "resourceVersion")
