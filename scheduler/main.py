"""The command `tidb-scheduler` (scheduler-deployment.md 2.2)."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from controller_manager.health import HealthServer
from controller_manager.health import ListenError as NoHealth
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.redaction import redact_text
from controller_manager.shutdown import stopping_on_signals
from controller_manager.version import project_version
from informers.factory import SharedInformerFactory
from kube.config import ClusterConfig, ConfigError
from kube.connecting import connect
from kube.events import EventRecorder
from kube.resources import NODES
from kube.throttle import Rate
from kube.user_config import load
from ports.clock import Clock, SystemClock
from ports.http_server import ListenError, Server, ServerTls, answer_with
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from scheduler.app import App
from scheduler.cluster_state import ClusterState
from scheduler.extender import Extender
from scheduler.metrics import Metrics
from scheduler.options import PROGRAM, Options, parse_options

_log = structlog.get_logger(__name__)

_LONGEST_QUESTION = 1 << 27
"""Bytes: kube-scheduler may send five thousand whole nodes of 25 KB. All questions together are limited to the same
size.
"""


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Serve until a signal arrives; return the exit code."""
    environ = os.environ if environ is None else environ
    clock = SystemClock()
    options = parse_options(sys.argv[1:] if argv is None else argv, environ, project_version())
    configure_logs(options.v, clock=clock)
    for warning in options.without_effect:
        _log.warning("a flag has no effect", why=warning)
    stop = Stop()
    log_uncaught_exceptions(lambda _thread: stop.set())
    try:
        config = load(options.kubeconfig, environ, clock)
        _log.info("starting tidb-scheduler", version=project_version(), server=config.server)
        with stopping_on_signals(stop):
            _serve(options, config, environ, clock, stop)
    except (ConfigError, ListenError, NoHealth) as error:
        print(f"{PROGRAM}: {redact_text(str(error))}", file=sys.stderr)  # noqa: T201  (for whoever started it)
        return 1
    return 0


def _serve(options: Options, config: ClusterConfig, environ: Mapping[str, str], clock: Clock, stop: Stop) -> None:
    """Serve until `stop` is set. Raises ConfigError, ListenError."""
    randomness, registry = SystemRandomness(), CollectorRegistry()
    rate = Rate(options.kube_client_qps, options.kube_client_burst)
    connection = connect(config, environ, clock, stop, rate=rate, user_agent=PROGRAM)
    nodes = SharedInformerFactory(connection.client, clock, randomness, metadata_only=True)
    state = ClusterState(connection.client, nodes.lister_for(NODES))
    recorder = EventRecorder(connection.client, clock, randomness, PROGRAM)
    extender = Extender(state, recorder, clock, stable=options.features.stable_scheduling)
    app = App(extender, clock, Metrics(registry))
    server = Server(
        "extender", ("", options.port), answer_with(app.handle), _tls(options), longest_body=_LONGEST_QUESTION
    )
    health = HealthServer(options.metrics_addr, registry)
    health.ready.add("caches", lambda: "nodes are not read yet" if nodes.unsynced() else None)
    health.ready.add("shutdown", lambda: "stopping" if stop.is_set() else None)
    health.start()
    try:
        recorder.start()
        nodes.start(stop)
        with server.serving():
            _log.info("serving", port=server.port, tls=bool(options.tls_cert_file))
            stop.wait(clock)
        recorder.stop()
        nodes.shutdown()
    finally:
        connection.transport.close()
        health.stop()


def _tls(options: Options) -> ServerTls | None:
    if not options.tls_cert_file:
        return None
    return ServerTls(Path(options.tls_cert_file), Path(options.tls_private_key_file), options.clients)
