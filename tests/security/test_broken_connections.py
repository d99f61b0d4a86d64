"""A client that disconnects at any point costs a server one debug line, and no traceback."""

import contextlib
import os
import re
import socket
import ssl
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import pytest
from structlog.testing import capture_logs

from discovery.main import DashboardProxy, answer_through
from ports.clock import SystemClock
from ports.deadlines import DeadlineTlsSocket
from ports.http_server import Answer, Server, answer_with, mutual_tls
from ports.randomness import SeededRandomness
from ports.transport import ByteStream, Request, Response
from sandbox.forward_proxy import ForwardProxy
from sandbox.world import World
from tests.informers.support import eventually
from tests.sql_server import certificates

_HERE = "127.0.0.1"
_ROOT = Path(__file__).resolve().parents[2]
_LARGE = b"x" * (8 << 20)
"""More than the buffers of two sockets hold."""

_STARTS = {
    "at once": b"",
    "in a line": b"GET /large",
    "in the headers": b"GET /large HTTP/1.1\r\nhost: x\r\nx-more: ",
    "in the body": b"POST /large HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345",
    "in the answer": b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n",
    "between answers": b"GET /large HTTP/1.1\r\nhost: x\r\n\r\nGET /large HTTP/1.1\r\n",
}
_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The beginning of a TLS handshake."""

_HANDSHAKES = {"at once": b"", "in the handshake": _HELLO, "without TLS": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"}


class _Endless:
    """A transport whose server sends a large body in pieces."""

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        return Response(200, {}, _LARGE)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return _Pieces()


class _Pieces:
    status = 200
    headers: ClassVar[dict[str, str]] = {}

    def __iter__(self) -> Iterator[bytes]:
        return iter([_LARGE] * 4)

    def abort(self) -> None:
        """See `ByteStream`."""

    def close(self) -> None:
        """See `ByteStream`."""


def _large(_request: Request) -> Response:
    return Response(200, {}, _LARGE)


@contextlib.contextmanager
def _of_ports(answer: Answer) -> Iterator[int]:
    """The server of the health page, of Discovery and of the extender."""
    server = Server("tested", (_HERE, 0), answer)
    with server.serving():
        yield server.port


@contextlib.contextmanager
def _api_server() -> Iterator[int]:
    world = World(SystemClock(), SeededRandomness(1))
    url, _ = world.serve_http()
    try:
        yield int(url.rpartition(":")[2])
    finally:
        world.stop()


@contextlib.contextmanager
def _forward_proxy() -> Iterator[int]:
    proxy = ForwardProxy(_Endless())
    proxy.start()
    try:
        yield proxy.port
    finally:
        proxy.stop()


_SERVERS: dict[str, Callable[[], AbstractContextManager[int]]] = {
    "ports/http_server.py": lambda: _of_ports(answer_with(_large)),
    "discovery/main.py": lambda: _of_ports(answer_through(DashboardProxy(_Endless(), "http://pd"))),
    "sandbox/apiserver/http_server.py": _api_server,
    "sandbox/forward_proxy.py": _forward_proxy,
}

_IN_PODS = {"sandbox/processes/agent.py", "sandbox/processes/gateway.py"}
"""Servers in the network of real pods: `tests/sandbox/test_real_processes.py` resets their connections."""


@pytest.mark.parametrize("start", _STARTS.values(), ids=_STARTS)
@pytest.mark.parametrize("server", _SERVERS)
def test_a_reset_is_one_debug_line(server: str, start: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    start = start.replace(b"/large", b"/dashboard") if "dashboard" in server else start
    with _quiet(capfd), _SERVERS[server]() as port:
        before = threading.active_count()
        _break_off(socket.create_connection((_HERE, port), timeout=5), start)
        eventually(lambda: threading.active_count() <= before)
        with socket.create_connection((_HERE, port), timeout=5) as next_one:
            next_one.sendall(b"GET /dashboard HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert next_one.recv(8).startswith(b"HTTP/1.")


@pytest.mark.parametrize("start", _HANDSHAKES.values(), ids=_HANDSHAKES)
def test_a_reset_in_a_handshake_is_one_debug_line(
    start: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tls = certificates(tmp_path / "tls")
    server = Server("tested", (_HERE, 0), answer_with(_large), mutual_tls(tls))
    with _quiet(capfd), server.serving():
        before = threading.active_count()
        _break_off(socket.create_connection((_HERE, server.port), timeout=5), start)
        eventually(lambda: threading.active_count() <= before)
        _break_off(_shaken(server.port, tls), b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        eventually(lambda: threading.active_count() <= before)


def test_a_socket_whose_client_is_gone_before_the_handshake_is_closed(tmp_path: Path) -> None:
    context = mutual_tls(certificates(tmp_path / "tls")).context()
    context.sslsocket_class = DeadlineTlsSocket
    with socket.create_server((_HERE, 0)) as listening:
        client = socket.create_connection(listening.getsockname(), timeout=5)
        accepted, _ = listening.accept()
        _break_off(client, b"")
        descriptor = accepted.fileno()
        with pytest.raises(ConnectionResetError):
            context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_each_class_of_a_server_is_tested() -> None:
    found = {
        str(file.relative_to(_ROOT))
        for file in _ROOT.glob("*/**/*.py")
        if file.parts[len(_ROOT.parts)] not in ("tests", "bench", ".venv", "hack", "build")
        and re.search(r"HTTPServer\)|\.listen\(", file.read_text("utf-8"))
    }
    assert found == _SERVERS.keys() - {"discovery/main.py"} | _IN_PODS


@contextlib.contextmanager
def _quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail when something is logged above debug, or printed, or left open."""
    left: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: left.append(repr(args.exc_value))
    try:
        with capture_logs() as lines, warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            yield
    finally:
        sys.unraisablehook = hook
    broken = [line for line in lines if line["event"] == "connection broken"]
    assert {"debug"} >= {line["log_level"] for line in lines if line["event"] != "request"}
    assert not any("exc_info" in line for line in lines)
    assert len(broken) <= 2
    assert "" == capfd.readouterr().err
    assert [] == left


def _break_off(client: socket.socket, start: bytes) -> None:
    """Send a part, and reset the connection while an answer may be under way."""
    client.sendall(start)
    if start.endswith(b"\r\n\r\n"):
        with contextlib.suppress(OSError):
            client.recv(1)
    # a reset instead of a goodbye
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def _shaken(port: int, tls: Path) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(tls / "ca.crt"))
    context.load_cert_chain(tls / "tls.crt", tls / "tls.key")
    return context.wrap_socket(socket.create_connection((_HERE, port), timeout=5), server_hostname="localhost")


def test_a_host_without_a_certificate_is_refused_in_one_warning(tmp_path: Path) -> None:
    tls = certificates(tmp_path / "tls")
    server = Server("tested", (_HERE, 0), answer_with(_large), mutual_tls(tls))
    context = ssl.create_default_context(cafile=str(tls / "ca.crt"))
    with capture_logs() as lines, server.serving():
        for _ in range(3):
            plain = socket.create_connection((_HERE, server.port), timeout=5)
            with contextlib.suppress(OSError), context.wrap_socket(plain, server_hostname="localhost") as secured:
                secured.recv(1)
        eventually(lambda: len(lines) == 3)
    refused = {"event": "client refused", "reason": "it shows no certificate, and this server demands one"}
    assert [refused] == [{key: line[key] for key in refused} for line in lines if line["log_level"] == "warning"]
