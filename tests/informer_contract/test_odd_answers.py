"""Proxies in front of a server cut, delay and replace answers: each fault costs only what it touches."""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import pytest

from kube.resources import CONFIG_MAPS
from ports.transport import ByteStream, Request, Response, Transport
from tests.e2e.waiting import CLOCK, eventually
from tests.informer_contract.following import Heard, config_map, following, starting
from tests.informer_contract.servers import Server

pytestmark = pytest.mark.slow

_DEEP = b'{"metadata":{"name":"deep"},"data":' + b"[" * 3000 + b"]" * 3000 + b"}"


class Proxy:
    """Passes on, and changes the answers to lists and the streams of watches."""

    def __init__(
        self,
        transport: Transport,
        of_list: Callable[[bytes], bytes] = lambda body: body,
        of_watch: Callable[[ByteStream], ByteStream] = lambda stream: stream,
    ) -> None:
        self._transport, self._of_list, self._of_watch = transport, of_list, of_watch

    def request(self, request: Request) -> Response:
        """The whole answer, changed."""
        answer = self._transport.request(Request(request.method, request.url, request.headers, timeout=request.timeout))
        return Response(answer.status, answer.headers, self._of_list(answer.body))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """The stream, changed."""
        return self._of_watch(self._transport.stream(request, idle_timeout))


class OneEvent:
    """A watch that ends behind its first line."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.status = stream.status
        self.headers: Mapping[str, str] = stream.headers

    def __iter__(self) -> Iterator[bytes]:
        read = b""
        for chunk in self._stream:
            read += chunk
            if b"\n" in read:
                yield read[: read.index(b"\n") + 1]
                return

    def abort(self) -> None:
        self._stream.abort()

    def close(self) -> None:
        self._stream.close()


def create(server: Server, namespace: str, name: str, value: int = 1) -> None:
    server.admin.create(CONFIG_MAPS, config_map(name, value), namespace)


@pytest.mark.rule("REF-25")
def test_a_watch_that_ends_after_each_event_delivers_all_of_them_at_a_limited_rate(
    server: Server, namespace: str
) -> None:
    with following(server, namespace, between=lambda way: Proxy(way, of_watch=OneEvent)) as follower:
        started = CLOCK.now()
        for name in "abcd":
            create(server, namespace, name)

        follower.heard.await_told("add a=1", "add b=1", "add c=1", "add d=1")
        seconds = CLOCK.now() - started
    opened = [asked.at for asked in follower.traffic.asked if asked.verb == "watch"]
    assert follower.traffic.count("list") == 1
    assert len(opened) <= seconds + 2
    assert all(later - earlier > 0.95 for earlier, later in pairwise(opened))


@pytest.mark.parametrize(
    "item",
    [
        b'{"data":{}}',
        b'{"metadata":{}}',
        b'{"metadata":{"name":7}}',
        b"null",
        b'{"kind":"Secret","metadata":{"name":"s"}}',
        _DEEP,
    ],
    ids=["no metadata", "no name", "odd name", "null", "of another kind", "deep"],
)
@pytest.mark.rule("REF-14")
def test_an_odd_item_costs_itself_alone(server: Server, namespace: str, item: bytes) -> None:
    create(server, namespace, "a")

    def with_item(body: bytes) -> bytes:
        assert body.count(b'"items":[') == 1
        return body.replace(b'"items":[', b'"items":[' + item + b",")

    with following(server, namespace, between=lambda way: Proxy(way, of_list=with_item)) as follower:
        create(server, namespace, "b")
        follower.heard.await_told("add a=1", "add b=1")

    assert (1, 1.0) == (follower.traffic.count("list"), follower.skipped)


def test_null_in_the_metadata_is_as_good_as_absent(server: Server, namespace: str) -> None:
    create(server, namespace, "a")

    def with_nulls(body: bytes) -> bytes:
        tree = json.loads(body)
        for item in tree["items"]:
            item["metadata"] |= {"finalizers": None, "ownerReferences": None, "labels": None}
        return json.dumps(tree).encode()

    with following(server, namespace, between=lambda way: Proxy(way, of_list=with_nulls)) as follower:
        follower.heard.await_told("add a=1")

    assert 0 == follower.skipped


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>moved</html>",
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}',
        b'{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}',
        b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"}}',
    ],
    ids=["nothing", "a page", "a status", "another list", "no items"],
)
@pytest.mark.rule("REF-16")
def test_an_answer_of_another_kind_replaces_nothing(server: Server, namespace: str, body: bytes) -> None:
    create(server, namespace, "a")
    broken: list[bytes] = []

    def once_odd(whole: bytes) -> bytes:
        return broken.pop() if broken else whole

    def cut(stream: ByteStream) -> ByteStream:
        return Expiring(stream) if not stopped else stream

    stopped: list[bool] = []

    class Expiring(OneEvent):
        def __iter__(self) -> Iterator[bytes]:
            yield b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'

    with following(server, namespace, between=lambda way: Proxy(way, once_odd, cut)) as follower:
        broken.append(body)
        eventually(lambda: not broken)
        shown = follower.shown()
        stopped.append(True)
        create(server, namespace, "b")
        follower.heard.await_told("add a=1", "add b=1")

    assert {"a=1"} <= shown
    assert not [told for told in follower.heard.told if told.startswith(("lost", "delete"))]


@pytest.mark.rule("TH-12")
def test_a_list_that_takes_longer_than_its_timeout_is_read_to_its_end_once(server: Server, namespace: str) -> None:
    for number in range(8):
        body = config_map(f"large-{number}", number)
        body["data"] |= {"filler": secrets.token_hex(20_000)}
        server.admin.create(CONFIG_MAPS, body, namespace)
    with starting(server, namespace, timeout=2.0) as follower:
        follower.relay.trickle(0.06)
        follower.relay.cut()
        started = CLOCK.now()
        eventually(follower.informer.has_synced, 60.0)
        seconds = CLOCK.now() - started

    assert seconds > 2.0
    assert 8 == len(follower.shown())


@pytest.mark.parametrize("error", [SystemExit(1), GeneratorExit()], ids=repr)
@pytest.mark.rule("INF-16")
def test_a_handler_that_calls_exit_gets_the_next_notification(
    server: Server, namespace: str, error: BaseException
) -> None:
    class Exiting(Heard):
        def _tell(self, text: str) -> None:
            if self.failures:
                self.failures -= 1
                raise error
            super()._tell(text)

    with following(server, namespace) as follower:
        exiting = Exiting()
        exiting.failures = 1
        follower.informer.add_event_handler(exiting, name="exiting")
        create(server, namespace, "a")
        create(server, namespace, "b")

        follower.heard.await_told("add a=1", "add b=1")
        exiting.await_told("add b=1")
