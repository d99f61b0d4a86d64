"""A process with controllers: its wiring, and the order of its start and stop.

    start   health server → informers, events, timers, leader election, side by side (a warm standby, CW-8)
            → leading and synced: workers
    stop    not ready → workers finish their syncs → informers → the lease is released → events → health server

Lost leadership ends the process immediately with code 1: the new leader must not meet a second writer (LE-20).
"""

import os
import platform
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry, GCCollector, Info, PlatformCollector, ProcessCollector

from controller_manager.caches import Caches
from controller_manager.debugging import DebugServer
from controller_manager.health import HealthServer
from controller_manager.observing import NoElection, PlannedWrites
from controller_manager.process_options import ProcessOptions
from controller_manager.version import project_version
from controllers.controller import Controller
from controllers.queues import REST
from controllers.runtime import Runtime, new_runtime
from informers.factory import InconsistencyDetector, is_switched_on
from informers.reflector import WatchErrorHandler, log_watch_error
from kube.client import Client
from kube.config import ClusterConfig
from kube.connecting import Connection, connect, connect_directly
from kube.dry_run import DryRunTransport
from kube.events import EventRecorder
from kube.failure_log import FailureLog
from kube.leader_election import Callbacks, ElectionMetrics, LeaderElector, Timing, identity
from kube.lease_watch import LeaseWatch
from kube.leases import LeaseLock
from kube.rest_metrics import PrometheusObserver, RequestObserver
from kube.shard_election import ShardElections, ShardMetrics
from kube.shard_leases import Division, OtherDivisions
from kube.sharding import Shards, shard_of
from kube.throttle import Rate
from ports.clock import Clock
from ports.fencing import Fence
from ports.latch import Latch
from ports.product import METRIC_PREFIX
from ports.randomness import Randomness
from ports.stopping import Stop
from ports.transport import Transport
from workqueue.timers import Timers

log = structlog.get_logger(__name__)

Build = Callable[[Runtime], Iterable[Controller]]
"""Creates the controllers of a process and registers their handlers; starts nothing."""


class Server(Protocol):
    """A server of every replica, whether it leads or not."""

    def start(self) -> None:
        """Serve on threads of its own. Raises ListenError."""

    def stop(self) -> None:
        """End these threads. Idempotent, and without effect before `start`."""


MakeServer = Callable[[Client, Callable[[], bool]], Server]
"""Makes a server from an unfenced client and a function that is True once the caches have synced."""


class ControllerManager:
    """A process with controllers for one cluster, under one identity."""

    def __init__(
        self,
        options: ProcessOptions,
        config: ClusterConfig,
        environ: Mapping[str, str],
        clock: Clock,
        randomness: Randomness,
        *,
        build: Build,
        on_watch_error: WatchErrorHandler = log_watch_error,
        exit_now: Callable[[int], object] = os._exit,
        planned: PlannedWrites | None = None,
        serve: MakeServer | None = None,
    ) -> None:
        """Assemble the process, without starting or sending anything.

        `build` creates the controllers and registers their handlers. `on_watch_error` is called after each failed round
        of an informer. `exit_now` ends the process when leadership is lost. `planned` receives the planned writes of a
        process that only observes. `serve` makes a server that runs with the process. Raises ConfigError.
        """
        self._options, self._config, self._environ = options, config, environ
        self._clock, self._randomness, self._exit_now = clock, randomness, exit_now
        self.lease_namespace = options.lease_namespace or config.namespace
        self.registry = _registry()
        self._planned = planned or PlannedWrites()
        self.registry.register(self._planned.metric)
        self._requests_stop, self._informers_stop = Stop(), Stop()
        self._work_stop, self._election_stop = Stop(), Stop()
        self._leading = Latch()
        self._connections: list[Connection] = []
        self._exit_code = 0
        self._drained = True
        self._timers = Timers(clock)
        observer = PrometheusObserver(self.registry, config.server)
        self._recorder = EventRecorder(
            self._connect("events", observer=observer).client, clock, randomness, options.name
        )
        self._elector = self._make_elector()
        self._client = self._connect("", self._elector.lease, observer, hurry=self._work_stop)
        self._caches = Caches(
            self._client.client,
            clock,
            randomness,
            options,
            self.lease_namespace,
            registry=self.registry,
            on_watch_error=on_watch_error,
        )
        self._runtime = self._make_runtime()
        self._controllers = tuple(build(self._runtime))
        self.health = HealthServer(options.metrics_addr, self.registry)
        self.health.live.add("leader-election", self._election_trouble)
        self.health.ready.add("shutdown", lambda: "stopping" if self._work_stop.is_set() else None)
        self.health.ready.add("caches", self._caches.unsynced)
        self._servers: list[Server] = [DebugServer(options.debug_addr, clock)] if options.debug_addr else []
        if serve:
            self._servers.append(serve(self._connect("admission").client, lambda: not self._caches.unsynced()))

    def run(self, stop: Stop) -> int:
        """Run until `stop` is set or something ends it; return the exit code of the process. Raises ListenError."""
        self.health.start()
        try:
            for server in self._servers:
                server.start()
            threads = self._start()
            with self._work_stop.calling(stop.set):
                stop.wait(self._clock)
            return self._end(threads)
        finally:
            for server in self._servers:
                server.stop()
            self.health.stop()

    def work_once(self, stop: Stop) -> None:
        """Instead of `run`: reconcile each object once, in this thread, without leadership.

        Raises CacheSyncTimeout if the objects could not be read in time.
        """
        try:
            self._caches.start(self._informers_stop)
            for factory in self._caches.factories:
                factory.wait_for_handlers(stop)
            while not stop.is_set() and any(controller.process_ready_item() for controller in self._controllers):
                pass
        finally:
            self._informers_stop.set()
            self._client.transport.close()
            self._caches.shutdown()
            for connection in self._connections:
                connection.transport.close()

    def _start(self) -> list[threading.Thread]:
        self._recorder.start()
        self._caches.start(self._informers_stop)
        self._caches.start_unawaited(self._informers_stop)
        threads = [
            threading.Thread(target=self._timers.run, args=(self._informers_stop,), name="timers"),
            threading.Thread(target=self._elector.run, args=(self._election_stop,), name="leader-election"),
            threading.Thread(target=self._work, name="workers"),
        ]
        if is_switched_on(self._environ):
            detector = InconsistencyDetector(self._caches.factories, self._clock, self.fail)
            threads.append(
                threading.Thread(target=detector.run, args=(self._informers_stop,), name="inconsistency-detector")
            )
        for thread in threads:
            thread.start()
        return threads

    def _work(self) -> None:
        """Wait for leadership and full caches, then work until stopped."""
        with self._work_stop.calling(self._leading.set):
            self._leading.wait(self._clock)
        if self._work_stop.is_set():
            return
        missing = self._caches.missing_after_sync(self._work_stop)
        if self._work_stop.is_set():
            return
        if missing:
            log.error("caches did not sync in time", resources=missing)
            self.fail()
            return
        threads = [
            threading.Thread(target=self._run_controller, args=(controller,), name=controller.name)
            for controller in self._controllers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_controller(self, controller: Controller) -> None:
        if not controller.run(self._options.workers, self._work_stop):
            self._drained = False

    def fail(self) -> None:
        """Shut down in order with exit code 1, after a thread of this process has died (TH-19)."""
        self._exit_code = 1
        self._work_stop.set()

    def _end(self, threads: list[threading.Thread]) -> int:
        timers, election, workers, *debugging = threads
        log.info("stopping")
        self._work_stop.set()
        workers.join()
        self._informers_stop.set()
        self._caches.stop_other_leases()
        self._client.transport.close()  # ends a blocking list or opening of a watch (TH-12)
        in_time = self._caches.shutdown()
        for thread in (timers, *debugging):
            thread.join()
        if not self._drained:
            self._recorder.stop()
            # CW-11: a worker may still act, so the lease must expire by itself
            log.error("a reconcile did not finish in time; exiting without releasing the lease")
            self._exit_now(1)
        self._election_stop.set()
        election.join()
        # last, because it also reports that this process has stopped leading
        self._recorder.stop()
        self._requests_stop.set()
        for connection in self._connections:
            connection.transport.close()
        log.info("stopped")
        if not in_time:
            # the interpreter would wait for the remaining threads forever
            self._exit_now(1)
        return self._exit_code

    def _connect(
        self,
        purpose: str,
        fence: Fence | None = None,
        observer: RequestObserver | None = None,
        hurry: Stop | None = None,
    ) -> Connection:
        rate = Rate(self._options.kube_client_qps, self._options.kube_client_burst)
        connection = connect(
            self._config,
            self._environ,
            self._clock,
            self._requests_stop,
            rate=rate,
            fence=fence,
            observer=observer,
            user_agent=self._user_agent(purpose),
            wrap=self._wrap,
            hurry=hurry,
            instead=self._options.instead,
        )
        self._connections.append(connection)
        return connection

    def _wrap(self, transport: Transport) -> Transport:
        return DryRunTransport(transport, self._planned.add, self._options.observes)

    def _make_elector(self) -> LeaderElector | ShardElections | NoElection:
        options = self._options
        if options.observe:
            return NoElection(self._clock, self._leading.set)
        timing = Timing(options.leader_lease_duration, options.leader_renew_deadline, options.leader_retry_period)
        me = identity(socket.gethostname(), self._randomness)
        requests = self._connect_directly(timing.request_timeout)
        if options.shards > 1:
            return self._make_shard_elections(me, timing, requests.client)
        ShardMetrics(self.registry, 1, lambda: int(self._leading.is_set()))
        watch = self._connect_directly(timing.request_timeout)
        others = OtherDivisions(requests.client, self.lease_namespace, options.lease, 1, self._clock)
        annotations = {**options.lease_annotations, **Division(1, me).annotation}
        return LeaderElector(
            LeaseLock(requests.client, self.lease_namespace, options.lease, annotations),
            me,
            Callbacks(lambda: self._start_leading(others), self._stopped_leading),
            self._clock,
            self._randomness,
            name=options.lease,
            timing=timing,
            watch=LeaseWatch(watch.client, watch.transport.close, self.lease_namespace, options.lease, self._clock),
            recorder=self._recorder,
            metrics=ElectionMetrics(self.registry),
        )

    def _make_shard_elections(self, me: str, timing: Timing, client: Client) -> ShardElections:
        options = self._options
        return ShardElections(
            client,
            self.lease_namespace,
            options.lease,
            options.shards,
            me,
            self._clock,
            self._randomness,
            on_open=self._take_up,
            on_given=self._forget_lost,
            on_lost=self._stopped_leading,
            is_ready=lambda: self._caches.unsynced() is None,
            annotations=options.lease_annotations,
            timing=timing,
            recorder=self._recorder,
            registry=self.registry,
        )

    def _start_leading(self, others: OtherDivisions) -> None:
        """Lead as soon as no process divides the objects into shards."""
        waits = FailureLog(log, self._clock)
        while trouble := others.look():
            waits.failed("waiting to lead", until=trouble)
            if self._election_stop.wait(self._clock, self._options.leader_retry_period):
                break
        self._leading.set()

    def _forget_lost(self) -> None:
        self._runtime.forget_lost()

    def _take_up(self, shard: int) -> None:
        """Sync the objects of a shard that was taken over."""
        self._leading.set()
        self._runtime.take_up(lambda key: shard_of(key, self._options.shards) == shard)

    def _connect_directly(self, timeout: float) -> Connection:
        """A separate connection for leader election, which no other traffic can delay (LE-4)."""
        connection = connect_directly(
            self._config, self._environ, self._clock, timeout=timeout, user_agent=self._user_agent("leader-election")
        )
        self._connections.append(connection)
        return connection

    def _user_agent(self, purpose: str) -> str:
        return "/".join(filter(None, (self._options.user_agent or self._options.name, purpose)))

    def _stopped_leading(self) -> None:
        if self._election_stop.is_set():
            return
        log.critical("leader election lost")
        self._exit_now(1)

    def _election_trouble(self) -> str | None:
        return None if self._elector.is_healthy() else "leading, but the lease was not renewed for too long"

    def _make_runtime(self) -> Runtime:
        return new_runtime(
            client=self._client.client,
            recorder=self._recorder,
            timers=self._timers,
            informers=self._caches.of,
            fence=self._elector.lease,
            ownership=self._elector.lease if isinstance(self._elector.lease, Shards) else None,
            registry=self.registry,
            other_leases=self._caches.other_leases,
            secret_metadata=self._caches.secret_metadata,
            drain_timeout=self._options.drain_timeout,
            rest=REST,
            observes=self._options.observes,
            on_paused=self._planned.on_paused,
        )


def _registry() -> CollectorRegistry:
    """A registry with the metrics of every process: version, memory, CPU, files, garbage collector."""
    registry = CollectorRegistry()
    build = Info(f"{METRIC_PREFIX}_build", "1, with the versions of operator and Python.", registry=registry)
    build.info({"version": project_version(), "python": platform.python_version()})
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
