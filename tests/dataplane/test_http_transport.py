"""The HTTP transport against hostile peers on real sockets (dataplane-apis.md 2, lifecycle.md F53)."""

import contextlib
import gzip
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dataplane.http_transport import HttpTransport
from ports.transport import (
    AnswerRefused,
    ConnectionLost,
    ConnectionRefused,
    Request,
    RequestTimeout,
    TlsError,
    TransportError,
)
from tests.dataplane.certificates import Authority
from tests.socks_proxy import socks_proxy

Peer = Callable[[socket.socket], None]


@contextlib.contextmanager
def serving(peer: Peer, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A listener that passes each connection to `peer`; yields its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def accept() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                connection.settimeout(5)
                with contextlib.ExitStack() as stack:
                    stack.enter_context(connection)
                    wrapped = context.wrap_socket(connection, server_side=True) if context else connection
                    stack.enter_context(wrapped)
                    peer(wrapped)

    thread = threading.Thread(target=accept, name="peer")
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def answers(text: str) -> Peer:
    def peer(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(text.encode())

    return peer


def trickles(before: str) -> Peer:
    """Sends `before`, then one byte every 50 ms forever."""

    def peer(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(before.encode())
        pause = threading.Event()
        while True:
            connection.sendall(b"x")
            pause.wait(0.05)

    return peer


def _read_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(4096)
        if not piece:
            raise ConnectionResetError
        received += piece
    return received


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    made = HttpTransport({})
    yield made
    made.close()


def get(port: int, timeout: float = 5, scheme: str = "http") -> Request:
    return Request("GET", f"{scheme}://127.0.0.1:{port}/x", timeout=timeout)


def test_any_status_is_an_answer_and_header_names_are_lower_case(transport: HttpTransport) -> None:
    with serving(answers("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\nX-Y: Z\r\n\r\nno")) as port:
        answer = transport.request(get(port))
    assert (503, b"no", "Z") == (answer.status, answer.body, answer.headers["x-y"])


@pytest.mark.parametrize("location", ["/there", "http://169.254.169.254/", "file:///etc/passwd"])
def test_a_redirect_is_an_answer_and_not_followed(transport: HttpTransport, location: str) -> None:
    with serving(answers(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 2\r\n\r\nok")) as port:
        answer = transport.request(get(port))
    assert (302, location) == (answer.status, answer.headers["location"])


def _floods(head: str) -> Peer:
    """Sends `head`, then a body without end."""

    def peer(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(head.encode())
        while True:
            connection.sendall(b"x" * (1 << 16))

    return peer


_LONG = "HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n"


@pytest.mark.parametrize("head", [_LONG, "HTTP/1.1 200 OK\r\n\r\n"], ids=["two-gigabytes", "until-closed"])
def test_a_body_is_read_up_to_its_limit(transport: HttpTransport, head: str) -> None:
    with serving(_floods(head)) as port, pytest.raises(AnswerRefused, match="more than the 1000 bytes"):
        transport.request(replace(get(port), longest_answer=1000))


def test_a_body_announced_beyond_its_limit_is_not_awaited(transport: HttpTransport) -> None:
    with serving(answers(_LONG)) as port, pytest.raises(AnswerRefused, match="more than the 1000 bytes"):
        transport.request(replace(get(port), longest_answer=1000))


def test_a_body_of_its_limit_is_read(transport: HttpTransport) -> None:
    with serving(answers("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour")) as port:
        assert b"four" == transport.request(replace(get(port), longest_answer=4)).body


def test_a_body_in_chunks_is_read_up_to_its_limit(transport: HttpTransport) -> None:
    body = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfives\r\n0\r\n\r\n"
    with serving(answers(body)) as port:
        assert b"fives" == transport.request(replace(get(port), longest_answer=5)).body
        with pytest.raises(AnswerRefused):
            transport.request(replace(get(port), longest_answer=4))


def test_rejects_an_encoded_body_and_does_not_accept_encodings(transport: HttpTransport) -> None:
    asked: list[bytes] = []

    def bomb(connection: socket.socket) -> None:
        asked.append(_read_request(connection))
        body = gzip.compress(b"0" * 1_000_000)
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    with serving(bomb) as port, pytest.raises(AnswerRefused, match="encoded its answer"):
        transport.request(get(port))
    assert b"accept-encoding: identity" in asked[0].lower()


_HEADERS = {
    "many": "".join(f"X-{number}: y\r\n" for number in range(101)),
    "long-line": f"X: {'y' * 66_000}\r\n",
    "long-together": "".join(f"X-{number}: {'y' * 8_000}\r\n" for number in range(10)),
}


@pytest.mark.parametrize("headers", _HEADERS.values(), ids=_HEADERS)
def test_headers_have_limits(transport: HttpTransport, headers: str) -> None:
    text = f"HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n"
    with serving(answers(text)) as port, pytest.raises((AnswerRefused, ConnectionLost)):
        transport.request(get(port))


def _pours(head: bytes, line: bytes) -> Peer:
    """Sends `head`, then the same line forever."""

    def peer(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(head)
        while True:
            connection.sendall(line)

    return peer


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"y" * 60_000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"y" * 60_000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
    ],
    ids=["lines", "one-line", "interim-answers"],
)
def test_a_head_is_read_up_to_its_limit(transport: HttpTransport, head: bytes, line: bytes) -> None:
    with serving(_pours(head, line)) as port:
        tracemalloc.start()
        try:
            with pytest.raises(AnswerRefused, match="more than 65536 bytes of headers"):
                transport.request(get(port, timeout=20))
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (b"2\r\n{}\r\n0\r\n", b"X-Long: " + b"y" * 60_000 + b"\r\n"),
        (b"", b"1;" + b"y" * 60_000 + b"\r\nx\r\n"),
    ],
    ids=["trailers", "extensions-of-chunks"],
)
def test_chunk_sizes_and_trailers_are_read_up_to_a_limit(transport: HttpTransport, head: bytes, line: bytes) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    too_many = pytest.raises(AnswerRefused, match="more than 67536 bytes of chunks and trailers")
    with serving(_pours(chunked + head, line)) as port, too_many:
        transport.request(replace(get(port, timeout=20), longest_answer=1000))


def test_a_body_in_small_chunks_is_read(transport: HttpTransport) -> None:
    chunks = "1\r\nx\r\n" * 1000
    with serving(answers(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")) as port:
        assert b"x" * 1000 == transport.request(replace(get(port), longest_answer=1000)).body


def test_an_error_does_not_keep_the_answer_that_it_is_about(transport: HttpTransport) -> None:
    kept = []
    with serving(_floods(_LONG)) as port:
        tracemalloc.start()
        try:
            for _ in range(10):
                with pytest.raises(AnswerRefused) as raised:
                    transport.request(get(port, timeout=20))
                kept.append(raised.value)
            assert tracemalloc.get_traced_memory()[0] < 3_000_000
        finally:
            tracemalloc.stop()
    assert 10 == len(kept)


@pytest.mark.parametrize(
    "text",
    [
        "SECRET\r\n\r\n",
        f"HTTP/1.1 200 {'SECRET' * 20_000}\r\n\r\n",
        "HTTP/SECRET 200 OK\r\n\r\n",
        "HTTP/1.1 SECRET OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nSECRET",
    ],
)
def test_does_not_quote_bytes_that_are_not_http(transport: HttpTransport, text: str) -> None:
    with serving(answers(text)) as port, pytest.raises(TransportError) as raised:
        transport.request(get(port))
    assert "SECRET" not in str(raised.value)


def test_the_rest_of_an_early_answer_is_not_read_by_the_next_request(transport: HttpTransport) -> None:
    def hints(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        _read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")

    with serving(hints) as port:
        for _ in range(2):
            with pytest.raises(ConnectionLost, match="the server answered 103 first"):
                transport.request(get(port))


def test_a_port_without_a_listener_is_unavailable(transport: HttpTransport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with pytest.raises(ConnectionRefused, match=rf"GET http://127\.0\.0\.1:{port}/x: .*refused"):
        transport.request(get(port))


@pytest.mark.parametrize("url", ["http://nowhere.invalid/x", "http:///x", "ftp://a/x", "http://a:99999/x"])
def test_a_host_that_cannot_be_dialled_counts_as_not_sent(transport: HttpTransport, url: str) -> None:
    with pytest.raises(ConnectionRefused):
        transport.request(Request("GET", url))


@pytest.mark.parametrize("text", ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "garbage\r\n\r\n"])
def test_a_truncated_answer_raises(transport: HttpTransport, text: str) -> None:
    with serving(answers(text)) as port, pytest.raises(ConnectionLost):
        transport.request(get(port))


@pytest.mark.parametrize(
    "before",
    ["", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"],
    ids=["status line", "headers", "body"],
)
@pytest.mark.rule("F53")
def test_a_trickling_answer_ends_at_the_deadline(transport: HttpTransport, before: str) -> None:
    with serving(trickles(before)) as port, pytest.raises(RequestTimeout, match=r"within 0\.3 s"):
        transport.request(get(port, timeout=0.3))


@pytest.mark.rule("F53")
def test_silence_ends_at_the_deadline(transport: HttpTransport) -> None:
    def silent(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.recv(4096)

    with serving(silent) as port, pytest.raises(RequestTimeout):
        transport.request(get(port, timeout=0.2))


def test_keeps_connections_and_notices_a_dead_one(transport: HttpTransport) -> None:
    ports: list[int] = []
    ended = threading.Semaphore(0)

    def twice(connection: socket.socket) -> None:
        for _ in range(2):
            _read_request(connection)
            ports.append(connection.getpeername()[1])
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.shutdown(socket.SHUT_WR)
        ended.release()

    with serving(twice) as port:
        for _ in range(2):
            transport.request(get(port))
            transport.request(get(port))
            assert ended.acquire(timeout=30.0)
    assert ports[0] == ports[1] != ports[2] == ports[3]


def test_proxies_come_from_the_environment_alone() -> None:
    urls = ["http://demo-pd.ns:2379/pd/api/v1/health", "http://demo-pd.ns:2379/stores?state=1", "http://[fd00::1]:80/"]
    seen: list[bytes] = []

    def proxy(connection: socket.socket) -> None:
        for _ in urls:
            seen.append(_read_request(connection))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with serving(proxy) as port:
        transport = HttpTransport({"http_proxy": f"http://127.0.0.1:{port}"})
        for url in urls:
            transport.request(Request("GET", url))
        transport.close()
    assert [f"GET {url} HTTP/1.1" for url in urls] == [request.decode().splitlines()[0] for request in seen]


def test_a_proxy_that_is_not_supported_is_named_with_the_way_out() -> None:
    transport = HttpTransport({"all_proxy": "socks4://user:secret@127.0.0.1:1080"})
    with pytest.raises(ConnectionRefused) as refused:
        transport.request(Request("GET", "http://192.0.2.1:2379/"))
    assert "a proxy is http://, https:// or socks5://, not socks4://; name another one" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_socks_proxy_carries_requests_and_keeps_their_connection() -> None:
    heads: list[bytes] = []

    def twice(connection: socket.socket) -> None:
        for _ in range(2):
            heads.append(_read_request(connection))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with serving(twice) as port, socks_proxy(port) as proxy:
        transport = HttpTransport({"HTTP_PROXY": f"socks5://{proxy.address}", "NO_PROXY": ".other"})
        for path in ("a", "b"):
            assert b"ok" == transport.request(Request("GET", f"http://demo-pd.ns:2379/{path}")).body
        transport.close()
    assert [("demo-pd.ns", 2379)] == proxy.asked
    assert ["GET /a HTTP/1.1", "GET /b HTTP/1.1"] == [head.decode().splitlines()[0] for head in heads]


def test_a_refusal_by_a_socks_proxy_counts_as_not_sent() -> None:
    with socks_proxy(1, reply=4) as proxy:
        transport = HttpTransport({"all_proxy": f"socks5://user:secret@{proxy.address}"})
        with pytest.raises(ConnectionRefused, match="Host unreachable") as refused:
            transport.request(Request("GET", "http://192.0.2.1:2379/"))
        transport.close()
    assert "secret" not in str(refused.value)


def test_a_missing_proxy_counts_as_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    transport = HttpTransport({"HTTP_PROXY": f"127.0.0.1:{port}"})
    with pytest.raises(ConnectionRefused):
        transport.request(Request("GET", "http://demo-pd.ns:2379/x"))


def test_only_silence_ends_a_stream(transport: HttpTransport) -> None:
    def slow(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        pause = threading.Event()
        for part in (b"abc", b"def"):
            pause.wait(0.15)
            connection.sendall(part)
        connection.recv(1)

    with serving(slow) as port:
        stream = transport.stream(get(port, timeout=0.2), idle_timeout=0.4)
        received: list[bytes] = []
        with pytest.raises(RequestTimeout):
            received.extend(stream)
        stream.close()
    assert b"abcdef" == b"".join(received)


@pytest.mark.rule("TH-10")
def test_a_stream_can_be_ended_by_another_thread(transport: HttpTransport) -> None:
    def silent(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        connection.recv(1)

    with serving(silent) as port:
        stream = transport.stream(get(port), idle_timeout=5)
        chunks = iter(stream)
        assert next(chunks) == b"abc"
        threading.Timer(0.05, stream.abort).start()
        with pytest.raises(TransportError):
            next(chunks)
        stream.close()


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    return Authority(tmp_path_factory.mktemp("ours")), Authority(tmp_path_factory.mktemp("theirs"))


OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_tls_presents_the_certificate_and_trusts_the_clusters_ca(authorities: tuple[Authority, Authority]) -> None:
    ours, _ = authorities
    transport = HttpTransport({}, ours.material("client"))
    with serving(answers(OK), ours.server()) as port:
        assert transport.request(get(port, scheme="https")).body == b"ok"
    transport.close()


def test_tls_ends_at_the_server_behind_a_socks_proxy(authorities: tuple[Authority, Authority]) -> None:
    ours, _ = authorities
    with serving(answers(OK), ours.server()) as port, socks_proxy(port) as proxy:
        material = replace(ours.material("client"), checks_names=False)
        transport = HttpTransport({"HTTPS_PROXY": f"socks5h://{proxy.address}"}, material)
        assert b"ok" == transport.request(Request("GET", "https://demo-pd.ns:2379/")).body
        transport.close()


def test_tls_refuses_a_server_of_another_ca(authorities: tuple[Authority, Authority]) -> None:
    ours, theirs = authorities
    transport = HttpTransport({}, ours.material("client"))
    with serving(answers(OK), theirs.server()) as port, pytest.raises(TlsError, match="certificate verify failed"):
        transport.request(get(port, scheme="https"))
    transport.close()


@pytest.mark.parametrize("checks_names", [True, False])
@pytest.mark.rule("lifecycle-9.3")
def test_checks_the_name_in_a_certificate_unless_disabled(
    authorities: tuple[Authority, Authority], checks_names: bool
) -> None:
    ours, _ = authorities
    transport = HttpTransport({}, replace(ours.material("client"), checks_names=checks_names))
    with serving(answers(OK), ours.server()) as port:
        request = Request("GET", f"https://localhost:{port}/", timeout=5)
        if checks_names:
            with pytest.raises(TlsError, match="localhost"):
                transport.request(request)
        else:
            assert b"ok" == transport.request(request).body
    transport.close()


@pytest.mark.rule("F53")
def test_a_trickling_tls_answer_ends_at_the_deadline(authorities: tuple[Authority, Authority]) -> None:
    ours, _ = authorities
    transport = HttpTransport({}, ours.material("client"))
    with serving(trickles("HTTP/1.1 200 OK\r\nX: "), ours.server()) as port, pytest.raises(RequestTimeout):
        transport.request(get(port, timeout=0.3, scheme="https"))
    transport.close()
