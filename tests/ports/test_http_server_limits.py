"""Limits on the time, memory, connections and log lines that clients cost a server."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from ports.http_server import Server, answer_with
from ports.transport import Request, Response
from tests.informers.support import eventually

_HERE = "127.0.0.1"
_DEADLINE = 5.0


def _length(request: Request) -> Response:
    return Response(200, {}, str(len(request.body or b"")).encode())


@contextlib.contextmanager
def serving(*, patience: float = _DEADLINE, longest_body: int = 1 << 20) -> Iterator[int]:
    """A server that answers with the length of the body; yields its port."""
    server = Server("tested", (_HERE, 0), answer_with(_length), patience=patience, longest_body=longest_body)
    with server.serving():
        yield server.port


def connect(port: int) -> socket.socket:
    return socket.create_connection((_HERE, port), timeout=_DEADLINE)


def said(client: socket.socket) -> bytes:
    """All bytes that the server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(OSError):
        while piece := client.recv(65536):
            received += piece
    return received


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 0


@pytest.mark.slow
@pytest.mark.parametrize("start", [b"", b"GET /x HTTP/1.1\r\nx: ", b"POST /x HTTP/1.1\r\ncontent-length: 9999\r\n\r\n"])
def test_disconnects_a_client_that_trickles(start: bytes) -> None:
    with serving(patience=0.3) as port, connect(port) as client:
        client.sendall(start)
        pause = threading.Event()
        with pytest.raises(OSError, match=r"reset|pipe"):
            _trickle(client, pause)


def _trickle(client: socket.socket, pause: threading.Event) -> None:
    for _ in range(200):
        client.sendall(b"x")
        pause.wait(0.025)


@pytest.mark.slow
def test_disconnects_a_client_that_does_not_read_its_answer() -> None:
    server = Server("tested", (_HERE, 0), answer_with(lambda _: Response(200, {}, b"x" * 50_000_000)), patience=0.3)
    with server.serving(), connect(server.port) as client:
        client.sendall(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n")
        eventually(lambda: not any(each.name == "tested-request" for each in threading.enumerate()))


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"x" * 40_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: %s\r\n" % (each, b"y" * 4_000) for each in range(10)) + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: y\r\n" % each for each in range(200)) + b"\r\n",
    ],
    ids=["line", "header", "headers-together", "many-headers"],
)
def test_rejects_a_long_head(head: bytes) -> None:
    with serving() as port, connect(port) as client:
        with contextlib.suppress(OSError):
            client.sendall(head)
        assert status(said(client)) in (0, 431)


@pytest.mark.parametrize("length", ["1001", "9" * 30, "-1", "+5", "\xb2", "x"])
def test_rejects_a_long_body_unread(length: str) -> None:
    with serving(longest_body=1000) as port, connect(port) as client:
        client.sendall(f"POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n".encode("latin-1"))
        assert 413 == status(said(client))


@pytest.mark.slow
def test_the_bodies_of_all_clients_together_may_have_the_length_of_the_longest() -> None:
    longest = 1 << 26
    half = b"x" * (longest // 2)
    head = f"POST / HTTP/1.1\r\nconnection: close\r\ncontent-length: {longest}\r\n\r\n".encode()
    with serving(longest_body=longest) as port, connect(port) as first, connect(port) as second:
        with contextlib.suppress(
            OSError
        ):  # the server closes one of the connections, perhaps before the client has sent all
            for client in (first, second):
                client.sendall(head + half)
            first.sendall(half[:-1])
        refused = said(second) if _arrives(second) else said(first)
        assert 503 == status(refused)
    with serving(longest_body=longest) as port, connect(port) as alone:
        alone.sendall(head + half + half)
        assert said(alone).endswith(str(longest).encode())


def _arrives(client: socket.socket) -> bool:
    client.settimeout(1)
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def test_a_burst_of_connections_waits_in_the_backlog() -> None:
    server = Server("tested", (_HERE, 0), answer_with(_length))
    try:
        with contextlib.ExitStack() as stack:
            # nothing accepts yet: beyond the backlog, connecting would time out
            clients = [stack.enter_context(connect(server.port)) for _ in range(90)]
            server.start()
            for client in clients:
                client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert {200} == {status(said(client)) for client in clients}
    finally:
        server.stop()


def test_closes_the_oldest_of_too_many_connections() -> None:
    with serving() as port, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(port)) for _ in range(110)]
        clients[-1].sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert 200 == status(said(clients[-1]))
        assert b"" == clients[0].recv(1)


@pytest.mark.parametrize("start", [b"", b"GET /", b"POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\n12345"])
def test_logs_a_broken_connection_as_one_debug_line(start: bytes) -> None:
    with capture_logs() as lines, serving() as port:
        client = connect(port)
        client.sendall(start)
        # close with a reset
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        eventually(lambda: not any(each.name == "tested-request" for each in threading.enumerate()))
    assert all(line["log_level"] == "debug" and "exc_info" not in line for line in lines)
    assert len(lines) <= 1


def test_logs_a_defect_of_the_app_with_its_traceback() -> None:
    def broken(_request: Request) -> Response:
        raise RuntimeError("boom")

    server = Server("tested", (_HERE, 0), answer_with(broken))
    with capture_logs() as lines, server.serving(), connect(server.port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"" == said(client)
        eventually(lambda: bool(lines))
    assert [("error", "request failed")] == [(line["log_level"], line["event"]) for line in lines]


def test_a_request_carries_the_address_of_its_client() -> None:
    seen: list[str] = []

    def note(request: Request) -> Response:
        seen.append(request.client)
        return Response(200, {}, b"")

    # listen on all addresses, where an IPv4 client appears as IPv6
    server = Server("tested", ("", 0), answer_with(note))
    with server.serving(), connect(server.port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        said(client)
    assert [_HERE] == seen
