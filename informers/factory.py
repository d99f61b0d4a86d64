"""A factory with one informer per resource, created on first use (informers-workqueue.md 15)."""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import structlog

from informers.cache_sync import SYNC_TIMEOUT, CacheSyncTimeout, wait_for_cache_sync
from informers.consistency import Difference
from informers.list_watch import ListWatch, Selectors
from informers.listers import StoreLister
from informers.metrics import InformerMetrics
from informers.reflector import WatchErrorHandler, log_watch_error
from informers.shared_informer import SharedInformer
from informers.threads import start_thread
from kube.client import Client
from kube.errors import ApiError
from kube.objects import Object
from kube.resources import Resource
from ports.clock import Clock
from ports.randomness import Randomness
from ports.stopping import Stop
from ports.transport import TransportError

SWITCH = "KUBE_WATCHLIST_INCONSISTENCY_DETECTOR"
"""The environment variable, as client-go names it; `true` turns it on."""

PERIOD = 60.0
"""Seconds between two comparisons, each of which lists every cached resource."""

log = structlog.get_logger(__name__)


class InformerNotStarted(RuntimeError):
    """Raised when a lister reads an informer that was not started: its cache would stay empty."""


class SharedInformerFactory:
    """Informers that share a client, a namespace and selectors. Two factories share nothing (FAC-6)."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        *,
        namespace: str = "",
        default_resync: float = 0.0,
        resyncs: Mapping[Resource, float] | None = None,
        tweak: Callable[[Selectors], Selectors] | None = None,
        transform: Callable[[Object], Object] | None = None,
        metrics: InformerMetrics | None = None,
        name: str = "",
        streaming: bool = False,
        metadata_only: bool = False,
        on_watch_error: WatchErrorHandler = log_watch_error,
    ) -> None:
        """`default_resync` and `resyncs` are in seconds. An empty `namespace` means all. `name` appears in metrics.

        `streaming` reads the initial list as part of the watch if the server supports it (REF-40). `metadata_only`
        caches metadata without bodies (INF-50); a full informer of the same resource would open a second watch.
        `on_watch_error` is called after each failed round (INF-41).
        """
        self._client = client
        self._clock = clock
        self._randomness = randomness
        self._namespace = namespace
        self._default_resync = default_resync
        self._resyncs = resyncs or {}
        self._tweak = tweak
        self._transform = transform
        self._metrics = metrics or InformerMetrics()
        self._name = name
        self._streaming = streaming
        self._metadata_only = metadata_only
        self._on_watch_error = on_watch_error
        self._lock = threading.Lock()
        self._informers: dict[Resource, SharedInformer] = {}
        self._started_informers: dict[Resource, threading.Thread] = {}
        self._started = False
        self._shut_down = False

    def informer_for(self, resource: Resource) -> SharedInformer:
        """The informer of `resource`; every call returns the same one (FAC-2)."""
        with self._lock:
            if resource not in self._informers:
                self._informers[resource] = self._new_informer(resource)
            return self._informers[resource]

    def lister_for(self, resource: Resource) -> StoreLister:
        """A lister of `resource`, whose informer is created if necessary.

        Call `start` afterwards, again if the factory has already started; otherwise reads raise InformerNotStarted.
        """
        store = self.informer_for(resource).store
        with self._lock:
            late = self._started and resource not in self._started_informers
        return StoreLister(store, resource, before_reading=partial(self._require_started, resource) if late else None)

    def start(self, stop: Stop) -> None:
        """Run each new informer in a thread of its own (FAC-3). Has no effect after shutdown."""
        with self._lock:
            self._started = True
            if self._shut_down:
                return
            for resource, informer in self._informers.items():
                if resource not in self._started_informers:
                    self._started_informers[resource] = _start(informer, stop)

    def wait_for_cache_sync(self, stop: Stop, timeout: float = SYNC_TIMEOUT) -> dict[Resource, bool]:
        """Wait for the started informers; map each resource to True if it has synced (FAC-4).

        Gives up on an informer that has stopped, or that after `timeout` seconds has neither a list nor one that is
        arriving; a list that is arriving may take any time.
        """
        with self._lock:
            started = {resource: self._informers[resource] for resource in self._started_informers}
        named = {str(resource): informer for resource, informer in started.items()}
        late = bool(started)
        while late:
            try:
                wait_for_cache_sync(stop, self._clock, timeout, **named)
                late = False
            except CacheSyncTimeout as error:
                log.warning("caches are not synced yet", resources=error.missing, seconds=timeout)
                late = any(named[missing].reflector.is_receiving for missing in error.missing)
        return {resource: informer.has_synced() for resource, informer in started.items()}

    def wait_for_handlers(self, stop: Stop, timeout: float = SYNC_TIMEOUT) -> None:
        """Wait until every handler has received all objects of the initial lists. Raises CacheSyncTimeout."""
        with self._lock:
            informers = tuple(self._informers.items())
        named = {
            f"handler {number} of {resource}": registration
            for resource, informer in informers
            for number, registration in enumerate(informer.registrations, start=1)
        }
        wait_for_cache_sync(stop, self._clock, timeout, **named)

    def unsynced(self) -> list[Resource]:
        """The resources whose informers have not read their initial lists."""
        with self._lock:
            return [resource for resource, informer in self._informers.items() if not informer.has_synced()]

    def check_consistency(self) -> dict[Resource, Difference]:
        """For debugging: compare each synced cache with a list at its version; empty if all are equal.

        Raises ApiError, TransportError.
        """
        with self._lock:
            synced = {resource: informer for resource, informer in self._informers.items() if informer.has_synced()}
        return {resource: informer.check_consistency() for resource, informer in synced.items()}

    def shutdown(self, timeout: float = 30.0) -> bool:
        """Start no more informers and wait until all have ended; True if they have (FAC-5).

        Set the stop before the call. After `timeout` real seconds the log names the threads that still run, e.g. the
        thread of a blocked handler.
        """
        with self._lock:
            self._shut_down = True
            threads = [(thread, self._informers[resource]) for resource, thread in self._started_informers.items()]
        left = timeout
        for thread, _ in threads:
            asked = self._clock.now()
            thread.join(max(0.0, left))
            left -= self._clock.now() - asked
        alive = [(thread.name, informer) for thread, informer in threads if thread.is_alive()]
        late = [thread for name, informer in alive for thread in informer.running_threads() or [name]]
        if late:
            log.error("informers did not stop, as these threads are still running", threads=late)
        return not late

    def _require_started(self, resource: Resource) -> None:
        if resource not in self._started_informers:
            raise InformerNotStarted(
                f"the informer of {resource} was requested after the factory was started, so its cache would stay "
                "empty: request it before, or call start again"
            )

    def _new_informer(self, resource: Resource) -> SharedInformer:
        # a cluster-scoped resource has no namespace
        namespace = self._namespace if resource.namespaced else ""
        informer = SharedInformer(
            ListWatch(self._client, resource, namespace, tweak=self._tweak, metadata_only=self._metadata_only),
            self._clock,
            self._randomness,
            default_resync=self._resyncs.get(resource, self._default_resync),
            metrics=self._metrics,
            name=self._name,
            streaming=self._streaming,
        )
        informer.set_watch_error_handler(self._on_watch_error)
        if self._transform:
            informer.set_transform(self._transform)
        return informer


def _start(informer: SharedInformer, stop: Stop) -> threading.Thread:
    return start_thread(f"informer-{informer.resource}", lambda: informer.run(stop))


def is_switched_on(environ: Mapping[str, str]) -> bool:
    """True if the environment variable is `1`, `t` or `true`, in upper or lower case."""
    return environ.get(SWITCH, "").lower() in ("1", "t", "true")


class InconsistencyDetector:
    """Compares the caches of some factories with lists at the versions of these caches, for debugging (REF-40h)."""

    def __init__(
        self, factories: Iterable[SharedInformerFactory], clock: Clock, on_difference: Callable[[], None]
    ) -> None:
        """The detector logs a difference and then calls `on_difference`."""
        self._factories = tuple(factories)
        self._clock = clock
        self._on_difference = on_difference

    def run(self, stop: Stop) -> None:
        """Compare every `PERIOD` seconds until stopped."""
        while not stop.wait(self._clock, PERIOD):
            self.step()

    def step(self) -> None:
        """Compare each synced cache once."""
        for factory in self._factories:
            try:
                differences = factory.check_consistency()
            except (ApiError, TransportError) as error:
                # e.g. the server has compacted this version: the next comparison uses a newer one
                log.info("caches could not be compared", cause=str(error))
                continue
            for resource, difference in differences.items():
                if difference:
                    log.error("cache differs from the API server", resource=str(resource), difference=str(difference))
                    self._on_difference()
