"""The initial list as the first part of a watch (REF-40), one step of the reflector at a time."""

import pytest

from kube.objects import Object
from ports.clock import FakeClock
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, Response, TransportError
from tests.informers.fake_source import FakeSource, pod, refusal
from tests.informers.support import Recorder, informer_of, running
from tests.informers.test_reflector import World


@pytest.fixture
def world(clock: FakeClock) -> World:
    world = World(clock, streaming=True)
    world.source.add(pod("a"))
    world.source.add(pod("b"))
    return world


def _is_backoff(pause: float) -> bool:
    return pause >= 0.8


def _told(world: World) -> list[str]:
    """Step until the next step would wait."""
    while not ((stream := world.source.last_stream) and not stream.closed and stream.would_block()):
        world.step()
    return world.sink.told


@pytest.mark.rule("REF-40")
def test_one_watch_delivers_the_list_and_the_changes(world: World) -> None:
    assert ["replace a,b @12"] == _told(world)
    world.source.add(pod("c"))
    assert ["add c@13"] == _told(world)[1:]
    (asked,) = world.source.requests
    assert ("WATCH", "/api/v1/pods") == (asked.verb, asked.path)
    del asked.params["timeoutSeconds"]  # type: ignore[attr-defined]  # drawn, and tested elsewhere
    assert {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    } == asked.params


@pytest.mark.rule("REF-40")
def test_never_requests_an_older_version_than_a_known_one(world: World) -> None:
    _told(world)
    world.source.send_error(500, "StorageReadError")
    assert _is_backoff(world.step())
    assert ["replace a,b @12"] * 2 == _told(world)
    assert ["", "12"] == world.source.params("WATCH", "resourceVersion")


@pytest.mark.rule("REF-40a", "REF-40b")
def test_changes_before_the_end_are_part_of_the_list(world: World) -> None:
    world.source.completes_streams = False
    assert [] == _told(world)
    world.source.modify(pod("a"))
    world.source.delete("ns/b")
    world.source.send_event("BOOKMARK", world.source.end_of_initial_events("false"))
    world.source.bookmark()
    assert ([], "") == (_told(world), world.reflector.last_sync_resource_version)
    world.source.send_event("BOOKMARK", world.source.end_of_initial_events())
    assert ["replace a @15"] == _told(world)
    assert "15" == world.reflector.last_sync_resource_version


@pytest.mark.parametrize("cut", [None, ConnectionLost("GET", "/", "reset")])
@pytest.mark.rule("REF-40c")
def test_a_stream_that_ends_early_starts_over(world: World, cut: TransportError | None) -> None:
    world.source.completes_streams = False
    _told(world)
    world.source.delete_drop_watch("ns/b")
    world.source.send(cut)
    assert _is_backoff(world.step())
    world.source.completes_streams = True
    assert ["replace a @13"] == _told(world)
    assert (0, 2) == (world.source.count("LIST"), world.source.count("WATCH"))


@pytest.mark.parametrize("fault", [ConnectionRefused("GET", "/", "refused"), refusal(429, "TooManyRequests")])
@pytest.mark.rule("REF-40c")
def test_a_server_that_is_down_or_busy_gets_another_request(world: World, fault: TransportError | Response) -> None:
    world.source.fail("WATCH", fault)
    assert _is_backoff(world.step())
    assert ["replace a,b @12"] == _told(world)
    assert 0 == world.source.count("LIST")


@pytest.mark.parametrize(
    "fault", [refusal(403, "Forbidden"), refusal(500, "InternalError"), RequestTimeout("GET", "/", "slow")]
)
@pytest.mark.rule("REF-40c")
def test_other_failures_lead_to_a_list_in_this_round_only(world: World, fault: TransportError | Response) -> None:
    world.source.fail("WATCH", fault)
    assert 0.0 == world.step()
    assert ["replace a,b @12"] == _told(world)
    world.source.send_error(410, "Expired")
    assert _is_backoff(world.step())
    _told(world)
    assert ["true", "", "true"] == world.source.params("WATCH", "sendInitialEvents")
    assert (1, []) == (world.source.count("LIST"), world.errors)


@pytest.mark.rule("REF-40c")
def test_a_stream_that_is_closed_at_once_is_followed_by_a_list(world: World) -> None:
    world.source.fail("WATCH", Response(200, {}, b""))
    world.step()
    assert 0.0 == world.step()
    assert ["replace a,b @12"] == _told(world)
    assert 1 == world.source.count("LIST")


@pytest.mark.rule("REF-40d")
def test_streaming_is_off_by_default(clock: FakeClock) -> None:
    world = World(clock)
    assert ["replace  @10"] == _told(world)
    assert [""] == world.source.params("WATCH", "sendInitialEvents")


@pytest.mark.parametrize(
    "answer", [refusal(422, "Invalid", "sendInitialEvents is forbidden"), refusal(400, "BadRequest")]
)
@pytest.mark.rule("REF-40e")
def test_a_server_without_streaming_gets_no_second_request_for_it(world: World, answer: Response) -> None:
    world.source.fail("WATCH", answer)
    _told(world)
    world.source.send_error(410, "Expired")
    world.step()
    _told(world)
    assert ["true", "", ""] == world.source.params("WATCH", "sendInitialEvents")
    assert 2 == world.source.count("LIST")


@pytest.mark.rule("REF-40e")
def test_a_silent_stream_ends_and_a_list_follows(world: World) -> None:
    world.source.completes_streams = False
    _told(world)
    silent = world.source.last_stream
    assert silent is not None
    assert 30.0 == silent.idle_timeout
    world.source.send(RequestTimeout("GET", "/", "silent for 30 s"))
    assert 0.0 == world.step()
    assert silent.closed
    assert ["replace a,b @12"] == _told(world)
    assert 1 == world.source.count("LIST")


@pytest.mark.rule("REF-40e")
def test_silence_after_the_end_costs_another_watch_only(world: World) -> None:
    _told(world)
    world.clock.step(30)
    world.source.send(RequestTimeout("GET", "/", "silent for 30 s"))
    assert ["replace a,b @12"] == _told(world)
    assert ["true", ""] == world.source.params("WATCH", "sendInitialEvents")
    assert 0 == world.source.count("LIST")


@pytest.mark.parametrize(
    "too_old", [refusal(410, "Expired"), refusal(504, "Timeout", "Too large resource version: 99")]
)
@pytest.mark.rule("REF-40f")
def test_an_expired_version_is_dropped_at_once_and_then_with_backoff(world: World, too_old: Response) -> None:
    _told(world)
    world.source.send_error(410, "Expired")
    world.step()
    world.source.fail("WATCH", too_old, too_old)
    assert 0.0 == world.step()
    assert _is_backoff(world.step())
    _told(world)
    assert ["", "12", "", ""] == world.source.params("WATCH", "resourceVersion")
    assert 0 == world.source.count("LIST")


@pytest.mark.rule("REF-40g")
def test_each_object_is_transformed_once(clock: FakeClock) -> None:
    source, seen = FakeSource(), []

    def transform(obj: Object) -> Object:
        seen.append(obj.key)
        return obj

    informer = informer_of(source, clock, streaming=True)
    informer.set_transform(transform)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    source.add(pod("a"))
    source.add(pod("b"))
    with running(informer):
        source.add(pod("c"))
        recorder.wait_for(3)
    assert ["ns/a", "ns/b", "ns/c"] == seen


@pytest.mark.rule("REF-40e")
def test_a_stream_of_events_without_the_end_bookmark_is_replaced_by_a_list(world: World) -> None:
    world.source.completes_streams = False
    _told(world)
    for version in range(8):
        world.clock.step(10)
        world.source.modify(pod("a", version=str(version)))
        world.step()

    assert "replace a,b @20" in _told(world)
    world.source.send_error(500, "StorageReadError")
    world.step()
    _told(world)
    assert 2 == len(world.source.params("LIST", "resourceVersion"))


@pytest.mark.rule("REF-40e")
def test_bookmarks_that_do_not_end_the_initial_events_keep_no_stream_alive(world: World) -> None:
    world.source.completes_streams = False
    _told(world)
    for _ in range(8):
        world.clock.step(10)
        world.source.send_event("BOOKMARK", world.source.end_of_initial_events("false"))
        world.step()

    assert ["replace a,b @12"] == _told(world)
