"""A watch that goes on (RW-1 to RW-3)."""

from collections.abc import Iterator

import pytest

from informers.list_watch import ListWatch
from informers.resuming_watch import ResumingWatch
from kube.client import WatchEvent
from kube.errors import ApiError
from ports.clock import FakeClock
from ports.stopping import Stop
from ports.transport import ConnectionRefused, RequestTimeout, Response, TransportError
from tests.informers.fake_source import FakeSource, pod, refusal


class Waits(Stop):
    """A stop that lets the time pass instead of waiting, and writes down how long."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._clock = clock

    def wait(self, clock: object, timeout: float | None = None) -> bool:
        if timeout:
            self.waits.append(timeout)
            self._clock.step(timeout)
        return self.is_set()


class World:
    """A resuming watch in front of a source."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.source = FakeSource()
        self.stop = Waits(clock)
        self.watch = ResumingWatch(ListWatch(self.source.client(), self.source.resource), "10", clock, self.stop)
        self._events = iter(self.watch)

    def next(self) -> str:
        """The next event, as a short text."""
        return _short(next(self._events))

    def rest(self) -> list[str]:
        """All events until the watch ends by itself."""
        return [_short(event) for event in self._events]


def _short(event: WatchEvent) -> str:
    if isinstance(event.object, ApiError):
        return f"{event.type} {event.object.code}"
    return f"{event.type} {event.object.metadata.name}"


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.stop.set()


@pytest.mark.parametrize("version", ["", "0"])
def test_RW_1_a_version_must_say_where_to_begin(clock: FakeClock, version: str) -> None:
    source = FakeSource()
    with pytest.raises(ValueError, match="cannot be resumed"):
        ResumingWatch(ListWatch(source.client(), source.resource), version, clock, Stop())


def test_RW_1_it_goes_on_from_the_last_version_after_a_second(world: World) -> None:
    world.source.add(pod("a"))
    assert "ADDED a" == world.next()
    world.source.end_watches()
    world.source.add(pod("b"))
    assert "ADDED b" == world.next()
    assert (["10", "11"], [1.0]) == (world.source.params("WATCH", "resourceVersion"), world.stop.waits)


def test_RW_1_the_server_may_ask_for_more_time(world: World) -> None:
    world.source.fail("WATCH", refusal(500, "InternalError", details={"retryAfterSeconds": 7}))
    world.source.add(pod("a"))
    assert "ADDED a" == world.next()
    assert [7.0] == world.stop.waits


def test_RW_2_bookmarks_move_the_version_and_are_not_passed_on(world: World) -> None:
    world.source.add(pod("a"))
    world.next()
    world.source.bookmark()
    world.source.end_watches()
    world.source.add(pod("b"))
    assert "ADDED b" == world.next()
    assert ["10", "12"] == world.source.params("WATCH", "resourceVersion")


@pytest.mark.parametrize("odd", [{"spec": {}}, {"kind": "Pod", "metadata": {"name": "x"}}])
def test_RW_2_an_object_without_a_version_is_the_end(world: World, odd: object) -> None:
    world.source.add(pod("a"))
    world.next()
    world.source.send_event("ADDED", odd)
    assert ["ERROR 500"] == world.rest()


def test_RW_3_an_expired_version_is_the_end(world: World) -> None:
    world.source.reset_watch()
    assert ["ERROR 410"] == world.rest()
    assert 1 == world.source.count("WATCH")


@pytest.mark.parametrize(("code", "reason"), [(410, "Expired"), (403, "Forbidden"), (401, "Unauthorized")])
def test_RW_3_a_final_refusal_is_the_end(world: World, code: int, reason: str) -> None:
    world.source.fail("WATCH", refusal(code, reason))
    assert [f"ERROR {code}"] == world.rest()


@pytest.mark.parametrize(
    "fault",
    [
        refusal(500, "InternalError"),
        refusal(504, "Timeout"),
        refusal(418, "Teapot"),
        RequestTimeout("GET", "/", "slow"),
        ConnectionRefused("GET", "/", "refused"),
    ],
)
def test_RW_3_other_failures_are_tried_again(world: World, fault: Response | TransportError) -> None:
    world.source.fail("WATCH", fault)
    world.source.add(pod("a"))
    assert "ADDED a" == world.next()


def test_RW_3_errors_and_ends_in_mid_stream_are_gone_on_from(world: World) -> None:
    world.source.add(pod("a"))
    world.next()
    world.source.send_error(500, "InternalError")
    world.source.add(pod("b"))
    assert "ADDED b" == world.next()
    world.source.break_watches()
    world.source.add(pod("c"))
    assert "ADDED c" == world.next()
    assert 0 == world.source.count("LIST")


def test_RW_3_the_stop_ends_it(world: World) -> None:
    world.source.add(pod("a"))
    world.next()
    world.stop.set()
    assert [] == world.rest()
