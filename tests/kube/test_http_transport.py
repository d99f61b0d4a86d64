import contextlib
import gzip
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from kube.client import Client, WatchEvent
from kube.config import ClusterConfig, Tls
from kube.credentials import StaticCredentials, TokenFile
from kube.errors import ApiError, Expired
from kube.http_transport import HttpTransport
from kube.objects import Object
from kube.resources import PODS
from ports.clock import FakeClock, SystemClock
from ports.transport import (
    ConnectionLost,
    ConnectionRefused,
    CredentialMissing,
    Request,
    RequestTimeout,
    TlsError,
    TransportClosed,
    TransportError,
)
from tests.kube.servers import Certificates, Peer, RawServer, certificates, serving
from tests.socks_proxy import socks_proxy

__all__ = ["certificates"]

Serve = Callable[[Peer], None]
GET = Request("GET", "/api/v1/pods", timeout=5.0)


class Pair:
    """A server and a transport to it."""

    def __init__(self, server: RawServer, transport: HttpTransport) -> None:
        self.server = server
        self.transport = transport
        self.client = Client(transport)

    def events(self) -> Iterator[WatchEvent]:
        watch = self.client.watch(PODS, resource_version="1", timeout_seconds=60)
        yield from watch
        watch.close()


@pytest.fixture
def pair() -> Iterator[Callable[..., Pair]]:
    """Creates pairs and closes them."""
    closing: list[Callable[[], Any]] = []

    def make(serve: Serve, trust: Certificates | None = None, **config: Any) -> Pair:
        context = trust.context() if trust else None
        manager = serving(serve, context)
        server = manager.__enter__()
        closing.append(lambda: manager.__exit__(None, None, None))
        tls = Tls(ca=trust.ca) if trust else Tls()
        described = replace(ClusterConfig(server.url, "test", tls=tls), **config)
        transport = HttpTransport(described, {}, SystemClock())
        closing.append(transport.close)
        return Pair(server, transport)

    yield make
    for close in reversed(closing):
        close()


def pod(name: str, version: str = "5", **annotations: str) -> bytes:
    meta = {"name": name, "namespace": "ns", "resourceVersion": version, "annotations": annotations}
    return msgspec.json.encode({"metadata": meta})


def event(of: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (of.encode(), body)


def names(events: Iterator[WatchEvent]) -> list[str]:
    return [each.object.metadata.name for each in events if isinstance(each.object, Object)]


def in_thread(act: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run `act` in a thread; its result or TransportError is appended to the list."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(act())
        except TransportError as error:
            result.append(error)

    thread = threading.Thread(target=run, name="reader")
    thread.start()
    return thread, result


@pytest.mark.rule("PY-5")
def test_short_requests_share_a_connection(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        while peer.head():
            peer.answer(200, b"{}", "X-Name: Value")

    both = pair(serve)

    answers = [both.transport.request(GET) for _ in range(3)]

    assert [(200, b"{}", "Value")] * 3 == [(a.status, a.body, a.headers["x-name"]) for a in answers]
    assert 1 == both.server.connections


@pytest.mark.rule("REST-7")
def test_a_refusal_leaves_its_connection_for_the_next_attempt(pair: Callable[..., Pair]) -> None:
    codes = iter((503, 200))

    def serve(peer: Peer) -> None:
        while peer.head():
            peer.answer(next(codes), b"busy " * 2000, "Retry-After: 1")

    both = pair(serve)

    assert [503, 200] == [both.transport.request(GET).status for _ in range(2)]
    assert 1 == both.server.connections


@pytest.mark.rule("TH-17")
def test_each_watch_has_its_own_connection(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        while peer.head():
            peer.answer(200, event("ADDED", pod("a")))

    both = pair(serve)

    assert ["a", "a", "a"] == [name for _ in range(3) for name in names(both.events())]
    assert 3 == both.server.connections


@pytest.mark.rule("TEST-3")
def test_chunk_borders_fall_inside_characters_and_lines(pair: Callable[..., Pair]) -> None:
    text = event("ADDED", pod("a", note="Grüße, 世界")) + b"\n" + event("MODIFIED", pod("b"))

    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        for index in range(len(text)):
            peer.chunk(text[index : index + 1])
        peer.send(b"0\r\n\r\n")

    events = list(pair(serve).events())

    assert ["ADDED", "MODIFIED"] == [each.type for each in events]
    assert isinstance(events[0].object, Object)
    assert "Grüße, 世界" == events[0].object.metadata.annotations["note"]


@pytest.mark.rule("TH-18")
def test_a_line_of_two_megabytes_arrives_whole(pair: Callable[..., Pair]) -> None:
    big = pod("big", note="x" * 2_000_000)

    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        line = event("ADDED", big)
        for start in range(0, len(line), 16_384):
            peer.chunk(line[start : start + 16_384])
        peer.send(b"0\r\n\r\n")

    (only,) = pair(serve).events()

    assert isinstance(only.object, Object)
    assert big == only.object.raw


@pytest.mark.rule("TH-5")
def test_a_receiver_gets_the_body_as_it_arrives(pair: Callable[..., Pair]) -> None:
    arrived = threading.Event()

    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.chunk(b"first")
        arrived.wait(5.0)
        peer.chunk(b"second")
        peer.chunk(b"")
        peer.head()
        peer.answer(410, b"refusal")

    pieces: list[bytes] = []

    def receive(piece: bytes) -> None:
        pieces.append(piece)
        arrived.set()

    both = pair(serve)
    request = replace(GET, receiver=lambda: receive)

    answers = [both.transport.request(request) for _ in range(2)]

    assert b"firstsecond" == b"".join(pieces)
    assert [(200, b"", 11), (410, b"refusal", 0)] == [(each.status, each.body, each.streamed) for each in answers]


def test_a_watch_without_chunks_delivers_events_as_they_arrive(pair: Callable[..., Pair]) -> None:
    go_on = threading.Event()

    def serve(peer: Peer) -> None:
        peer.head()
        peer.send(b"HTTP/1.0 200 OK\r\n\r\n" + event("ADDED", pod("a")))
        go_on.wait(5)
        peer.send(event("ADDED", pod("b")))

    events = pair(serve).events()

    first = next(events)
    go_on.set()
    assert ["a", "b"] == names(iter([first, *events]))


@pytest.mark.rule("TH-17")
def test_accepts_gzip_in_lists_but_not_in_watches(pair: Callable[..., Pair]) -> None:
    heads: list[str] = []
    body = msgspec.json.encode(
        {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [msgspec.Raw(pod("a"))]}
    )

    def serve(peer: Peer) -> None:
        while head := peer.head():
            heads.append(head.lower())
            if "watch=true" in head:
                peer.answer(200, event("ADDED", pod("w")))
            else:
                peer.answer(200, gzip.compress(body), "Content-Encoding: gzip")

    both = pair(serve)

    assert ["a"] == [item.metadata.name for item in both.client.list_page(PODS).items]
    assert ["w"] == names(both.events())
    assert ["accept-encoding: gzip\r\n" in heads[0], "accept-encoding: identity\r\n" in heads[1]] == [True, True]


@pytest.mark.rule("TEST-3")
def test_a_connection_closed_in_mid_stream_is_lost(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.chunk(event("ADDED", pod("a")) + b'{"type":')

    events = pair(serve).events()

    assert "ADDED" == next(events).type
    with pytest.raises(ConnectionLost):
        next(events)


def test_a_body_cut_short_is_lost(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    with pytest.raises(ConnectionLost):
        pair(serve).transport.request(GET)


def test_a_chunk_of_a_negative_length_is_lost(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n")

    with pytest.raises(ConnectionLost):
        pair(serve).transport.request(GET)


def test_an_error_of_the_receiver_is_passed_on(pair: Callable[..., Pair]) -> None:
    def fail(_piece: bytes) -> None:
        raise ValueError("full")

    both = pair(lambda peer: (peer.head(), peer.answer(200, b"body")))

    with pytest.raises(ValueError, match="full"):
        both.transport.request(replace(GET, receiver=lambda: fail))


@pytest.mark.parametrize("streamed", [False, True])
def test_the_rest_of_an_early_answer_is_not_read_by_the_next_request(pair: Callable[..., Pair], streamed: bool) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        if peer.head():
            peer.answer(200, b"old")

    both = pair(serve)
    for _ in range(2):
        with pytest.raises(ConnectionLost, match="the server answered 103 first"):
            both.transport.stream(GET, 5.0) if streamed else both.transport.request(GET)


@pytest.mark.rule("TEST-3", "#410")
def test_an_expired_version_is_reported_by_a_status_and_by_an_event(pair: Callable[..., Pair]) -> None:
    gone = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}'

    def serve(peer: Peer) -> None:
        if "resourceVersion=1&" in peer.head():
            peer.answer(200, event("ERROR", gone))
        else:
            peer.answer(410, gone)

    both = pair(serve)

    (only,) = both.events()
    assert isinstance(only.object, Expired)
    with pytest.raises(Expired, match="too old"):
        both.client.watch(PODS, resource_version="2", timeout_seconds=60)


@pytest.mark.rule("TH-12")
def test_missing_headers_time_out(pair: Callable[..., Pair]) -> None:
    both = pair(lambda peer: (peer.head(), peer.hang()))
    hurried = Request("GET", "/api/v1/pods", timeout=0.05)

    with pytest.raises(RequestTimeout):
        both.transport.request(hurried)
    with pytest.raises(RequestTimeout):
        both.transport.stream(hurried, idle_timeout=60)


@pytest.mark.rule("TH-13")
def test_a_silent_watch_ends_at_its_idle_timeout(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.hang()

    stream = pair(serve).transport.stream(GET, idle_timeout=0.05)

    with pytest.raises(RequestTimeout):
        list(stream)
    stream.close()


@pytest.mark.parametrize("piece", [b"\n", b"x", b" \n"])
@pytest.mark.rule("TH-13")
def test_bytes_that_end_no_line_do_not_keep_a_watch_alive(pair: Callable[..., Pair], piece: bytes) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        with contextlib.suppress(OSError):
            while not peer.hang(0.01):
                peer.chunk(piece)

    stream = pair(serve).transport.stream(GET, idle_timeout=0.2)

    with pytest.raises(RequestTimeout):
        list(stream)
    stream.close()


@pytest.mark.rule("TH-13")
def test_lines_that_come_in_pieces_keep_a_watch_alive(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        for _ in range(10):
            peer.chunk(b"{")
            peer.hang(0.05)
            peer.chunk(b"}")
            peer.chunk(b"\n")
        peer.chunk(b"")

    stream = pair(serve).transport.stream(GET, idle_timeout=0.3)

    assert b"{}\n" * 10 == b"".join(stream)
    stream.close()


_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_TRICKLES = {
    "the headers": _OK,
    "early answers": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 1",
    "a body of a known length": _OK + b"Content-Length: 999\r\n\r\n",
    "a body until the end": b"HTTP/1.0 200 OK\r\n\r\n",
    "a chunk": _CHUNKED + b"fff\r\n",
    "the length of a chunk": _CHUNKED,
    "a refusal": b"HTTP/1.1 500 Oops\r\nContent-Length: 999\r\n\r\n",
}


def trickling(begin: bytes) -> Serve:
    """Sends `begin`, then single bytes at intervals, so that it is never silent."""

    def serve(peer: Peer) -> None:
        peer.head()
        peer.send(begin)
        while not peer.hang(0.01):
            peer.send(b"0")

    return serve


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("part", _TRICKLES)
@pytest.mark.rule("F53")
def test_an_answer_that_trickles_does_not_outlive_its_request(
    pair: Callable[..., Pair], certificates: Certificates, part: str, encrypted: bool
) -> None:
    both = pair(trickling(_TRICKLES[part]), certificates if encrypted else None)

    with pytest.raises(RequestTimeout):
        both.transport.request(replace(GET, timeout=0.05))


@pytest.mark.parametrize("part", ["the headers", "a refusal"])
@pytest.mark.rule("F53")
def test_gives_up_a_watch_whose_headers_trickle(pair: Callable[..., Pair], part: str) -> None:
    client = Client(pair(trickling(_TRICKLES[part])).transport, timeout=0.05)

    with pytest.raises(RequestTimeout):
        client.watch(PODS, resource_version="1", timeout_seconds=60)


@pytest.mark.rule("F53")
def test_a_tunnel_through_a_proxy_has_a_deadline(pair: Callable[..., Pair]) -> None:
    with serving(trickling(_OK)) as proxy:
        both = pair(lambda peer: None, server="https://10.0.0.1:6443", proxy_url=proxy.url)
        with pytest.raises(RequestTimeout):
            both.transport.request(replace(GET, timeout=0.05))


@pytest.mark.rule("TH-12")
def test_a_list_may_take_longer_than_its_timeout_as_long_as_it_is_not_silent(clock: FakeClock) -> None:
    items = [b'{"metadata":{"name":"p%d"}}' % number for number in range(5)]

    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.chunk(b'{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[' + items[0])
        for item in items[1:]:
            clock.step(20)
            peer.chunk(b"," + item)
        peer.chunk(b"]}")
        peer.chunk(b"")

    with serving(serve) as server:
        transport = HttpTransport(ClusterConfig(server.url, "test"), {}, clock)
        page = Client(transport, timeout=30).list_page(PODS)
        transport.close()

    assert (5, "5", 80.0) == (len(page.items), page.resource_version, clock.now())


@pytest.mark.rule("TH-12")
def test_gives_up_a_silent_list(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.chunk(b'{"kind":"PodList","metadata":{},"items":[')
        peer.hang()

    client = Client(pair(serve).transport, timeout=0.2)
    with pytest.raises(RequestTimeout):
        client.list_page(PODS)


def test_does_not_keep_an_endless_answer(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        for _ in range(80):
            peer.chunk(bytes(1 << 20))

    with pytest.raises(ConnectionLost, match="longer than 67108864 bytes"):
        pair(serve).transport.request(replace(GET, timeout=60.0))


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.rule("TH-10")
def test_abort_ends_a_blocked_read_in_another_thread(
    pair: Callable[..., Pair], request: pytest.FixtureRequest, encrypted: bool
) -> None:
    trust = request.getfixturevalue("certificates") if encrypted else None
    blocked = threading.Event()

    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.chunk(event("ADDED", pod("a")))
        peer.hang()

    both = pair(serve, trust)
    watch = both.client.watch(PODS, resource_version="1", timeout_seconds=60)

    def read() -> None:
        for _ in watch:
            blocked.set()

    thread, result = in_thread(read)
    assert blocked.wait(5)
    watch.abort()
    thread.join(1)

    assert not thread.is_alive()
    assert isinstance(result[0], ConnectionLost)
    watch.close()
    watch.abort()


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.rule("TH-12")
def test_close_ends_a_wait_for_headers(
    pair: Callable[..., Pair], request: pytest.FixtureRequest, encrypted: bool
) -> None:
    trust = request.getfixturevalue("certificates") if encrypted else None
    asked = threading.Event()

    def serve(peer: Peer) -> None:
        peer.head()
        asked.set()
        peer.hang()

    both = pair(serve, trust)
    thread, result = in_thread(lambda: both.transport.stream(GET, idle_timeout=60))
    assert asked.wait(5)
    both.transport.close()
    thread.join(1)

    assert not thread.is_alive()
    assert isinstance(result[0], ConnectionLost)
    with pytest.raises(TransportClosed):
        both.transport.request(GET)


def test_a_closed_port_and_an_unknown_name_are_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for server in (f"http://127.0.0.1:{port}", "http://name.invalid"):
        transport = HttpTransport(ClusterConfig(server, "test"), {}, SystemClock())
        with pytest.raises(ConnectionRefused):
            transport.request(GET)
        transport.close()


def test_TLS_is_checked_over_loopback_too(pair: Callable[..., Pair], certificates: Certificates) -> None:
    def serve(peer: Peer) -> None:
        while peer.head():
            peer.answer(200, b"{}")

    trusting = pair(serve, certificates)
    assert 200 == trusting.transport.request(GET).status

    for tls in (Tls(), Tls(ca=certificates.ca, server_name="other.example")):
        with pytest.raises(TlsError):
            pair(serve, certificates, tls=tls).transport.request(GET)
    careless = pair(serve, certificates, tls=Tls(insecure=True))
    assert 200 == careless.transport.request(GET).status


def test_a_server_without_tls_is_a_tls_error(pair: Callable[..., Pair]) -> None:
    both = pair(lambda peer: peer.answer(400))
    transport = HttpTransport(ClusterConfig(both.server.url.replace("http:", "https:"), "test"), {}, SystemClock())

    with pytest.raises(TlsError):
        transport.request(GET)
    transport.close()


@pytest.mark.rule("REST-11")
def test_after_a_401_the_token_file_is_read_again(pair: Callable[..., Pair], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    valid = ["old"]

    def serve(peer: Peer) -> None:
        while head := peer.head():
            peer.answer(200 if f"authorization: Bearer {valid[0]}\r\n" in head else 401)

    both = pair(serve, credentials=TokenFile(token, SystemClock()))
    statuses = [both.transport.request(GET).status]
    valid[0] = "new"
    token.write_text("new\n")
    statuses += [both.transport.request(GET).status for _ in range(2)]

    assert [200, 401, 200] == statuses


def test_a_missing_token_is_an_error_of_the_request(pair: Callable[..., Pair], tmp_path: Path) -> None:
    both = pair(lambda _: None, credentials=TokenFile(tmp_path / "none", FakeClock()))

    with pytest.raises(CredentialMissing, match="cannot read the token file"):
        both.transport.request(GET)


def test_errors_never_carry_the_token(pair: Callable[..., Pair]) -> None:
    both = pair(lambda peer: peer.head(), credentials=StaticCredentials.token("s3cret"))

    with pytest.raises(ConnectionLost) as lost:
        both.transport.request(GET)

    assert "s3cret" not in f"{lost.value}{lost.value!r}{lost.value.__cause__!r}{both.transport._config!r}"


@pytest.mark.rule("REST-13")
def test_a_warning_is_logged_once_per_text(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        while peer.head():
            peer.answer(200, b"{}", 'Warning: 299 - "old API"', 'Warning: 299 - "slow"', 'Warning: 199 - "other"')

    both = pair(serve)
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            both.transport.request(GET)

    assert ["old API", "slow"] == [entry["text"] for entry in logs]


def test_a_kubeconfigs_proxy_is_used_with_its_password(pair: Callable[..., Pair]) -> None:
    heads: list[str] = []

    def serve(peer: Peer) -> None:
        heads.append(peer.head())
        peer.answer(200, b"{}")

    proxy = pair(serve).server
    url = f"http://user:pa%40ss%E2%82%AC@127.0.0.1:{proxy.port}"
    transport = HttpTransport(ClusterConfig("http://kube.example", "test", proxy_url=url), {}, SystemClock())
    transport.request(GET)
    transport.close()

    assert heads[0].startswith("GET http://kube.example/api/v1/pods HTTP/1.1\r\n")
    assert "proxy-authorization: Basic dXNlcjpwYUBzc+KCrA==\r\n" in heads[0]


@pytest.mark.parametrize("encrypted", [False, True])
def test_requests_and_watches_go_through_a_socks_proxy(
    pair: Callable[..., Pair], certificates: Certificates, encrypted: bool
) -> None:
    def serve(peer: Peer) -> None:
        if "watch=" in peer.head():
            peer.begin_chunks()
            peer.chunk(event("ADDED", pod("a")))
            peer.hang()
        else:
            peer.answer(200, b"{}")

    tls = {"tls": replace(Tls(ca=certificates.ca), server_name="127.0.0.1")} if encrypted else {}
    server = f"{'https' if encrypted else 'http'}://kube.example:6443"
    both = pair(serve, certificates if encrypted else None, server=server, **tls)
    with socks_proxy(both.server.port) as proxy:
        config = replace(both.transport._config, proxy_url=f"socks5://{proxy.address}")
        transport = HttpTransport(config, {}, SystemClock())
        transport.request(GET)
        watch = Client(transport).watch(PODS, resource_version="1", timeout_seconds=60)
        assert ["a"] == names(itertools.islice(watch, 1))
        watch.close()
        transport.close()
    assert [("kube.example", 6443)] * 2 == proxy.asked


def test_closing_the_transport_ends_a_watch_through_a_socks_proxy(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.hang()

    both = pair(serve, server="http://kube.example")
    with socks_proxy(both.server.port) as proxy:
        config = replace(both.transport._config, proxy_url=f"socks5h://{proxy.address}")
        transport = HttpTransport(config, {}, SystemClock())
        watch = Client(transport).watch(PODS, resource_version="1", timeout_seconds=60)
        threading.Timer(0.05, transport.close).start()
        with pytest.raises(ConnectionLost):
            next(iter(watch))
        watch.close()


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
def test_a_refusal_by_a_socks_proxy_counts_as_not_sent(variable: str) -> None:
    with socks_proxy(1, reply=2) as proxy:
        environ = {variable: f"socks5://{proxy.address}"}
        transport = HttpTransport(ClusterConfig("https://kube.example", "test"), environ, SystemClock())
        with pytest.raises(ConnectionRefused, match=r"the SOCKS proxy at .*not allowed"):
            transport.request(GET)
        transport.close()


def test_a_refusal_by_the_proxy_counts_as_not_sent(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.answer(403)

    environ = {"HTTPS_PROXY": pair(serve).server.url}
    transport = HttpTransport(ClusterConfig("https://kube.example", "test"), environ, SystemClock())

    with pytest.raises(ConnectionRefused, match=r"proxy.*403"):
        transport.request(GET)
    transport.close()


@pytest.mark.rule("REST-12")
def test_a_stream_detects_dead_peers_by_keepalive_probes(pair: Callable[..., Pair]) -> None:
    def serve(peer: Peer) -> None:
        peer.head()
        peer.begin_chunks()
        peer.hang()

    both = pair(serve)
    stream = both.transport.stream(GET, idle_timeout=60)
    connected = stream._connected  # type: ignore[attr-defined]

    assert 1 == connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert 30 == connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    stream.close()


@pytest.mark.rule("REF-21")
def test_a_refused_watch_releases_its_connection(pair: Callable[..., Pair]) -> None:
    both = pair(lambda peer: (peer.head(), peer.answer(503, b"busy")))

    with pytest.raises(ApiError, match="busy"):
        both.client.watch(PODS, resource_version="1", timeout_seconds=60)
