"""What the process serves about itself over HTTP: `/metrics`, `/healthz`, `/readyz` (scheduler-deployment.md 3.3, 5).

A failing `/healthz` asks for a restart, a failing `/readyz` for patience. Both answer with a line per check.
"""

import gzip
import selectors
import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, gzip_accepted

from controller_manager.addresses import parse_address
from ports.failures import ANY_FAILURE

_log = structlog.get_logger(__name__)

_REQUEST_TIMEOUT = 10.0
"""Seconds that a client may take to send its request or to read the answer."""

_MOST_CONNECTIONS = 100
"""Connections that are open at a time, each with a thread; one more ends the oldest, so that a probe gets through."""

_WORTH_COMPRESSING = 1400
"""Bytes that fit into a packet, about."""

_COMPRESSION = 5

_PLAIN = "text/plain; charset=utf-8"

Check = Callable[[], str | None]
"""Returns None when all is well, or a sentence that says what is not. Must be quick and never wait."""


class ListenError(Exception):
    """Raised when the address cannot be listened on; the message names address, flag and cause."""


class Checks:
    """Named checks, in the order in which they were added. Safe for use by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check, or replace the one of that name."""
        with self._lock:
            self._checks[name] = check

    def failures(self) -> dict[str, str | None]:
        """Every check with its reason, None for one that holds. A check that raises has failed."""
        with self._lock:
            checks = dict(self._checks)
        return {name: _reason(check) for name, check in checks.items()}


def _reason(check: Check) -> str | None:
    try:
        return check()
    except ANY_FAILURE as error:
        # A broken check must answer "no" instead of dropping the connection.
        return f"the check itself failed: {error!r}"


class HealthServer:
    """Serves metrics and checks on its own threads. `live` and `ready` take checks at any time."""

    def __init__(self, address: str, registry: CollectorRegistry, flag: str = "--metrics-addr") -> None:
        """`address` is `[host]:port`, port 0 for any free one; `flag` is what a message tells the user to change."""
        self.live = Checks()
        self.ready = Checks()
        self._address = address
        self._registry = registry
        self._flag = flag
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen, and serve from now on. Raises ListenError."""
        pages: dict[str, Callable[[], _Page]] = {
            "/metrics": self._metrics,
            "/healthz": lambda: _checks_page(self.live),
            "/readyz": lambda: _checks_page(self.ready),
        }
        try:
            self._server = _Server(parse_address(self._address), pages)
        except OSError as error:
            raise ListenError(
                f"cannot listen on {self._address}: {error.strerror or error}; choose another address with "
                f"{self._flag}, such as {self._flag}=:6061"
            ) from error
        self._thread = threading.Thread(target=self._server.serve, name="health-server")
        self._thread.start()
        _log.info("serving metrics and health", port=self.port)

    @property
    def port(self) -> int:
        """The port that is listened on; only after `start`."""
        if self._server is None:
            raise RuntimeError("the health server was not started")
        port: int = self._server.server_address[1]
        return port

    def stop(self) -> None:
        """Stop at once: end open connections and all threads. Idempotent."""
        server, self._server = self._server, None
        if server is None or self._thread is None:
            return
        server.wake()
        self._thread.join(_REQUEST_TIMEOUT)
        server.server_close()

    def _metrics(self) -> "_Page":
        # v1.6's format: older readers take no other version of it
        return HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry)


_Page = tuple[HTTPStatus, str, bytes]


def _checks_page(checks: Checks) -> _Page:
    results = checks.failures()
    lines = [f"[-] {name}: {reason}" if reason else f"[+] {name}" for name, reason in results.items()]
    failed = any(results.values())
    text = "\n".join([*lines, "failed" if failed else "ok", ""])
    return HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK, _PLAIN, text.encode()


class _Server(socketserver.ThreadingTCPServer):
    """A thread per connection; all of them end when the server is closed."""

    allow_reuse_address = True
    request_queue_size = 1024
    timeout = 0

    def __init__(self, address: tuple[str, int], pages: dict[str, Callable[[], _Page]]) -> None:
        self.pages = pages
        self._open: dict[socket.socket, None] = {}
        self._open_lock = threading.Lock()
        dual_stack = not address[0] and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if dual_stack or ":" in address[0] else socket.AF_INET
        self._waker, self._waiter = socket.socketpair()
        try:
            super().__init__(address, _Handler)
        except BaseException:
            self._close_waker()
            raise

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            only_v6 = 1 if self.server_address[0] else 0
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_v6)
        super().server_bind()

    def serve(self) -> None:
        """Accept connections until woken; `serve_forever` would notice its end half a second late."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            selector.register(self._waiter, selectors.EVENT_READ)
            while self._waiter not in {key.fileobj for key, _ in selector.select()}:
                self.handle_request()

    def wake(self) -> None:
        """Make `serve` return."""
        self._waker.send(b"x")

    def server_close(self) -> None:
        with self._open_lock:
            for connection in self._open:
                _end(connection)
        super().server_close()
        self._close_waker()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open[request] = None
            if len(self._open) > _MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _end(oldest)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        threading.current_thread().name = "health-request"
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._open_lock:
                self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  (the base class's signature)
        _log.debug("request failed", client=client_address, exc_info=True)

    def _close_waker(self) -> None:
        self._waker.close()
        self._waiter.close()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # the client was faster
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD with a page."""

    timeout = _REQUEST_TIMEOUT
    server: _Server

    def do_GET(self) -> None:
        status, content_type, body = self._page()
        self.send_response(status)
        if len(body) > _WORTH_COMPRESSING and gzip_accepted(self.headers.get("accept-encoding", "")):
            body = gzip.compress(body, _COMPRESSION)
            self.send_header("content-encoding", "gzip")
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815  (the base class's name)

    def _page(self) -> _Page:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            return HTTPStatus.NOT_FOUND, _PLAIN, ("try one of " + ", ".join(self.server.pages) + "\n").encode()
        try:
            return page()
        except ANY_FAILURE:
            # One broken collector must be seen, not look like a process that is gone.
            _log.exception("page failed", path=self.path)
            return HTTPStatus.INTERNAL_SERVER_ERROR, _PLAIN, b"failed, see the log\n"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's signature)
        _log.debug("http request", line=format % args)
