"""A gate in front of an API server, which all requests of the operator pass.

It counts requests, and calls a hook at each write, before the server sees it and before the operator sees the answer.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from controllers.status_pacing import DETAILS
from ports.http_server import read_body
from ports.transport import ByteStream, Request, Transport, TransportError
from tests.e2e.waiting import CLOCK, eventually

_IDLE = 3600.0
_QUIET = DETAILS.first + 1.0
"""Seconds without a write after which nothing more is expected: a detail of a status may wait that long."""
_POLL = 0.05
_KEPT_BACK = ("content-length", "transfer-encoding", "connection", "content-encoding")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class HungUp(Exception):
    """Raised by a hook to end the connection without an answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: `resource` as RBAC names it (`tidbclusters/status`), with its group."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    status: int = 0
    body: bytes = field(default=b"", repr=False)

    @property
    def is_write(self) -> bool:
        """True if it may change an object, except renewals of the Lease."""
        return self.verb in _VERBS.values() and self.resource != "leases"


Hook = Callable[[Call], None]
"""Called with a write; `status` is 0 before the server has seen it. May raise HungUp."""


def _ignore(_: Call) -> None:
    """Let all requests pass."""


class Gate:
    """Serves on 127.0.0.1 between `start` and `stop`; also a context manager."""

    def __init__(self, upstream: Transport, port: int = 0) -> None:
        """`upstream` has its own identity; the gate drops the identity of the request. Port 0 is any free one."""
        self.hook: Hook = _ignore
        self._upstream = upstream
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._streams: set[ByteStream] = set()
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,), name="gate")

    @property
    def url(self) -> str:
        """The address for the operator's kubeconfig."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def calls(self) -> list[Call]:
        """The requests answered so far."""
        with self._lock:
            return list(self._calls)

    @property
    def writes(self) -> list[Call]:
        """The calls that may have changed something."""
        return [call for call in self.calls if call.is_write]

    def forget(self) -> None:
        """Count from zero."""
        with self._lock:
            self._calls.clear()

    def await_quiet(self) -> None:
        """Wait until no write has happened for a while: the requested change is complete."""
        writes, since = len(self.writes), CLOCK.now()

        def quiet() -> bool:
            nonlocal writes, since
            if writes != (found := len(self.writes)):
                writes, since = found, CLOCK.now()
            return CLOCK.now() - since >= _QUIET

        eventually(quiet, within=10 * _QUIET)

    def __enter__(self) -> "Gate":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.abort()
        self._server.server_close()

    def answer(self, request: Request) -> ByteStream:
        """Pass a request on. Raises HungUp, TransportError."""
        call = replace(call_of(request.method, request.url), body=request.body or b"")
        if call.is_write:
            self.hook(call)
        stream = self._upstream.stream(request, _IDLE)
        answered = replace(call, status=stream.status)
        with self._lock:
            self._calls.append(answered)
            self._streams.add(stream)
        if call.is_write:
            try:
                self.hook(answered)
            except HungUp:
                self.done(stream)
                raise
        return stream

    def done(self, stream: ByteStream) -> None:
        """The answer was passed on, or cannot be."""
        with self._lock:
            self._streams.discard(stream)
        stream.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], gate: Gate) -> None:
        super().__init__(address, _Connection)
        self.gate = gate

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed hangs up anywhere."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _forward(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body = read_body(self.rfile, length) or None
        headers = {name: value for name, value in self.headers.items() if name.lower() in ("accept", "content-type")}
        try:
            stream = self.server.gate.answer(Request(self.command, self.path, headers, body))
        except (HungUp, TransportError):
            self.close_connection = True
            return
        try:
            self._pass_on(stream)
        except (TransportError, OSError):
            self.close_connection = True
        finally:
            self.server.gate.done(stream)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815

    def _pass_on(self, stream: ByteStream) -> None:
        self.send_response_only(stream.status)
        for name, value in stream.headers.items():
            if name not in _KEPT_BACK:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in stream:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The gate counts; nothing is logged."""


def call_of(method: str, url: str) -> Call:
    """The subject of a request, as authorization sees it."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if part]
    group, rest = ("", path[2:]) if path[:1] == ["api"] else (path[1] if len(path) > 1 else "", path[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    resource = "/".join([*rest[:1], *rest[2:]])
    verb = _VERBS.get(method) or ("get" if name else "list")
    with contextlib.suppress(KeyError):
        verb = "watch" if parse_qs(parts.query)["watch"] else verb
    return Call(verb, group, resource, namespace, name)
