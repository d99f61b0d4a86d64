"""One informer per resource, created when first asked for (informers-workqueue.md 15)."""

import threading
from collections.abc import Callable, Mapping
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
from kube.objects import Object
from kube.resources import Resource
from ports.clock import Clock
from ports.randomness import Randomness
from ports.stopping import Stop

log = structlog.get_logger(__name__)


class InformerNotStarted(RuntimeError):
    """Raised when the cache of an informer is read that nobody has started: it would be empty for good."""


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
        """`default_resync` and `resyncs` in seconds; `namespace` empty: all; `name` appears in the metrics.

        `streaming` reads initial lists as part of the watches, where the server can (REF-40). `metadata_only` caches no
        bodies (INF-50); do not mix with full informers of the same resource, each of the two has a watch of its own.
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
        """The informer of a resource, the same at each call (FAC-2)."""
        with self._lock:
            if resource not in self._informers:
                self._informers[resource] = self._new_informer(resource)
            return self._informers[resource]

    def lister_for(self, resource: Resource) -> StoreLister:
        """A lister of a resource; asking for it creates the informer.

        Where the factory has started before, `start` must be called again, or reading raises InformerNotStarted.
        """
        store = self.informer_for(resource).store
        with self._lock:
            late = self._started and resource not in self._started_informers
        return StoreLister(store, resource, before_reading=partial(self._require_started, resource) if late else None)

    def start(self, stop: Stop) -> None:
        """Run every informer that does not run yet, each in a thread of its own (FAC-3). Nothing after shutdown."""
        with self._lock:
            self._started = True
            if self._shut_down:
                return
            for resource, informer in self._informers.items():
                if resource not in self._started_informers:
                    self._started_informers[resource] = _start(informer, stop)

    def wait_for_cache_sync(self, stop: Stop, timeout: float = SYNC_TIMEOUT) -> dict[Resource, bool]:
        """Wait until the informers started so far are synced, stopped or late; say which are synced (FAC-4).

        Late is who has no list, and none on its way, after `timeout` seconds: a list may take as long as it wants.
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
        """Wait until every handler was told of all objects of the initial lists. Raises CacheSyncTimeout."""
        with self._lock:
            informers = tuple(self._informers.items())
        named = {
            f"handler {number} of {resource}": registration
            for resource, informer in informers
            for number, registration in enumerate(informer.registrations, start=1)
        }
        wait_for_cache_sync(stop, self._clock, timeout, **named)

    def unsynced(self) -> list[Resource]:
        """The resources whose informer has not read its initial list yet."""
        with self._lock:
            return [resource for resource, informer in self._informers.items() if not informer.has_synced()]

    def check_consistency(self) -> dict[Resource, Difference]:
        """For debugging: in what each synced cache differs from a list at its version (empty: in nothing).

        Raises ApiError, TransportError.
        """
        with self._lock:
            synced = {resource: informer for resource, informer in self._informers.items() if informer.has_synced()}
        return {resource: informer.check_consistency() for resource, informer in synced.items()}

    def shutdown(self, timeout: float = 30.0) -> bool:
        """Start nothing any more and wait for the informers to end; whether all did (FAC-5).

        The caller sets the stop. `timeout` is in real seconds; what has not ended by then is named in the log, such as
        the thread of a handler that blocks.
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
        # a cluster-scoped resource has no namespace to be limited to
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
