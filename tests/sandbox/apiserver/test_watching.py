"""Watches, through the client the operator uses."""

import threading
from collections.abc import Iterator

import pytest

from kube.client import Client, Watch, WatchEvent
from kube.errors import ApiError, Expired
from kube.objects import Object
from kube.resources import CONFIG_MAPS, PODS
from ports.clock import FakeClock
from ports.transport import ConnectionLost, Request, RequestTimeout
from sandbox.apiserver import ApiServer, InProcessTransport
from tests.sandbox.apiserver.calls import CORE, TABLE, Calls, config_map


@pytest.fixture
def client(server: ApiServer) -> Client:
    return Client(InProcessTransport(server, "watcher"))


def _watch(client: Client, version: str, timeout: int = 300, selector: str = "") -> Watch:
    return client.watch(
        CONFIG_MAPS, "default", resource_version=version, timeout_seconds=timeout, label_selector=selector
    )


def _seen(event: WatchEvent) -> tuple[str, str]:
    assert isinstance(event.object, Object)
    return event.type, event.object.metadata.name


def _take(events: Iterator[WatchEvent], count: int) -> list[tuple[str, str]]:
    return [_seen(next(events)) for _ in range(count)]


def test_a_watch_continues_where_a_list_ended(client: Client) -> None:
    client.create(CONFIG_MAPS, config_map("before"), "default")
    version = client.list_page(CONFIG_MAPS, "default").resource_version
    client.create(CONFIG_MAPS, config_map("a"), "default")
    client.patch(CONFIG_MAPS, "a", "default", {"data": {"x": "1"}})
    client.delete(CONFIG_MAPS, "a", "default")
    watch = _watch(client, version)
    assert [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")] == _take(iter(watch), 3)
    watch.close()


def test_a_deletion_carries_its_own_version(client: Client, server: ApiServer) -> None:
    created = client.create(CONFIG_MAPS, config_map("a"), "default")
    client.delete(CONFIG_MAPS, "a", "default")
    watch = _watch(client, created.metadata.resource_version)
    event = next(iter(watch))
    watch.close()
    assert isinstance(event.object, Object)
    assert str(server.storage.version) == event.object.metadata.resource_version


def test_without_a_version_a_watch_begins_with_the_current_objects(client: Client) -> None:
    client.create(CONFIG_MAPS, config_map("a"), "default")
    watch = _watch(client, "0")
    assert [("ADDED", "a")] == _take(iter(watch), 1)
    watch.close()


def test_a_watch_shows_objects_entering_and_leaving_its_selection(client: Client) -> None:
    start = client.create(CONFIG_MAPS, config_map("a"), "default").metadata.resource_version
    for label in ("yes", "yes", "no"):
        client.patch(CONFIG_MAPS, "a", "default", {"metadata": {"labels": {"in": label}}, "data": {"x": label}})
    client.patch(CONFIG_MAPS, "a", "default", {"metadata": {"labels": {"in": "yes"}}})
    client.patch(CONFIG_MAPS, "a", "default", {"data": {"x": "other"}})
    watch = _watch(client, start, selector="in=yes")
    expected = [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("MODIFIED", "a")]
    assert expected == _take(iter(watch), 4)
    watch.close()


def test_other_namespaces_and_resources_are_not_seen(client: Client) -> None:
    version = client.list_page(CONFIG_MAPS, "default").resource_version
    client.create(CONFIG_MAPS, config_map("elsewhere"), "kube-system")
    client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "default")
    client.create(CONFIG_MAPS, config_map("here"), "default")
    watch = _watch(client, version)
    assert [("ADDED", "here")] == _take(iter(watch), 1)
    watch.close()


@pytest.mark.rule("REF-40a")
def test_initial_events_end_with_a_marked_bookmark(client: Client) -> None:
    client.create(CONFIG_MAPS, config_map("a"), "default")
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    watch = client.watch(CONFIG_MAPS, "default", resource_version="", timeout_seconds=60, options=options)
    events = iter(watch)
    assert ("ADDED", "a") == _seen(next(events))
    end = next(events)
    watch.close()
    assert isinstance(end.object, Object)
    assert ("BOOKMARK", "true") == (end.type, end.object.metadata.annotations["k8s.io/initial-events-end"])


def test_a_version_that_is_too_old_is_an_error_event(client: Client, server: ApiServer) -> None:
    version = client.list_page(CONFIG_MAPS).resource_version
    client.create(CONFIG_MAPS, config_map("a"), "default")
    server.storage.compact()
    events = list(_watch(client, version))
    assert ["ERROR"] == [event.type for event in events]
    assert isinstance(events[0].object, Expired)
    assert 410 == events[0].object.code


def test_initial_events_need_the_right_match(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.watch(CONFIG_MAPS, resource_version="", timeout_seconds=1, options={"sendInitialEvents": "true"})
    assert (422, "resourceVersionMatch") == (refused.value.code, refused.value.details.causes[0].field)


class _Reading:
    """Reads a watch in its own thread."""

    def __init__(self, watch: Watch) -> None:
        self.events: list[WatchEvent] = []
        self._came = threading.Condition()
        self.error: Exception | None = None
        self._watch = watch
        self._thread = threading.Thread(target=self._read, name="reader")
        self._thread.start()

    def _read(self) -> None:
        try:
            for event in self._watch:
                with self._came:
                    self.events.append(event)
                    self._came.notify_all()
        except (ConnectionLost, RequestTimeout) as error:
            self.error = error
        finally:
            self._watch.close()

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.events) >= count, 5)

    def join(self) -> None:
        self._thread.join(5)
        assert not self._thread.is_alive()


def test_bookmarks_come_every_minute_and_before_the_end(client: Client, clock: FakeClock, server: ApiServer) -> None:
    reading = _Reading(_watch(client, str(server.storage.version), timeout=90))
    clock.wait_for_waiters()
    clock.step(60)
    reading.wait_for(1)
    clock.wait_for_waiters()
    clock.step(30)
    reading.join()
    assert ["BOOKMARK", "BOOKMARK"] == [event.type for event in reading.events]
    assert reading.error is None


@pytest.mark.rule("TH-10")
def test_abort_ends_a_blocked_read(client: Client, clock: FakeClock) -> None:
    watch = _watch(client, "0")
    reading = _Reading(watch)
    clock.wait_for_waiters()
    watch.abort()
    reading.join()
    assert ([], None) == (reading.events, reading.error)


def test_disconnect_breaks_all_watches(client: Client, clock: FakeClock, server: ApiServer) -> None:
    reading = _Reading(_watch(client, "0"))
    clock.wait_for_waiters()
    server.disconnect()
    reading.join()
    assert isinstance(reading.error, ConnectionLost)


@pytest.mark.rule("TH-13")
def test_a_reader_gives_up_on_a_silent_watch(server: ApiServer, clock: FakeClock) -> None:
    request = Request("GET", f"{CORE}/configmaps?watch=true&timeoutSeconds=3600")
    stream = InProcessTransport(server).stream(request, idle_timeout=100)
    reading = _Reading(Watch(stream, CONFIG_MAPS))
    clock.wait_for_waiters()
    clock.step(100)
    reading.join()
    assert isinstance(reading.error, RequestTimeout)


def test_a_restored_snapshot_expires_open_watches(client: Client, clock: FakeClock, server: ApiServer) -> None:
    client.create(CONFIG_MAPS, config_map("a"), "default")
    snapshot = server.snapshot()
    reading = _Reading(_watch(client, str(server.storage.version)))
    clock.wait_for_waiters()
    server.restore(snapshot)
    reading.join()
    assert [410] == [event.object.code for event in reading.events if isinstance(event.object, ApiError)]


def test_only_the_first_table_of_a_watch_has_a_header(call: Calls) -> None:
    for name in "ab":
        call.made(f"{CORE}/configmaps", config_map(name))
    request = Request("GET", f"{CORE}/configmaps?watch=true", {"accept": TABLE})
    stream = call.server.open_stream("tester", request)
    lines = next(iter(stream)).splitlines()
    stream.close()
    headers = [b'"columnDefinitions":null' not in line for line in lines]
    assert [True, False] == headers
