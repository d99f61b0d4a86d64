"""The process: what is connected to what, what starts when, and in which order all of it ends.

    start   health server → informers, events, timers, leader election, side by side (a warm standby, CW-8)
            → leading and synced: workers
    stop    not ready → workers finish their syncs → informers → the lease is released → events → health server

Leadership that is lost ends the process at once, code 1: whoever leads now must not meet a second writer (LE-20).
"""

import os
import socket
import threading
from collections.abc import Callable, Mapping

import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from controller_manager.flags import Options
from controller_manager.health import HealthServer
from controllers.controller import Controller
from controllers.metrics import ClusterMetrics, ControllerMetrics
from controllers.tidbcluster.controller import tidb_cluster_controller
from dataplane.clients import DataPlane
from dataplane.http_transport import HttpTransport
from informers.factory import SharedInformerFactory
from informers.list_watch import Selectors
from informers.metrics import InformerMetrics
from informers.reflector import Reflector, log_watch_error
from kube.apply import Applier
from kube.config import ClusterConfig
from kube.connecting import Connection, connect, connect_directly
from kube.errors import NotFound
from kube.events import EventRecorder
from kube.leader_election import Callbacks, ElectionMetrics, LeaderElector, Timing, identity
from kube.leases import LeaseLock
from kube.resources import TIDB_CLUSTERS
from kube.rest_metrics import PrometheusObserver, RequestObserver
from kube.throttle import Rate
from member.labels import MANAGED_BY, TIDB_OPERATOR
from member.round import Doors, Settings
from ports.clock import Clock
from ports.fencing import Fence
from ports.latch import Latch
from ports.randomness import Randomness
from ports.stopping import Stop
from workqueue.metrics import PrometheusQueueMetrics
from workqueue.timers import Timers

log = structlog.get_logger(__name__)

USER_AGENT = "tidb-operator"


class Manager:
    """One controller-manager in one cluster, as one identity."""

    def __init__(
        self,
        options: Options,
        config: ClusterConfig,
        environ: Mapping[str, str],
        clock: Clock,
        randomness: Randomness,
        *,
        exit_now: Callable[[int], object] = os._exit,
    ) -> None:
        """Put everything together; nothing is started and nothing is sent.

        `exit_now` ends the process when leadership is lost. Raises ConfigError.
        """
        self._options, self._config, self._environ = options, config, environ
        self._clock, self._randomness, self._exit_now = clock, randomness, exit_now
        self.namespace = options.namespace or config.namespace
        self._registry = _registry()
        self._requests_stop, self._informers_stop = Stop(), Stop()
        self._work_stop, self._election_stop = Stop(), Stop()
        self._leading = Latch()
        self._connections: list[Connection] = []
        self._exit_code = 0
        self._drained = True
        self._timers = Timers(clock)
        self._recorder = EventRecorder(self._connect("events").client, clock, randomness)
        self._elector = self._make_elector()
        observer = PrometheusObserver(self._registry, config.server)
        self._client = self._connect("", self._elector.lease, observer)
        self._clusters, self._owned = self._factories()
        self._controller = self._make_controller()
        self.health = HealthServer(options.metrics_addr, self._registry)
        self.health.live.add("leader-election", self._election_trouble)
        self.health.ready.add("shutdown", lambda: "stopping" if self._work_stop.is_set() else None)
        self.health.ready.add("caches", self._unsynced)

    def run(self, stop: Stop) -> int:
        """Run until `stop` is set or something ends it; the exit code of the process. Raises ListenError."""
        self.health.start()
        try:
            threads = self._start()
            with self._work_stop.calling(stop.set):
                stop.wait(self._clock)
            return self._end(threads)
        finally:
            self.health.stop()

    def _start(self) -> list[threading.Thread]:
        self._recorder.start()
        self._clusters.start(self._informers_stop)
        self._owned.start(self._informers_stop)
        threads = [
            threading.Thread(target=self._timers.run, args=(self._informers_stop,), name="timers"),
            threading.Thread(target=self._elector.run, args=(self._election_stop,), name="leader-election"),
            threading.Thread(target=self._work, name="workers"),
        ]
        for thread in threads:
            thread.start()
        return threads

    def _work(self) -> None:
        """Wait for leadership and full caches, then work until told to stop."""
        with self._work_stop.calling(self._leading.set):
            self._leading.wait(self._clock)
        if self._work_stop.is_set():
            return
        synced = {
            **self._clusters.wait_for_cache_sync(self._work_stop),
            **self._owned.wait_for_cache_sync(self._work_stop),
        }
        if self._work_stop.is_set():
            return
        if missing := sorted(str(resource) for resource, filled in synced.items() if not filled):
            log.error("caches did not fill in time", resources=missing)
            self._fail()
            return
        self._drained = self._controller.run(self._options.workers, self._work_stop)

    def _fail(self) -> None:
        self._exit_code = 1
        self._work_stop.set()

    def _end(self, threads: list[threading.Thread]) -> int:
        timers, election, workers = threads
        log.info("stopping")
        self._work_stop.set()
        workers.join()
        self._informers_stop.set()
        self._client.transport.close()  # ends a list or the opening of a watch that blocks (TH-12)
        self._clusters.shutdown()
        self._owned.shutdown()
        timers.join()
        if not self._drained:
            self._recorder.stop()
            # CW-11: a worker may still act, so the lease must run out by itself
            log.error("a sync did not end in time; leaving without releasing the lease")
            self._exit_now(1)
        self._election_stop.set()
        election.join()
        # last, because it also tells that this process has stopped leading
        self._recorder.stop()
        self._requests_stop.set()
        for connection in self._connections:
            connection.transport.close()
        log.info("stopped")
        return self._exit_code

    def _connect(self, purpose: str, fence: Fence | None = None, observer: RequestObserver | None = None) -> Connection:
        rate = Rate(self._options.kube_client_qps, self._options.kube_client_burst)
        connection = connect(
            self._config,
            self._environ,
            self._clock,
            self._requests_stop,
            rate=rate,
            fence=fence,
            observer=observer,
            user_agent=f"{USER_AGENT}/{purpose}" if purpose else USER_AGENT,
        )
        self._connections.append(connection)
        return connection

    def _make_elector(self) -> LeaderElector:
        options = self._options
        timing = Timing(options.leader_lease_duration, options.leader_renew_deadline, options.leader_retry_period)
        connection = connect_directly(
            self._config,
            self._environ,
            self._clock,
            timeout=timing.request_timeout,
            user_agent=f"{USER_AGENT}/leader-election",
        )
        self._connections.append(connection)
        return LeaderElector(
            LeaseLock(connection.client, self.namespace, options.lease_name),
            identity(socket.gethostname(), self._randomness),
            Callbacks(self._leading.set, self._stopped_leading, _log_leader),
            self._clock,
            self._randomness,
            name=options.lease_name,
            timing=timing,
            recorder=self._recorder,
            metrics=ElectionMetrics(self._registry),
        )

    def _stopped_leading(self) -> None:
        if self._election_stop.is_set():
            return
        log.critical("leader election lost")
        self._exit_now(1)

    def _election_trouble(self) -> str | None:
        return None if self._elector.is_healthy() else "leading, but the lease was not renewed for too long"

    def _factories(self) -> tuple[SharedInformerFactory, SharedInformerFactory]:
        """Caches of the custom resources (filtered by --selector), and of what the operator makes."""
        options, metrics = self._options, InformerMetrics(self._registry)
        namespace = "" if options.cluster_scoped else self.namespace

        def factory(selector: str) -> SharedInformerFactory:
            def tweak(selectors: Selectors) -> Selectors:
                return selectors.and_labels(selector)

            return SharedInformerFactory(
                self._client.client,
                self._clock,
                self._randomness,
                namespace=namespace,
                default_resync=options.resync_duration,
                tweak=tweak,
                metrics=metrics,
            )

        clusters, owned = factory(options.selector), factory(f"{MANAGED_BY}={TIDB_OPERATOR}")
        clusters.informer_for(TIDB_CLUSTERS).set_watch_error_handler(_explain_watch_error)
        return clusters, owned

    def _unsynced(self) -> str | None:
        waiting = [*self._clusters.unsynced(), *self._owned.unsynced()]
        return f"not yet read: {', '.join(sorted(map(str, waiting)))}" if waiting else None

    def _make_controller(self) -> Controller:
        client, clock = self._client.client, self._clock
        applier = Applier(client)
        dataplane = DataPlane(lambda tls: HttpTransport(self._environ, tls), self._elector.lease, clock)
        return tidb_cluster_controller(
            self._clusters,
            self._owned,
            Settings(discovery_image=self._options.tidb_discovery_image),
            Doors(client, applier, dataplane, self._recorder, clock),
            lambda: applier.has_status_subresource(TIDB_CLUSTERS),
            timers=self._timers,
            controller_metrics=ControllerMetrics(self._registry),
            cluster_metrics=ClusterMetrics(self._registry),
            queue_metrics=PrometheusQueueMetrics(self._registry),
            drain_timeout=self._options.drain_timeout,
        )


def _registry() -> CollectorRegistry:
    """A registry with what every process tells: memory, CPU, files, the garbage collector."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def _log_leader(leader: str) -> None:
    log.info("new leader", leader=leader)


def _explain_watch_error(reflector: Reflector, error: Exception) -> None:
    """Name the way out where there is one, else what every informer logs."""
    if isinstance(error, NotFound):
        log.error(
            "the TidbCluster CRD is not installed",
            resource=str(TIDB_CLUSTERS),
            install="kubectl create -f manifests/crds/pingcap.com_tidbclusters.yaml",
        )
        return
    log_watch_error(reflector, error)
