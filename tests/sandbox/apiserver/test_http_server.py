"""The server on a port."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from sandbox.apiserver import ApiServer, Fault
from sandbox.apiserver.http_server import HttpServer, PortInUse
from tests.sandbox.apiserver.calls import CORE, Calls, config_map

_DEADLINE = 5.0


@pytest.fixture
def http_server(server: ApiServer) -> Iterator[HttpServer]:
    with HttpServer(server) as running:
        yield running


@pytest.fixture
def connection(http_server: HttpServer) -> Iterator[http.client.HTTPConnection]:
    opened = http.client.HTTPConnection("127.0.0.1", http_server.port, timeout=_DEADLINE)
    yield opened
    opened.close()


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, bytes]:
    connection.request(method, path, body, headers)  # type: ignore[arg-type]  # bytes or an iterable of them
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_a_connection_serves_many_requests(connection: http.client.HTTPConnection) -> None:
    body = b'{"metadata":{"name":"a"}}'
    assert 201 == _ask(connection, "POST", f"{CORE}/configmaps", body)[0]
    assert 409 == _ask(connection, "POST", f"{CORE}/configmaps", body)[0]
    status, text = _ask(connection, "GET", f"{CORE}/configmaps/a")
    assert (200, True) == (status, b'"name":"a"' in text)


def test_a_chunked_body_is_read(connection: http.client.HTTPConnection) -> None:
    assert 201 == _ask(connection, "POST", f"{CORE}/configmaps", iter([b'{"metadata":', b'{"name":"a"}}']))[0]


def test_bearer_tokens_name_the_user(connection: http.client.HTTPConnection, server: ApiServer) -> None:
    assert 200 == _ask(connection, "GET", f"{CORE}/pods", authorization="Bearer secret")[0]
    assert 200 == _ask(connection, "GET", f"{CORE}/pods")[0]
    assert 401 == _ask(connection, "GET", f"{CORE}/pods", authorization="Bearer wrong")[0]
    users = [entry.call.user for entry in server.audit.recent()]
    assert ["operator", "system:anonymous"] == users


def test_a_watch_streams_chunks(connection: http.client.HTTPConnection, call: Calls) -> None:
    connection.request("GET", f"{CORE}/configmaps?watch=true&resourceVersion={call.server.storage.version}")
    answer = connection.getresponse()
    for name in "ab":
        call.made(f"{CORE}/configmaps", config_map(name))
        assert f'"name":"{name}"'.encode() in answer.readline()


@pytest.mark.rule("TH-11")
def test_a_client_that_disconnects_ends_its_watch(http_server: HttpServer, server: ApiServer) -> None:
    others = set(threading.enumerate())
    client = socket.create_connection(("127.0.0.1", http_server.port), timeout=_DEADLINE)
    client.sendall(f"GET {CORE}/pods?watch=true&resourceVersion=5 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    assert client.recv(100).startswith(b"HTTP/1.1 200")
    started = set(threading.enumerate()) - others
    watcher = next(thread for thread in started if thread.name.startswith("apiserver-connection"))
    client.close()
    watcher.join(_DEADLINE)
    assert not watcher.is_alive()


def test_stop_ends_watches_and_idle_connections(server: ApiServer) -> None:
    others = set(threading.enumerate())
    running = HttpServer(server)
    running.start()
    idle, watching = (http.client.HTTPConnection("127.0.0.1", running.port, timeout=_DEADLINE) for _ in range(2))
    with contextlib.closing(idle), contextlib.closing(watching):
        assert 200 == _ask(idle, "GET", f"{CORE}/pods")[0]
        watching.request("GET", f"{CORE}/pods?watch=true")
        watching.getresponse()
        running.stop()
        left = set(threading.enumerate()) - others
        assert [] == [thread.name for thread in left if thread.name.startswith("apiserver-")]


def test_a_port_in_use_is_named(http_server: HttpServer, server: ApiServer) -> None:
    with pytest.raises(PortInUse, match=f"127.0.0.1:{http_server.port} is in use"):
        HttpServer(server, port=http_server.port)


def test_a_lost_answer_closes_the_connection(connection: http.client.HTTPConnection, server: ApiServer) -> None:
    server.faults = lambda _: Fault(lose_answer=True)
    with pytest.raises(http.client.RemoteDisconnected):
        _ask(connection, "GET", f"{CORE}/pods")


def test_a_defect_is_an_internal_error(connection: http.client.HTTPConnection, server: ApiServer) -> None:
    def defect(_: object) -> None:
        raise ZeroDivisionError

    server.faults = defect
    status, text = _ask(connection, "GET", f"{CORE}/pods")
    assert (500, True) == (status, b'"reason":"InternalError"' in text)


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffff\r\n",
    ],
)
def test_malformed_or_endless_http_is_a_bad_request(http_server: HttpServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", http_server.port), timeout=_DEADLINE) as client:
        client.sendall(sent)
        assert client.recv(1000).startswith(b"HTTP/1.1 400")
