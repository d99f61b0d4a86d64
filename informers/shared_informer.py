"""One cache of one resource, shared by any number of handlers (informers-workqueue.md 14).

Threads: the caller's thread applies deltas to the store, fills the handlers' buffers and queues resyncs. A second
thread reads from the API server, and each handler has a thread of its own.
"""

import threading
from collections.abc import Callable
from enum import Enum

import structlog

from informers.consistency import Difference, check
from informers.delta_queue import DeltaFIFO, QueueClosed
from informers.deltas import Added, Batch, Bookmark, Deleted, Delta, Event, ReplacedAll, SyncAll, Updated
from informers.handlers import ResourceEventHandler
from informers.index import DEFAULT_INDEXERS, Indexers
from informers.list_watch import ListWatch
from informers.metrics import InformerMetrics
from informers.notifications import Add, Delete, Notification, Update
from informers.reflector import Reflector, WatchErrorHandler
from informers.registration import HandlerRegistration
from informers.resync import ResyncSchedule
from informers.store import Store
from informers.threads import join_all, start_thread
from informers.tombstones import DeletedFinalStateUnknown
from kube.objects import Object
from ports.clock import Clock
from ports.latch import Latch
from ports.randomness import Randomness
from ports.stopping import Stop

log = structlog.get_logger(__name__)


class InformerStarted(RuntimeError):
    """Raised for a setting that is possible only before the informer starts."""


class InformerStopped(RuntimeError):
    """Raised for an addition to an informer that has stopped (INF-12)."""


class _State(Enum):
    NOT_STARTED = 1
    STARTED = 2
    STOPPING = 3
    STOPPED = 4


class SharedInformer:
    """A store that follows the API server, and handlers that receive each change after the store shows it."""

    def __init__(
        self,
        source: ListWatch,
        clock: Clock,
        randomness: Randomness,
        *,
        default_resync: float = 0.0,
        indexers: Indexers = DEFAULT_INDEXERS,
        metrics: InformerMetrics | None = None,
        name: str = "",
        streaming: bool = False,
    ) -> None:
        """`default_resync`, in seconds, applies to handlers without a period of their own; 0 means never.

        `name` distinguishes informers of one resource in the metrics (MET-21). `streaming` reads the initial list as
        part of the watch (REF-40).
        """
        self.resource = source.resource
        self._source = source
        self.synced = Latch()
        """Set when the initial list is in the store, whether or not handlers have received it (INF-3)."""
        self._clock = clock
        self._metrics = (metrics or InformerMetrics()).claim(name, source.resource)
        self._log = log.bind(resource=str(source.resource))
        self._queue = DeltaFIFO(clock)
        self.store = Store(indexers, self._metrics.index_failed)
        self.reflector = Reflector(source, self._queue, clock, randomness, metrics=self._metrics, streaming=streaming)
        # lock order: state, distribution, then the store's (TH-2); reentrant: an index function may stop us
        self._state_lock = threading.RLock()
        self._state = _State.NOT_STARTED
        self._distribution = threading.RLock()
        self._registrations: list[HandlerRegistration] = []
        self._threads: list[threading.Thread] = []
        self._schedule = ResyncSchedule(clock, default_resync)
        self._synced_announced = False
        self._metrics.show_state(self.queued, lambda: self.store.last_resource_version)

    @property
    def registrations(self) -> tuple[HandlerRegistration, ...]:
        """The registered handlers. A registration is synced once its handler has received the initial list."""
        with self._distribution:
            return tuple(self._registrations)

    def has_synced(self) -> bool:
        """True once the initial list is in the store."""
        return self.synced.is_set()

    def check_consistency(self) -> Difference:
        """For debugging: compare the cache with a list at its version. Raises ApiError, TransportError."""
        return check(self.store, self._source)

    def queued(self) -> int:
        """The number of deltas not yet applied to the store."""
        return len(self._queue)

    def is_stopped(self) -> bool:
        """True once `run` has returned (INF-2)."""
        return self._state is _State.STOPPED

    def running_threads(self) -> list[str]:
        """The names of the threads that have not ended, e.g. the thread of a blocked handler."""
        return [thread.name for thread in self._threads if thread.is_alive()]

    def last_sync_resource_version(self) -> str:
        """The version up to which the informer has read, empty before the first list."""
        return self.reflector.last_sync_resource_version

    def set_transform(self, transform: Callable[[Object], Object]) -> None:
        """Apply `transform` to each object before the store and handlers see it; it must be quick.

        Raises InformerStarted.
        """
        with self._state_lock:
            self._must_not_have_started("a transform")
            self._queue.set_transform(transform)

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Call `handler` after each failed round, instead of an earlier handler (INF-41). Raises InformerStarted."""
        with self._state_lock:
            self._must_not_have_started("a watch error handler")
            self.reflector.on_error = handler

    def add_indexers(self, indexers: Indexers) -> None:
        """Add indexes, even while the informer runs (ST-7). Raises IndexConflictError, InformerStopped."""
        with self._state_lock:
            if self._state in {_State.STOPPING, _State.STOPPED}:
                raise InformerStopped(f"indexers {sorted(indexers)} were not added: the informer has stopped already")
            self.store.add_indexers(indexers)

    def add_event_handler(
        self, handler: ResourceEventHandler, resync_period: float | None = None, name: str = ""
    ) -> HandlerRegistration:
        """Notify `handler` of every stored object and of all later changes (INF-10, INF-11).

        `resync_period`, in seconds, replaces the informer's default; 0 means never. `name` appears in logs, metrics and
        the name of the thread. Raises InformerStopped.
        """
        with self._state_lock, self._distribution:
            if self._state in {_State.STOPPING, _State.STOPPED}:
                raise InformerStopped(f"{handler!r} was not added to shared informer because it has stopped already")
            registration = HandlerRegistration(
                self._unused_name(name or type(handler).__name__),
                handler,
                self._schedule.admit(resync_period),
                self._clock,
                self._metrics,
            )
            self._registrations.append(registration)
            if self._state is _State.STARTED:
                registration.put(Add(obj, True) for obj in self.store.list())
                if self._synced_announced:
                    registration.put_synced()
                self._start_handler(registration)
        return registration

    def remove_event_handler(self, registration: HandlerRegistration) -> None:
        """Stop notifying the handler, without waiting for a call that runs (INF-19).

        Idempotent. Ignores a registration of another informer. Raises TypeError for any other object.
        """
        if not isinstance(registration, HandlerRegistration):
            raise TypeError(f"not a registration: {registration!r}")
        with self._distribution:
            if registration not in self._registrations:
                return
            self._registrations.remove(registration)
            self._schedule.remove(registration.turn)
        registration.cancel()

    def run(self, stop: Stop) -> None:
        """Follow the API server until stopped, and return when all threads have ended (INF-1, INF-4)."""
        if not self._start():
            self._log.warning("informer is already running or has run before")
            return
        own_stop = Stop()
        with self._state_lock:
            self._threads.append(start_thread(f"reflector-{self.resource}", lambda: self.reflector.run(own_stop)))
        try:
            with stop.calling(own_stop.set), own_stop.calling(self._wind_down):
                while not own_stop.is_set():
                    self.step(until=self._schedule.next_check)
        finally:
            own_stop.set()
            self._wind_down()
            join_all(self._threads)
            self._metrics.release()
            self._state = _State.STOPPED

    def step(self, until: float | None = 0.0) -> None:
        """Apply the next delta, and queue a resync if one is due.

        Waits for a delta until the given time of the clock; None waits forever. The default does not wait: a test that
        drives an informer without threads calls it in a loop.
        """
        self._schedule.start()
        try:
            self._queue.pop(self._process, until)
        except QueueClosed:
            return
        if self._queue.has_synced() and not self.synced.is_set():
            self._announce_synced()
        if self._schedule.is_check_due():
            self._check_resync()

    def _start(self) -> bool:
        with self._state_lock, self._distribution:
            if self._state is not _State.NOT_STARTED:
                return False
            self._state = _State.STARTED
            self._schedule.start()
            for registration in self._registrations:
                self._start_handler(registration)
            return True

    def _process(self, delta: Delta, is_in_initial_list: bool) -> None:
        started = self._clock.now()
        with self._distribution:
            notifications = apply_delta(self.store, delta, is_in_initial_list)
            for registration in self._registrations:
                registration.put(_meant_for(registration, notifications))
        self._metrics.delta_processed(self._clock.now() - started)

    def _announce_synced(self) -> None:
        self.synced.set()
        with self._distribution:
            self._synced_announced = True
            for registration in self._registrations:
                registration.put_synced()

    def _check_resync(self) -> None:
        with self._distribution:
            wanted = self._schedule.check()
        if wanted and self.synced.is_set():
            self._queue.resync()

    def _start_handler(self, registration: HandlerRegistration) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(start_thread(f"handler-{self.resource}-{registration.name}", registration.run))

    def _wind_down(self) -> None:
        """Reject new handlers and cancel all registrations. Runs in the thread that sets the stop."""
        self._queue.close()
        with self._state_lock, self._distribution:
            self._state = _State.STOPPING
            registrations, self._registrations = self._registrations, []
        for registration in registrations:
            registration.cancel()

    def _unused_name(self, wanted: str) -> str:
        taken = {registration.name for registration in self._registrations}
        names = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 2))]
        return next(name for name in names if name not in taken)

    def _must_not_have_started(self, what: str) -> None:
        if self._state is not _State.NOT_STARTED:
            raise InformerStarted(f"{what} must be set before the informer of {self.resource} starts")


def _meant_for(registration: HandlerRegistration, notifications: list[Notification]) -> list[Notification]:
    """All notifications for a handler that is due for a resync, only changes for others (INF-25)."""
    if registration.turn.due:
        return notifications
    return [n for n in notifications if not (isinstance(n, Update) and n.is_sync)]


def apply_delta(store: Store, delta: Delta, is_in_initial_list: bool) -> list[Notification]:
    """Apply `delta` to `store` and return the notifications, in order (FIFO-20 to FIFO-24).

    Only one thread may write to a store.
    """
    match delta:
        case Added() | Updated() | Deleted():
            return _change(store, (delta,), is_in_initial_list)
        case Batch(events):
            return _change(store, events, is_in_initial_list)
        case ReplacedAll(objects, resource_version):
            return _replace(store, objects, resource_version, is_in_initial_list)
        case SyncAll():
            return [Update(obj, obj) for obj in store.list()]
        case Bookmark(resource_version):
            store.bookmark(resource_version)
            return []


def _change(store: Store, events: tuple[Event, ...], initial: bool) -> list[Notification]:
    """Apply events of different objects in one step."""
    before = [store.get(event.obj) for event in events]
    store.change((event.obj, isinstance(event, Deleted)) for event in events)
    notifications = (_notification(old, event, initial) for old, event in zip(before, events, strict=True))
    return [notification for notification in notifications if notification]


def _notification(old: Object | None, event: Event, initial: bool) -> Notification | None:
    if not isinstance(event, Deleted):
        return _stored(old, event.obj, initial)
    return Delete(event.obj) if old else None


def _replace(store: Store, objects: tuple[Object, ...], version: str, initial: bool) -> list[Notification]:
    before = {obj.key: obj for obj in store.list()}
    # if a list has an object twice, its last state counts
    listed = {obj.key: obj for obj in objects}
    store.replace(listed.values(), version)
    gone = [Delete(DeletedFinalStateUnknown(key, obj)) for key, obj in before.items() if key not in listed]
    return [*gone, *(_stored(before.get(key), obj, initial) for key, obj in listed.items())]


def _stored(old: Object | None, new: Object, initial: bool) -> Notification:
    return Add(new, initial) if old is None else Update(old, new)
