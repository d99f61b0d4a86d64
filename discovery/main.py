"""The command `tidb-discovery` (objects.md 10.1, 10.2)."""

import argparse
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from structlog.typing import EventDict

from dataplane.addresses import DISCOVERY_PORT, DISCOVERY_PROXY_PORT, PD_CLIENT_PORT
from dataplane.clients import DataPlane
from dataplane.errors import BadTlsMaterial
from dataplane.http_transport import HttpTransport
from dataplane.tls import TlsMaterial
from discovery.app import MissingSetting, make_app, setting
from kube.config import ConfigError
from kube.connecting import connect_directly
from kube.user_config import load
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.http_server import Answer, Conversation, ListenError, Server, answer_with, end_to_end, mutual_tls
from ports.transport import ByteStream, Request, Response, Transport, TransportError

_log = structlog.get_logger(__name__)

_DISCOVERY_TLS = Path("/var/lib/discovery-tls")
_PD_TLS = Path("/var/lib/pd-tls")
_API_TIMEOUT = 2.0
"""The timeout of a request to the Kubernetes API in seconds: start scripts wait three for their answer, and retry."""

_SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT}
_CONNECT = 10.0
_SILENCE = 60.0
"""Seconds; the dashboard collects logs and profiles, which takes time."""


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Serve until a signal arrives; return the exit code."""
    environ = os.environ if environ is None else environ
    options = _parse(sys.argv[1:] if argv is None else argv)
    if options.version:
        print(f"tidb-discovery {version('tidb-operator-py')}")  # noqa: T201  (what the flag is for)
        return 0
    clock = SystemClock()
    _configure_logs(clock)
    with _signals_blocked():
        try:
            servers = _servers(options, environ, clock)
        except (MissingSetting, ConfigError, ListenError, BadTlsMaterial) as error:
            print(f"tidb-discovery: {error}", file=sys.stderr)  # noqa: T201  (for whoever reads the pod's log)
            return 1
        serve(servers, lambda: signal.Signals(signal.sigwait(_SIGNALS)).name)
    return 0


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals within the block, so that `sigwait` receives them; new threads inherit the mask."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def serve(servers: Sequence[Server], wait: Callable[[], str]) -> None:
    """Serve until `wait` returns, then log its result as the reason."""
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.enter_context(server.serving())
        _log.info("serving", ports=[server.port for server in servers])
        _log.info("shutting down", reason=wait())


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tidb-discovery", description="Serve the addresses that PD, TiKV and TiDB pods need to start."
    )
    parser.add_argument("-V", "-version", "--version", action="store_true", help="print the version and exit")
    parser.add_argument("-port", "--port", type=int, default=DISCOVERY_PORT, help="port of the API")
    parser.add_argument(
        "-proxy-port", "--proxy-port", type=int, default=DISCOVERY_PROXY_PORT, help="port of the dashboard proxy"
    )
    return parser.parse_args(argv)


def _servers(options: argparse.Namespace, environ: Mapping[str, str], clock: Clock) -> list[Server]:
    """The API server and the dashboard proxy. Raises MissingSetting, ConfigError, ListenError, BadTlsMaterial."""
    cluster = setting(environ, "TC_NAME")
    setting(environ, "MY_POD_NAMESPACE")
    config = load("", environ, clock)
    connection = connect_directly(config, environ, clock, timeout=_API_TIMEOUT, user_agent="tidb-discovery")
    dataplane = DataPlane(lambda tls: HttpTransport(environ, tls), OpenFence(), clock)
    app = make_app(environ, connection.client, dataplane, clock)
    tls = mutual_tls(_DISCOVERY_TLS) if environ.get("DISCOVERY_MTLS_ENABLED") == "true" else None
    proxy = _dashboard(cluster, environ)
    return [
        Server("api", ("", options.port), answer_with(app.handle), tls),
        Server("proxy", ("", options.proxy_port), answer_through(proxy)),
    ]


class DashboardProxy:
    """A reverse proxy to PD's dashboard that passes only `/dashboard` (objects.md 10.2)."""

    def __init__(self, transport: Transport, pd_url: str) -> None:
        """`pd_url` is the URL of PD's Service, e.g. `https://demo-pd:2379`."""
        self._transport = transport
        self._pd_url = pd_url

    @contextmanager
    def open(self, request: Request) -> Iterator[ByteStream]:
        """PD's answer to a request whose URL is a path.

        Raises TransportError, also for any other path than the dashboard's.
        """
        if not _is_dashboard(request.url):
            raise TransportError(request.method, request.url, "only /dashboard is passed on to PD")
        onward = Request(
            request.method, self._pd_url + request.url, end_to_end(request.headers), request.body, _CONNECT + _SILENCE
        )
        stream = self._transport.stream(onward, idle_timeout=_SILENCE)
        try:
            yield stream
        finally:
            stream.close()


def answer_through(proxy: DashboardProxy) -> Answer:
    """An `Answer` that streams PD's answers; 502 if there is none."""

    def answer(conversation: Conversation, request: Request) -> None:
        try:
            with proxy.open(request) as stream:
                conversation.send_stream(stream)
        except TransportError as error:
            conversation.close_connection = True
            with suppress(OSError):
                conversation.send_response_of(Response(502, {"connection": "close"}, f"{error}\n".encode()))

    return answer


def _is_dashboard(url: str) -> bool:
    path = urlsplit(url).path
    return path.startswith("/dashboard") and ".." not in path.split("/")


def _dashboard(cluster: str, environ: Mapping[str, str]) -> DashboardProxy:
    if environ.get("TC_TLS_ENABLED") != "true":
        return DashboardProxy(HttpTransport(environ), f"http://{cluster}-pd:{PD_CLIENT_PORT}")
    return DashboardProxy(HttpTransport(environ, _pd_material(_PD_TLS)), f"https://{cluster}-pd:{PD_CLIENT_PORT}")


def _pd_material(directory: Path) -> TlsMaterial:
    try:
        return TlsMaterial(*((directory / name).read_bytes() for name in ("ca.crt", "tls.crt", "tls.key")))
    except OSError as error:
        raise BadTlsMaterial(
            f"TC_TLS_ENABLED is true, but {error.filename} cannot be read: {error.strerror}"
        ) from error


def _configure_logs(clock: Clock) -> None:
    def add_timestamp(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["timestamp"] = clock.wall().isoformat(timespec="milliseconds")
        return event

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            add_timestamp,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
