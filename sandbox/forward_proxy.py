"""An HTTP forward proxy on loopback, through which other processes reach the data plane (dataplane-apis.md 14.1).

It accepts absolute-form requests and, inside a CONNECT tunnel, plain HTTP, TLS and (to a TiDB) MySQL's protocol, for
which it plays the server with the server's certificate. If the server does not answer, the proxy closes the connection
silently, because its own error status would look like the server's.
"""

import contextlib
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog

from ports.http_server import read_body
from ports.transport import Request, Transport, TransportError
from sandbox.dataplane.sql import SqlServer
from sandbox.dataplane.tls import ServerSide, server_context
from sandbox.sql_session import SqlSession

_log = structlog.get_logger(__name__)

Dial = Callable[[str, int], socket.socket | None]
"""Connects to the real process at host and port; None for a simulated one. Raises OSError."""

_HOST = "127.0.0.1"
_POLL = 0.05
_BUFFER = 65536
_TLS_HANDSHAKE = b"\x16"
"""The first byte of a connection that begins with TLS."""
_HOP_BY_HOP = ("connection", "proxy-connection", "keep-alive", "transfer-encoding", "te", "upgrade", "content-length")
_TIMEOUT = 60.0
"""Clients have their own, shorter timeouts."""


class ForwardProxy:
    """Serves between `start` and `stop`, on a free port of 127.0.0.1."""

    def __init__(
        self,
        transport: Transport,
        server_side: Callable[[str], ServerSide | None] = lambda _: None,
        sql: Callable[[str, int], SqlServer | None] = lambda _, __: None,
        dial: Dial = lambda _, __: None,
    ) -> None:
        """`server_side` returns the TLS of the server at `host:port`, `sql` the SQL server at host and port.

        Clients of `transport` are already authenticated. `dial` connects to a real process.
        """
        self._server = _Server((_HOST, 0), transport, server_side, sql, dial)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,), name="forward-proxy")

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Accept connections."""
        self._thread.start()

    def play(self, connection: socket.socket, authority: str) -> None:
        """Play the server `host:port` on a connection that a client has made to it, until it ends."""
        _Played(connection, authority, self._server)

    def stop(self) -> None:
        """Close all connections; no thread is left."""
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(
        self,
        address: tuple[str, int],
        transport: Transport,
        server_side: Callable[[str], ServerSide | None],
        sql: Callable[[str, int], SqlServer | None],
        dial: Dial,
    ) -> None:
        super().__init__(address, _Connection)
        self.transport = transport
        self.server_side = server_side
        self.sql = sql
        self.dial = dial
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        accepted, address = super().get_request()
        with self._lock:
            self._open.add(accepted)
        return accepted, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  (the base class's shape)
        """Log a client that disconnects at level debug, and any other error as a defect."""
        error = sys.exception()
        if isinstance(error, OSError):
            _log.debug("connection broken", server="forward-proxy", client=str(client_address), cause=str(error))
        else:
            _log.error("a request through the proxy failed", client=str(client_address), exc_info=error)

    def replace(self, plain: socket.socket, secured: socket.socket) -> None:
        with self._lock:
            self._open.discard(plain)
            self._open.add(secured)

    def forget(self, secured: socket.socket) -> None:
        with self._lock:
            self._open.discard(secured)

    def hang_up(self) -> None:
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as Go's servers do: a body must not wait for the acknowledgement of its head
    server: _Server
    _tunnel = ""
    _client = ""
    _secured: ssl.SSLSocket | None = None

    def do_CONNECT(self) -> None:
        self._tunnel = self.path
        # some clients use HTTP/1.0, but a tunnel outlives the answer
        self.close_connection = False
        self.send_response_only(200, "Connection Established")
        self.end_headers()
        host, _, port = self.path.rpartition(":")
        try:
            real = self.server.dial(host.strip("[]"), int(port)) if port.isdecimal() else None
        except OSError:
            self.close_connection = True
            return
        if real is None:
            self._play()
            return
        self.close_connection = True
        with real:
            pass_through(self.connection, real)

    def _play(self) -> None:
        """Begin to be the server of the tunnel."""
        if sql := self._sql_server():
            self.close_connection = True
            with contextlib.suppress(OSError, ValueError, TransportError):
                self._speak_sql(sql)
        elif self.connection.recv(1, socket.MSG_PEEK) == _TLS_HANDSHAKE:
            try:
                self._secure(self.server.server_side(self._tunnel))
            except (OSError, ValueError):
                # the client has OpenSSL's error already
                self.close_connection = True

    def _sql_server(self) -> SqlServer | None:
        host, _, port = self._tunnel.rpartition(":")
        return self.server.sql(host.strip("[]"), int(port)) if port.isdecimal() else None

    def _speak_sql(self, server: SqlServer) -> None:
        """Raises OSError, ValueError, TransportError."""
        secure = partial(self._secure, server.tls) if server.tls else None
        SqlSession(self.connection, server, secure).run()

    def _secure(self, side: ServerSide | None) -> ssl.SSLSocket:
        """Perform the server's side of the handshake. Raises OSError, ValueError."""
        if side is None:
            raise ConnectionError("no TLS server answers there")
        plain = self.connection
        secured = server_context(side).wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.server.replace(plain, secured)
        self.connection = self._secured = secured
        secured.do_handshake()
        self.rfile = secured.makefile("rb")
        self.wfile = secured.makefile("wb", 0)  # type: ignore[assignment]  # as `StreamRequestHandler` does
        return secured

    def finish(self) -> None:
        """Also close what has replaced the connection."""
        with contextlib.suppress(OSError):
            super().finish()
        if self._secured is not None:
            self.server.forget(self._secured)
            self._secured.close()

    def _forward(self) -> None:
        scheme = "https" if self._secured else "http"
        url = f"{scheme}://{self._tunnel}{self.path}" if self._tunnel else self.path
        try:
            headers = dict(self.headers.items())
            request = Request(self.command, url, headers, self._body(), _TIMEOUT, client=self._client)
            response = self.server.transport.request(request)
        except (TransportError, ConnectionResetError):
            self.close_connection = True
            return
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("content-length", str(len(response.body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(response.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _forward  # noqa: N815

    def _body(self) -> bytes | None:
        length = int(self.headers.get("content-length", "0"))
        return read_body(self.rfile, length) or None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: the network counts requests."""


class _Played(_Connection):
    """A connection of a client to a simulated server."""

    def __init__(self, connection: socket.socket, authority: str, server: _Server) -> None:
        client = connection.getpeername()
        self._tunnel, self._client = authority, client[0]
        server.replace(connection, connection)
        try:
            super().__init__(connection, client, server)
        finally:
            server.forget(connection)

    def handle(self) -> None:
        self.close_connection = False
        self._play()
        if not self.close_connection:
            super().handle()


def connect_through(port: int, authority: str) -> socket.socket:
    """A connection to `host:port` through the proxy on a port of loopback. Raises OSError."""
    connection = socket.create_connection((_HOST, port), _TIMEOUT)
    connection.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    head = b""
    # a server may speak first: no byte after the head is the proxy's
    while not head.endswith(b"\r\n\r\n"):
        if not (byte := connection.recv(1)):
            connection.close()
            raise ConnectionRefusedError(f"connection to {authority} refused")
        head += byte
    return connection


def pass_through(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes in both directions until both sides have ended."""
    for each in (one, other):
        each.settimeout(None)
    back = threading.Thread(target=_pump, args=(other, one), name="pass-through", daemon=True)
    back.start()
    _pump(one, other)
    back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_BUFFER):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
