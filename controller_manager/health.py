"""The process's own HTTP server: `/metrics`, `/healthz`, `/readyz` (scheduler-deployment.md 3.3, 5).

A failing `/healthz` requests a restart, a failing `/readyz` patience. Both answer with a line per check.
"""

import gzip
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, gzip_accepted

from controller_manager.addresses import parse_address
from ports.failures import ANY_FAILURE
from ports.http_server import ListenError as NoPort
from ports.http_server import Server, answer_with
from ports.transport import Request, Response

_log = structlog.get_logger(__name__)

_WORTH_COMPRESSING = 1400
"""About the number of bytes in a network packet."""

_COMPRESSION = 5

_PLAIN = "text/plain; charset=utf-8"

Check = Callable[[], str | None]
"""Returns None, or a sentence about the failure. Must be fast and never wait."""


class ListenError(Exception):
    """Raised if the address cannot be listened on; the message names address, flag and cause."""


def listening(address: str, flag: str, server: Callable[[tuple[str, int]], Server], example: str = "") -> Server:
    """The server that `server` makes for an address. Raises ListenError, which names the flag and an example."""
    try:
        return server(parse_address(address))
    except NoPort as error:
        such = f", such as {flag}={example}" if example else ""
        raise ListenError(
            f"cannot listen on {address}: {error.cause}; choose another address with {flag}{such}"
        ) from error


_Page = tuple[HTTPStatus, str, bytes]
"""Status, content type, body."""


class Checks:
    """Named checks, in the order of their addition. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check, or replace the one with this name."""
        with self._lock:
            self._checks[name] = check

    def failures(self) -> dict[str, str | None]:
        """Every check with the reason of its failure, None if it passes. A check that raises has failed."""
        with self._lock:
            checks = dict(self._checks)
        return {name: _reason(check) for name, check in checks.items()}


def _reason(check: Check) -> str | None:
    try:
        return check()
    except ANY_FAILURE as error:
        # a broken check must answer "no" instead of dropping the connection
        return f"the check itself failed: {error!r}"


class HealthServer:
    """Serves metrics and checks on its own threads. Checks can be added to `live` and `ready` at any time."""

    def __init__(self, address: str, registry: CollectorRegistry, flag: str = "--metrics-addr") -> None:
        """`address` is `[host]:port`, port 0 for any free one; `flag` is the flag to change according to error
        messages.
        """
        self.live = Checks()
        self.ready = Checks()
        self._address = address
        self._registry = registry
        self._flag = flag
        self._server: Server | None = None

    def start(self) -> None:
        """Listen and serve. Raises ListenError."""
        pages: Mapping[str, Callable[[], _Page]] = {
            "/metrics": self._metrics,
            "/healthz": lambda: _checks_page(self.live),
            "/readyz": lambda: _checks_page(self.ready),
        }
        answer = answer_with(partial(_respond, pages))
        self._server = listening(self._address, self._flag, lambda where: Server("health", where, answer), ":6061")
        self._server.start()
        _log.info("serving metrics and health", port=self.port)

    @property
    def port(self) -> int:
        """The port of the server, after `start`."""
        if self._server is None:
            raise RuntimeError("the health server was not started")
        return self._server.port

    def stop(self) -> None:
        """Stop immediately: end open connections and all threads. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def _metrics(self) -> _Page:
        # v1.6's format: older readers accept no other version of it
        return HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry)


def _checks_page(checks: Checks) -> _Page:
    results = checks.failures()
    lines = [f"[-] {name}: {reason}" if reason else f"[+] {name}" for name, reason in results.items()]
    failed = any(results.values())
    text = "\n".join([*lines, "failed" if failed else "ok", ""])
    return HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK, _PLAIN, text.encode()


def _respond(pages: Mapping[str, Callable[[], _Page]], request: Request) -> Response:
    """The page of a path, compressed if it is long and the client accepts that."""
    if request.method not in ("GET", "HEAD"):
        return Response(HTTPStatus.METHOD_NOT_ALLOWED, {"content-type": _PLAIN, "allow": "GET, HEAD"}, b"")
    status, content_type, body = _page(pages, request.url.partition("?")[0])
    headers = {"content-type": content_type}
    if len(body) > _WORTH_COMPRESSING and gzip_accepted(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, _COMPRESSION)
        headers["content-encoding"] = "gzip"
    return Response(status, headers, body)


def _page(pages: Mapping[str, Callable[[], _Page]], path: str) -> _Page:
    page = pages.get(path)
    if page is None:
        return HTTPStatus.NOT_FOUND, _PLAIN, ("try one of " + ", ".join(pages) + "\n").encode()
    try:
        return page()
    except ANY_FAILURE:
        # a broken collector must be visible, not look like a process that is gone
        _log.exception("page failed", path=path)
        return HTTPStatus.INTERNAL_SERVER_ERROR, _PLAIN, b"failed, see the log\n"
