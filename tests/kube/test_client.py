import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.api_resources import ApiResources
from kube.client import Client, Watch, WatchEvent, _lines
from kube.errors import ApiError, Expired, Forbidden, InternalError, NotFound
from kube.objects import Object
from kube.resources import ADVANCED_STATEFUL_SETS, NODES, PODS, STATEFUL_SETS
from ports.transport import Request, RequestTimeout, Response
from tests.kube.fakes import Answer, FakeApi, FakeStream, ScriptedTransport, answer, status

POD = {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "5"}}


class Chunks(FakeStream):
    """A stream of the given chunks."""

    def __init__(self, chunks: list[bytes]) -> None:
        super().__init__(Response(200, {}, b""))
        self.chunks = chunks

    def __iter__(self) -> Any:
        return iter(self.chunks)


def client(*script: Answer) -> tuple[Client, list[Request]]:
    transport = ScriptedTransport(script)
    return Client(transport, timeout=7), transport.requests


@pytest.mark.rule("F1")
def test_find_returns_none_only_for_an_explicit_not_found() -> None:
    kube, _ = client(answer(200, POD), status(404, "NotFound", name="a"))

    found = kube.find(PODS, "a", "ns")

    assert found is not None
    assert "ns/a" == found.key
    assert kube.find(PODS, "a", "ns") is None


@pytest.mark.parametrize(
    ("answered", "raised"),
    [
        (Response(404, {}, b"404 page not found"), NotFound),
        (status(404, "NotFound"), NotFound),
        (status(403, "Forbidden", name="a"), Forbidden),
        (RequestTimeout("GET", "/api/v1/namespaces/ns/pods/a", "no answer"), RequestTimeout),
    ],
)
@pytest.mark.rule("F1")
def test_only_not_found_means_absence(answered: Answer, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        client(answered)[0].find(PODS, "a", "ns")


def test_a_list_is_split_into_objects_that_know_their_kind() -> None:
    listed = answer(200, {"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "next"}, "items": [POD]})
    kube, requests = client(listed)

    page = kube.list_page(PODS, "ns", label_selector="a=b", limit=500, continue_token="token", resource_version="0")

    assert ("9", "next") == (page.resource_version, page.continue_token)
    assert [("v1", "Pod", "ns/a")] == [(item.api_version, item.kind, item.key) for item in page.items]
    url = urlsplit(requests[0].url)
    assert "/api/v1/namespaces/ns/pods" == url.path
    expected = {"labelSelector": ["a=b"], "limit": ["500"], "continue": ["token"], "resourceVersion": ["0"]}
    assert expected == parse_qs(url.query)


@pytest.mark.rule("REST-4")
def test_a_repeated_list_has_each_object_once() -> None:
    body = msgspec.json.encode({"kind": "PodList", "metadata": {}, "items": [POD, POD | {"spec": {}}, POD]})

    class Repeating(ScriptedTransport):
        def request(self, request: Request) -> Response:
            assert request.receiver is not None
            request.receiver()(body[:-20])
            request.receiver()(body)
            return Response(200, {}, b"", len(body))

    assert ["ns/a"] * 3 == [item.key for item in Client(Repeating([])).list_page(PODS).items]


@pytest.mark.rule("REF-16")
def test_rejects_a_table() -> None:
    kube, _ = client(answer(200, {"kind": "Table", "metadata": {}}))

    with pytest.raises(ApiError, match="a Table instead of a PodList"):
        kube.list_page(PODS)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"kind":"PodList","metadata":{}}', b""])
def test_an_unreadable_list_is_a_server_failure(body: bytes) -> None:
    kube, _ = client(Response(200, {}, body))

    with pytest.raises(InternalError, match="undecodable"):
        kube.list_page(PODS)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b""])
def test_an_unreadable_object_is_a_server_failure(body: bytes) -> None:
    kube, _ = client(Response(200, {}, body))

    with pytest.raises(InternalError, match="undecodable"):
        kube.get(PODS, "a", "ns")


@pytest.mark.rule("REF-20")
def test_a_watch_requests_bookmarks() -> None:
    transport = ScriptedTransport([answer(200)])
    Client(transport).watch(NODES, resource_version="5", timeout_seconds=300, options={"sendInitialEvents": "true"})

    query = parse_qs(urlsplit(transport.requests[0].url).query)
    assert {
        "watch": ["true"],
        "allowWatchBookmarks": ["true"],
        "resourceVersion": ["5"],
        "timeoutSeconds": ["300"],
        "sendInitialEvents": ["true"],
    } == query


@pytest.mark.parametrize(("timeout", "patience"), [(100, 130.0), (300, 180.0)])
@pytest.mark.rule("TH-13")
def test_a_watch_may_outlive_its_timeout_by_30_seconds_and_be_silent_for_three_minutes(
    timeout: int, patience: float
) -> None:
    idle: list[float] = []

    class Transport(ScriptedTransport):
        def stream(self, request: Request, idle_timeout: float) -> Any:
            idle.append(idle_timeout)
            return super().stream(request, idle_timeout)

    Client(Transport([answer(200)])).watch(NODES, resource_version="5", timeout_seconds=timeout)

    assert [patience] == idle


def events(*lines: bytes) -> list[WatchEvent]:
    return list(Watch(Chunks([line + b"\n" for line in lines]), PODS))


@pytest.mark.rule("REF-30")
def test_an_unreadable_line_is_an_internal_error() -> None:
    (event,) = events(b'{"type":')

    assert ("ERROR", InternalError) == (event.type, type(event.object))


@pytest.mark.rule("REF-24")
def test_an_object_without_metadata_does_not_end_the_watch() -> None:
    odd, good = events(b'{"type":"ADDED","object":{}}', b'{"type":"ADDED","object":%s}' % msgspec.json.encode(POD))

    assert isinstance(odd.object, ApiError)
    assert isinstance(good.object, Object)


@pytest.mark.rule("REF-27")
def test_an_error_event_carries_its_class() -> None:
    (event,) = events(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}}')

    assert isinstance(event.object, Expired)


def test_a_refused_watch_is_closed() -> None:
    transport = ScriptedTransport([status(404, "NotFound")])
    with pytest.raises(NotFound, match="WATCH /api/v1/pods"):
        Client(transport).watch(PODS, resource_version="", timeout_seconds=1)


@pytest.mark.slow
@given(st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"")), max_size=5), st.data())
@pytest.mark.rule("TH-18")
def test_lines_do_not_depend_on_chunk_borders(lines: list[bytes], data: st.DataObject) -> None:
    text = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert [line for line in lines if line.strip()] == list(_lines(Chunks(chunks)))


def test_a_deletion_sends_its_preconditions_and_options() -> None:
    kube, requests = client(answer(200), answer(200))

    kube.delete(PODS, "a", "ns", uid="u", resource_version="5", propagation="Orphan", grace_period_seconds=0)
    kube.delete(NODES, "n")

    bodies = [msgspec.json.decode(request.body or b"") for request in requests]
    assert {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
        "propagationPolicy": "Orphan",
        "gracePeriodSeconds": 0,
    } == bodies[0]
    assert {"apiVersion": "v1", "kind": "DeleteOptions"} == bodies[1]


def test_each_verb_has_its_method_path_and_type() -> None:
    kube, requests = client(*[answer(200, POD)] * 4)

    kube.create(PODS, POD, "ns")
    kube.patch(PODS, "a", "ns", {}, subresource="status")
    kube.replace(PODS, "a", "ns", POD, subresource="status")
    kube.get(NODES, "n")

    asked = [(r.method, r.url, r.headers.get("content-type"), r.timeout) for r in requests]
    assert [
        ("POST", "/api/v1/namespaces/ns/pods", "application/json", 7),
        ("PATCH", "/api/v1/namespaces/ns/pods/a/status", "application/merge-patch+json", 7),
        ("PUT", "/api/v1/namespaces/ns/pods/a/status", "application/json", 7),
        ("GET", "/api/v1/nodes/n", None, 7),
    ] == asked


def _endless(piece: bytes, taken: list[int]) -> Iterator[bytes]:
    for number in itertools.count():
        taken.append(number)
        yield piece


@pytest.mark.rule("TH-18")
def test_a_watch_line_without_end_ends_the_watch() -> None:
    taken: list[int] = []
    line = itertools.chain([b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'], _endless(b"x" * 65536, taken))

    events = list(Watch(_StreamOf(line), PODS))

    assert ["ADDED", "ERROR"] == [event.type for event in events]
    assert "a watch line of more than 16777216 bytes" in str(events[1].object)
    assert len(taken) <= 258


@pytest.mark.rule("REST-9")
def test_reads_only_the_beginning_of_an_endless_refusal() -> None:
    taken: list[int] = []

    class Refusing(ScriptedTransport):
        def stream(self, request: Request, idle_timeout: float) -> Any:
            stream = _StreamOf(_endless(b"no" * 32768, taken))
            stream.status = 500
            return stream

    with pytest.raises(InternalError, match="no"):
        Client(Refusing([])).watch(PODS, resource_version="5", timeout_seconds=300)
    assert len(taken) <= 17


class _StreamOf(FakeStream):
    """A stream of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__(answer(200))
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


@pytest.mark.parametrize("code", [204, 301, 302, 304])
def test_an_error_status_is_not_a_success(code: int) -> None:
    kube, _ = client(Response(code, {"location": "/login"}, b""))

    with pytest.raises(ApiError):
        kube.patch(PODS, "a", "ns", {})


@pytest.mark.parametrize("kind", ["Status", "PodList", "Node"])
def test_an_object_of_another_kind_is_a_server_failure(kind: str) -> None:
    kube, _ = client(answer(200, {"kind": kind, "metadata": {"name": "a"}}))

    with pytest.raises(InternalError, match=f"answered a {kind} instead of a Pod"):
        kube.find(PODS, "a", "ns")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"kind":"Status"}'])
def test_discovery_rejects_a_web_page(body: bytes) -> None:
    kube, _ = client(Response(200, {}, body))

    with pytest.raises(InternalError, match="undecodable"):
        ApiResources(kube).has_subresource(PODS, "status")


@pytest.mark.parametrize("filler", [b" ", b'"x"'])
@pytest.mark.rule("TH-5")
def test_gives_up_a_list_without_a_complete_item(monkeypatch: pytest.MonkeyPatch, filler: bytes) -> None:
    monkeypatch.setattr("kube.client._LONGEST_PENDING", 1 << 12)
    head = b'{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"a"},"x":['
    transport = _Pieces([head, *[filler * 1000] * 5])

    with pytest.raises(ApiError, match=r"gave up after \d+ bytes of a list without a complete item"):
        Client(transport).list_page(PODS)


@pytest.mark.rule("TH-5")
def test_gives_up_an_endless_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.client._LONGEST_PAGE", 1 << 12)
    item = b'{"metadata":{"name":"a"},"spec":{}},'
    transport = _Pieces([b'{"kind":"PodList","metadata":{},"items":[', *[item * 20] * 20])

    with pytest.raises(ApiError, match="bytes of one page"):
        Client(transport).list_page(PODS)


class _Pieces:
    """Streams a body in pieces to a request's receiver."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def request(self, request: Request) -> Response:
        assert request.receiver
        receive = request.receiver()
        for piece in self._pieces:
            receive(piece)
        return Response(200, {}, b"")

    def stream(self, request: Request, idle_timeout: float) -> Any:
        raise AssertionError(request)


def test_another_resource_is_addressed_in_place_of_one() -> None:
    api = FakeApi()
    client = Client(api, instead={STATEFUL_SETS: ADVANCED_STATEFUL_SETS, ADVANCED_STATEFUL_SETS: STATEFUL_SETS})
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "ns"}}
    client.create(STATEFUL_SETS, body, "ns")
    path = ADVANCED_STATEFUL_SETS.path("ns", "db")
    assert "apps.pingcap.com/v1" == api.objects[path]["apiVersion"]
    assert "apps.pingcap.com/v1" == client.get(STATEFUL_SETS, "db", "ns").api_version
    client.patch(STATEFUL_SETS, "db", "ns", {"metadata": {"labels": {"a": "b"}}})
    client.delete(STATEFUL_SETS, "db", "ns")
    assert {path} == {urlsplit(each.url).path for each in api.requests[1:]}
    with pytest.raises(NotFound):
        client.get(ADVANCED_STATEFUL_SETS, "db", "ns")
    assert api.requests[-1].url == STATEFUL_SETS.path("ns", "db")
