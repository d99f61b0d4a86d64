"""The HTTP server and requests that end early."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from ports import http_server
from ports.http_server import Conversation, Server, answer_with
from ports.transport import ByteStream, ConnectionLost, Request, Response
from sandbox.forward_proxy import ForwardProxy
from tests.e2e.gate import Gate

_HERE = "127.0.0.1"
_DEADLINE = 5.0


class _Backend:
    """Records the bodies of complete requests."""

    def __init__(self) -> None:
        self.bodies: list[bytes | None] = []

    def request(self, request: Request) -> Response:
        self.bodies.append(request.body)
        return Response(200, {}, b"")

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        self.bodies.append(request.body)
        raise ConnectionLost("POST", request.url, f"no stream within {idle_timeout} s")


@contextlib.contextmanager
def _server(backend: _Backend) -> Iterator[int]:
    server = Server("api", (_HERE, 0), answer_with(backend.request))
    with server.serving():
        yield server.port


@contextlib.contextmanager
def _proxy(backend: _Backend) -> Iterator[int]:
    proxy = ForwardProxy(backend)
    proxy.start()
    try:
        yield proxy.port
    finally:
        proxy.stop()


@contextlib.contextmanager
def _gate(backend: _Backend) -> Iterator[int]:
    with Gate(backend) as gate:
        yield int(gate.url.rpartition(":")[2])


@pytest.mark.parametrize("serving", [_server, _proxy, _gate])
def test_does_not_answer_a_truncated_body(serving: Callable[[_Backend], AbstractContextManager[int]]) -> None:
    backend = _Backend()
    with serving(backend) as port, socket.create_connection((_HERE, port), timeout=_DEADLINE) as client:
        client.sendall(b"POST http://pd/x HTTP/1.1\r\nhost: pd\r\ncontent-length: 10\r\n\r\n12345")
        client.shutdown(socket.SHUT_WR)
        answer = client.recv(100)
    assert (b"", []) == (answer, backend.bodies)


@pytest.mark.parametrize("most", [100, 1], ids=["open", "evicted"])
def test_a_stop_waits_for_the_threads_of_connections(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", most)
    answering, ended = threading.Semaphore(0), []

    def answer(conversation: Conversation, request: Request) -> None:
        answering.release()
        try:
            conversation.send_response_of(Response(200, {}, b"x" * (8 << 20)))
        finally:
            threading.Event().wait(0.05)
            ended.append(request.url)

    server = Server("tested", (_HERE, 0), answer)
    with contextlib.ExitStack() as clients:
        with server.serving():
            for path in (b"/first", b"/second"):
                client = clients.enter_context(socket.create_connection((_HERE, server.port), timeout=_DEADLINE))
                client.sendall(b"GET " + path + b" HTTP/1.1\r\nhost: x\r\n\r\n")
                assert answering.acquire(timeout=_DEADLINE)
        assert {"/first", "/second"} == set(ended)
