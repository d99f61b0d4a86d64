"""Servers, and proxies in front of them, that answer what no client hopes for: one bad thing costs itself alone."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from informers.delta_queue import DeltaFIFO
from informers.deltas import ReplacedAll
from informers.list_watch import ListWatch
from informers.metrics import InformerMetrics
from informers.notifications import Add
from informers.reflector import Reflector
from informers.shared_informer import apply_delta
from informers.store import Store
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ByteStream, ConnectionLost, ConnectionRefused, Request, RequestTimeout, Response
from tests.informers.fake_source import pod

_MINUTE = 60.0
_DEEP = b'{"metadata":{"name":"deep"},"spec":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


class OddServer:
    """Answers every list and every watch by a script; a watch's answer may be chunks, or an error to raise."""

    def __init__(self, lists: Callable[[], bytes], watches: Callable[[], Any]) -> None:
        self._lists, self._watches = lists, watches
        self.asked: list[str] = []

    def request(self, request: Request) -> Response:
        self.asked.append("LIST")
        return Response(200, {}, self._lists())

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        self.asked.append("WATCH")
        answer = self._watches()
        if isinstance(answer, Exception):
            raise answer
        return _Stream(*answer)


class _Stream:
    headers: Mapping[str, str] = {}

    def __init__(self, status: int, chunks: list[bytes | Exception]) -> None:
        self.status = status
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


class World:
    """A reflector, its queue and its clock in front of such a server."""

    def __init__(self, server: OddServer, *, streaming: bool = False) -> None:
        self.clock, self.server, self.registry = FakeClock(), server, CollectorRegistry()
        self.queue = DeltaFIFO(self.clock)
        metrics = InformerMetrics(self.registry).claim("", PODS)
        source = ListWatch(Client(server), PODS)
        self.reflector = Reflector(
            source, self.queue, self.clock, SeededRandomness(1), metrics=metrics, streaming=streaming
        )

    def requests_in(self, seconds: float) -> int:
        """The number of requests to the server in this many seconds."""
        end, steps = self.clock.now() + seconds, 0
        while self.clock.now() < end:
            self.clock.step(self.reflector.step())
            steps += 1
            assert steps < 10_000, "it spins"
        return len(self.server.asked)

    @property
    def skipped(self) -> float | None:
        return self.registry.get_sample_value("informer_unreadable_objects_total", {"resource": "pods"})


def listed(*items: Any, kind: str = "PodList") -> bytes:
    """A list as the server writes it; items are trees or bytes."""
    raws = [item if isinstance(item, bytes) else _bytes(item) for item in items]
    return _bytes({"kind": kind, "metadata": {"resourceVersion": "5"}, "items": []})[:-2] + b",".join(raws) + b"]}"


def event(of: str, obj: Any, version: int = 0) -> bytes:
    """A line of a watch."""
    if version:
        obj = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(version)}}
    return _bytes({"type": of, "object": obj}) + b"\n"


def _bytes(tree: Any) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


def _counting() -> Callable[[], int]:
    numbers = iter(range(6, 1_000_000))
    return lambda: next(numbers)


_GONE: Json = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
_number = _counting()

ENDINGS: dict[str, Callable[[], Any]] = {
    "after one event": lambda: (200, [event("ADDED", pod("a"), _number())]),
    "after one event of no new version": lambda: (200, [event("ADDED", pod("a"), 5)]),
    "after one bookmark": lambda: (200, [event("BOOKMARK", {"kind": "Pod", "metadata": {}}, _number())]),
    "after an event of something else": lambda: (200, [event("ADDED", {"kind": "Node", "metadata": {"name": "n"}})]),
    "after an unknown event": lambda: (200, [event("SURPRISE", pod("a"), _number())]),
    "after nothing": lambda: (200, []),
    "after an empty line": lambda: (200, [b"\n\n"]),
    "with expired": lambda: (200, [event("ERROR", _GONE)]),
    "with expired after one event": lambda: (200, [event("ADDED", pod("a"), _number()), event("ERROR", _GONE)]),
    "with an error": lambda: (200, [event("ERROR", {"kind": "Status", "code": 500})]),
    "with an error that is none": lambda: (200, [event("ERROR", None)]),
    "with 429": lambda: (200, [event("ERROR", {"kind": "Status", "code": 429, "reason": "TooManyRequests"})]),
    "with a page": lambda: (200, [b"<html>\n"]),
    "with a status": lambda: (200, [_bytes(_GONE)]),
    "with a list": lambda: (200, [listed(pod("a"))]),
    "cut after one event": lambda: (200, [event("ADDED", pod("a"), _number()), ConnectionLost("GET", "/", "reset")]),
    "cut at once": lambda: (200, [ConnectionLost("GET", "/", "reset")]),
    "by a refusal, 410": lambda: (410, [_bytes(_GONE)]),
    "by a refusal, 403": lambda: (403, [b""]),
    "by a refusal, 204": lambda: (204, []),
    "by a refusal, 503": lambda: (503, [b"<html>"]),
    "by a refusal, 429": lambda: (429, [b""]),
    "by nobody who listens": lambda: ConnectionRefused("GET", "/", "refused"),
    "by a time-out": lambda: RequestTimeout("GET", "/", "silent"),
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.rule("REF-25")
def test_watches_that_end_at_once_reach_the_server_at_a_limited_rate(ending: str, streaming: bool) -> None:
    world = World(OddServer(lambda: listed(pod("a")), ENDINGS[ending]), streaming=streaming)

    assert world.requests_in(_MINUTE) <= 1.2 * _MINUTE, world.server.asked[:10]


@pytest.mark.rule("REF-25")
def test_a_server_that_ends_each_watch_after_one_event_still_makes_progress() -> None:
    world = World(OddServer(lambda: listed(pod("a")), ENDINGS["after one event"]))

    world.requests_in(_MINUTE)

    assert world.server.asked.count("LIST") == 1
    assert len(world.queue) >= 50


@pytest.mark.parametrize(
    "item",
    [
        {"spec": {}},
        {"metadata": None},
        {"metadata": []},
        {"metadata": {}},
        {"metadata": {"name": ""}},
        {"metadata": {"name": 5}},
        {"metadata": {"name": "x", "labels": []}},
        {"metadata": {"name": "x", "labels": {"a": 1}}},
        {"metadata": {"name": "x", "ownerReferences": [{}]}},
        {"metadata": {"name": "x", "finalizers": "f"}},
        {"kind": "Node", "metadata": {"name": "x"}},
        None,
        5,
        "x",
        [],
        b'{"metadata":{"name":"x","generation":1' + b"0" * 5000 + b"}}",
        b'{"metadata":{"name":"\xff"}}',
        b'{"metadata":{"name":"\\ud800"}}',
        _DEEP,
    ],
    ids=repr,
)
@pytest.mark.rule("REF-14")
def test_an_item_that_is_no_object_costs_itself_alone(item: Any) -> None:
    world = World(OddServer(lambda: listed(pod("a"), item, pod("b")), lambda: (200, [])))

    with capture_logs() as logs:
        world.reflector.step()

    assert ["5", 1.0] == [world.reflector.last_sync_resource_version, world.skipped]
    assert ["ns/a", "ns/b"] == _queued(world.queue)
    assert ["list items cannot be read, skipped"] == [entry["event"] for entry in logs]


@pytest.mark.rule("REF-14")
def test_the_log_names_the_item_and_shows_nothing_else_of_it() -> None:
    item = {"data": {"password": "hidden"}, "metadata": {"namespace": "ns", "name": "x", "labels": ["hidden"]}}
    world = World(OddServer(lambda: listed(item), lambda: (200, [])))

    with capture_logs() as logs:
        world.reflector.step()

    assert "item ns/x: Expected `object`, got `array` - at `$.metadata.labels`" == logs[0]["items"][0]
    assert "hidden" not in str(logs)


@pytest.mark.parametrize(
    "field", ["finalizers", "labels", "annotations", "ownerReferences", "namespace", "uid", "generation", "selfLink"]
)
def test_null_in_the_metadata_counts_as_absent(field: str) -> None:
    item = {"metadata": {"name": "x", field: None, "managedFields": [{"manager": "m"}]}}
    world = World(OddServer(lambda: listed(item), lambda: (200, [event("MODIFIED", item | {"kind": "Pod"})])))

    world.reflector.step()

    assert ["x"] == _queued(world.queue)
    assert world.skipped == 0


def test_null_in_the_metadata_of_a_list_is_as_good_as_absent() -> None:
    body = listed(pod("a")).replace(b'"resourceVersion":"5"', b'"resourceVersion":"5","continue":null', 1)
    world = World(OddServer(lambda: body, lambda: (200, [])))

    world.reflector.step()

    assert ["ns/a"] == _queued(world.queue)


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Pod"},
        {"kind": "Pod", "metadata": {}},
        {"kind": "Pod", "metadata": {"name": "x", "labels": [1]}},
        {"kind": "Status", "metadata": {}},
        None,
        7,
        "deep",
    ],
    ids=repr,
)
@pytest.mark.rule("REF-24")
def test_an_event_of_no_object_costs_itself_alone(obj: Any) -> None:
    odd = b'{"type":"MODIFIED","object":' + _DEEP + b"}\n" if obj == "deep" else event("MODIFIED", obj)
    world = World(OddServer(lambda: listed(pod("a")), lambda: (200, [odd + event("ADDED", pod("b"), 7)])))

    with capture_logs() as logs:
        for _ in range(4):
            world.reflector.step()

    assert ["7", 1.0] == [world.reflector.last_sync_resource_version, world.skipped]
    assert "watch event without the expected object, skipped" in [entry["event"] for entry in logs]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        _bytes({"kind": "Status", "metadata": {}, "status": "Success"}),
        _bytes({"kind": "Pod", "metadata": {"name": "a"}}),
        _bytes({"kind": "PodList", "metadata": {}}),
        _bytes({"kind": "Table", "metadata": {}, "rows": []}),
        listed(kind="NodeList"),
        listed(pod("a"), kind="List"),
        listed(pod("a"))[:-4],
    ],
)
@pytest.mark.rule("REF-16")
def test_an_answer_of_another_kind_replaces_nothing(body: bytes) -> None:
    bodies = iter([listed(pod("a")), *[body] * 1000])
    world = World(OddServer(lambda: next(bodies), lambda: (200, [event("ERROR", _GONE)])))

    with capture_logs() as logs:
        requests = world.requests_in(_MINUTE)

    assert ["ns/a"] == _queued(world.queue)
    assert requests < 20
    assert "list or watch failed" in [entry["event"] for entry in logs]


@pytest.mark.rule("LW-2")
def test_stops_reading_a_server_that_repeats_the_same_page_forever() -> None:
    page = json.loads(listed(pod("a")))
    page["metadata"]["continue"] = "more"
    world = World(OddServer(lambda: _bytes(page), lambda: (200, [])))

    with capture_logs() as logs:
        assert world.reflector.step() >= 0.8

    assert "LIST pods: the server sends the same page again" == logs[0]["error"]
    assert world.server.asked == ["LIST"] * 2


@pytest.mark.rule("REF-22")
def test_an_event_without_a_version_does_not_make_the_reflector_forget_where_it_is() -> None:
    lines = [event("MODIFIED", pod("a")), event("BOOKMARK", {"kind": "Pod", "metadata": {}})]
    world = World(OddServer(lambda: listed(pod("a")), lambda: (200, lines)))
    for _ in range(4):
        world.reflector.step()

    assert "5" == world.reflector.last_sync_resource_version


@pytest.mark.rule("FIFO-22")
def test_an_object_listed_twice_notifies_handlers_once() -> None:
    store = Store()
    first, last = (Object(_bytes(pod("a") | {"spec": {"number": number}})) for number in (1, 2))

    told = apply_delta(store, ReplacedAll((first, last), "5"), True)

    assert [Add(last, True)] == told
    assert [last] == store.list()


def _queued(queue: DeltaFIFO) -> list[str]:
    """The keys of the one list that is queued."""
    assert len(queue) == 1
    keys: list[str] = []
    queue.pop(lambda delta, _: keys.extend(obj.key for obj in delta.objects))  # type: ignore[union-attr]
    return keys
