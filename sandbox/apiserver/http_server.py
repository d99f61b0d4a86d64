"""The server on a loopback port: HTTP/1.1 with kept-alive connections and chunked watches.

One thread accepts connections and notices clients that disconnect during a watch; each connection has its own thread.
"""

import contextlib
import errno
import selectors
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import responses
from io import BufferedReader

import structlog

from ports.transport import ConnectionLost, Request, Response, TransportError
from sandbox.apiserver import port_forward
from sandbox.apiserver.answers import refusal_answer
from sandbox.apiserver.refusals import Refusal, bad_request
from sandbox.apiserver.server import ApiServer, Streamed
from sandbox.apiserver.spdy import Malformed

_log = structlog.get_logger(__name__)

_HOST = "127.0.0.1"
_MAX_LINE = 65536
_MAX_BODY = 64 << 20
"""Bytes; no object exceeds three million."""
_BACKLOG = 128
_STOP_GRACE = 5.0
"""Seconds that connections have to end."""


class PortInUse(Exception):
    """Raised if the address is in use. The message names it and the way out."""


class _Malformed(Exception):
    """Raised if a client does not speak HTTP."""


@dataclass(frozen=True, slots=True)
class _Asked:
    request: Request
    keep: bool


class HttpServer:
    """Serves an ApiServer between `start` and `stop`; also a context manager."""

    def __init__(self, server: ApiServer, port: int = 0) -> None:
        """Port 0 means any free port. Raises PortInUse."""
        self._server = server
        self._listener = _listen(port)
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._stopping = False
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._streams: dict[socket.socket, Streamed] = {}
        self._acceptor = threading.Thread(target=self._accept, name="apiserver-accept", daemon=True)
        self._number = 0

    @property
    def port(self) -> int:
        """The port of the server."""
        number: int = self._listener.getsockname()[1]
        return number

    @property
    def url(self) -> str:
        """The address for kubectl's `--server`."""
        host, port = self._listener.getsockname()[:2]
        return f"http://{host}:{port}"

    def start(self) -> None:
        """Begin to accept connections."""
        self._acceptor.start()

    def stop(self) -> None:
        """End all watches and connections and wait for their threads. Idempotent."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            connections, streams = dict(self._connections), list(self._streams.values())
        self._wake.send(b"x")
        for stream in streams:
            stream.abort()
        for connection in connections:
            _shut(connection)
        for thread in (self._acceptor, *connections.values()):
            if thread.ident:
                thread.join(_STOP_GRACE)
        for resource in (self._selector, self._listener, self._wake, self._woken):
            resource.close()

    def __enter__(self) -> "HttpServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._open()
                elif key.fileobj is self._woken:
                    self._woken.recv(1024)
                elif isinstance(key.fileobj, socket.socket):
                    self._heard_from(key.fileobj)

    def _open(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if self._stopping:
                connection.close()
                return
            self._number += 1
            name = f"apiserver-connection-{self._number}"
            thread = threading.Thread(target=self._serve, args=(connection,), name=name, daemon=True)
            self._connections[connection] = thread
        thread.start()

    def _heard_from(self, connection: socket.socket) -> None:
        """Abort a watch whose client has sent something: most likely it disconnected."""
        try:
            gone = not connection.recv(1, socket.MSG_PEEK)
        except OSError:
            gone = True
        self._unwatch(connection)
        with self._lock:
            stream = self._streams.get(connection)
        if gone and stream:
            stream.abort()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as reader:
                while self._exchange(connection, reader):
                    pass
        except (OSError, TransportError) as error:
            _log.debug("connection broken", server="apiserver", cause=str(error))
        finally:
            with self._lock:
                self._connections.pop(connection, None)

    def _exchange(self, connection: socket.socket, reader: BufferedReader) -> bool:
        """Serve one request; True if another may follow. Raises OSError, ConnectionLost."""
        try:
            asked = _read(reader, connection)
        except _Malformed as error:
            connection.sendall(_head(refusal_answer(bad_request(str(error))), keep=False))
            return False
        if asked is None:
            return False
        if port_forward.is_upgrade(asked.request):
            self._forward(connection, reader, asked.request)
            return False
        answer = self._respond(asked.request)
        if not isinstance(answer, Response):
            return self._stream(connection, answer) and asked.keep
        connection.sendall(_head(answer, keep=asked.keep) + answer.body)
        return asked.keep

    def _respond(self, request: Request) -> Response | Streamed:
        try:
            user = self._server.authenticate(request.headers.get("authorization", ""))
            return self._server.respond(user, request)
        except Refusal as refusal:
            return refusal_answer(refusal)
        except TransportError:
            raise
        except Exception:
            # the boundary of a request: a defect of the server must not end the connection
            _log.exception("request failed", method=request.method, url=request.url)
            return refusal_answer(Refusal(500, "InternalError", "Internal error occurred: see the server's log", {}))

    def _forward(self, connection: socket.socket, reader: BufferedReader, request: Request) -> None:
        """Forward ports of a pod until the client ends it. Raises OSError."""
        try:
            user = self._server.authenticate(request.headers.get("authorization", ""))
            forward = self._server.port_forward(user, request)
        except Refusal as refusal:
            connection.sendall(_head(refusal_answer(refusal), keep=False) + refusal_answer(refusal).body)
            return
        connection.sendall(port_forward.ACCEPTED)
        try:
            forward.serve(connection, reader)
        except Malformed as error:
            _log.debug("connection broken", server="apiserver", cause=str(error))

    def _stream(self, connection: socket.socket, stream: Streamed) -> bool:
        """Send a watch as it arrives; True if it ended cleanly."""
        with self._lock:
            if self._stopping:
                stream.close()
                return False
            self._streams[connection] = stream
        try:
            connection.sendall(_stream_head(stream.headers))
            self._selector.register(connection, selectors.EVENT_READ)
            for chunk in stream:
                connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            connection.sendall(b"0\r\n\r\n")
        finally:
            self._unwatch(connection)
            with self._lock:
                self._streams.pop(connection, None)
            stream.close()
        return True

    def _unwatch(self, connection: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError, RuntimeError):
            self._selector.unregister(connection)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError as error:
        listener.close()
        if error.errno != errno.EADDRINUSE:
            raise
        message = f"{_HOST}:{port} is in use by another program: choose another port, or 0 for any free one"
        raise PortInUse(message) from error
    listener.listen(_BACKLOG)
    return listener


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _read(reader: BufferedReader, connection: socket.socket) -> _Asked | None:
    """The next request, or None when the client is done. Raises _Malformed, OSError."""
    line = _line(reader)
    if not line:
        return None
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Malformed(f"malformed request line {line!r}")
    method, url, version = words
    headers = _headers(reader)
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = _body(reader, headers)
    keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return _Asked(Request(method, url, headers, body), keep)


def _line(reader: BufferedReader) -> str:
    line = reader.readline(_MAX_LINE)
    if line and not line.endswith(b"\n"):
        raise _Malformed("a line is too long or cut off")
    return line.decode("latin-1").rstrip("\r\n")


def _headers(reader: BufferedReader) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    while line := _line(reader):
        name, colon, value = line.partition(":")
        if not colon:
            raise _Malformed(f"malformed header {line!r}")
        name = name.strip().lower()
        headers[name] = f"{headers[name]},{value.strip()}" if name in headers else value.strip()
    return headers


def _body(reader: BufferedReader, headers: Mapping[str, str]) -> bytes | None:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return b"".join(iter(lambda: _chunk(reader), b""))
    length = headers.get("content-length", "")
    if not length:
        return None
    if not length.isdecimal():
        raise _Malformed(f"malformed content-length {length!r}")
    return _exactly(reader, int(length))


def _chunk(reader: BufferedReader) -> bytes:
    size = _line(reader).partition(";")[0]
    try:
        chunk = _exactly(reader, int(size, 16))
    except ValueError as error:
        raise _Malformed(f"malformed chunk size {size!r}") from error
    _line(reader)
    return chunk


def _exactly(reader: BufferedReader, size: int) -> bytes:
    if size > _MAX_BODY:
        raise _Malformed(f"a body of {size} bytes is larger than {_MAX_BODY}")
    body = reader.read(size)
    if len(body) < size:
        raise ConnectionLost("", "", "the client ended the connection within its request")
    return body


def _head(answer: Response, *, keep: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, '')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines.append(f"content-length: {len(answer.body)}")
    if not keep:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _stream_head(headers: Mapping[str, str]) -> bytes:
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers.items()), "transfer-encoding: chunked"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
