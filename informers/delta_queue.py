"""The queue between the reflector and the store: every event, in the order of arrival (informers-workqueue.md 12).

client-go has two designs under this name; this is the newer one, RealFIFO. Each event and each relist is one delta. A
relist is compared with the store when it is applied (`informers.shared_informer`), which also makes the tombstones. No
queued delta is overtaken by another or merged with it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable

import structlog

from informers.deltas import Added, Batch, Bookmark, Deleted, Delta, Event, ReplacedAll, SyncAll, Updated
from kube.objects import Object
from ports.clock import Clock
from ports.failures import ANY_FAILURE

log = structlog.get_logger(__name__)

_BATCH = 1000
"""The maximum number of events applied in one step (FIFO-11)."""
_HIGH_WATER = 2 * _BATCH
"""The number of queued deltas at which a producer waits for the consumer (FIFO-12)."""
_SLOW_SECONDS = 0.1
_SLOW_QUEUED = 10

Process = Callable[[Delta, bool], None]
"""Applies a delta; the flag is True if it belongs to the initial list (FIFO-3)."""


class TransformFailed(ValueError):
    """Raised, with the object's name, if the transform fails or returns something other than an object."""


class QueueClosed(Exception):
    """Raised by `pop` when the queue is closed and empty."""


class DeltaFIFO:
    """Deltas in the order of their arrival. Thread-safe for many producers and one consumer."""

    def __init__(self, clock: Clock, *, batch: int = _BATCH) -> None:
        """`batch` is the maximum number of events that `pop` processes together."""
        self._clock = clock
        self._batch = batch
        self._condition = threading.Condition()
        self._deltas: deque[Delta] = deque()
        self._closed = False
        self._processing = 0
        self._transform: Callable[[Object], Object] | None = None
        self._first: Delta | None = None
        self._synced = False

    def set_transform(self, transform: Callable[[Object], Object]) -> None:
        """Apply `transform` to each object that is queued (FIFO-10).

        `add`, `update` and the others raise TransformFailed if `transform` raises or does not return an object.
        """
        self._transform = transform

    def add(self, obj: Object) -> None:
        """Queue a creation."""
        self._put(Added(self._transformed(obj)))

    def update(self, obj: Object) -> None:
        """Queue a change."""
        self._put(Updated(self._transformed(obj)))

    def delete(self, obj: Object) -> None:
        """Queue a deletion."""
        self._put(Deleted(self._transformed(obj)))

    def replace(self, objects: Iterable[Object], resource_version: str) -> None:
        """Queue a whole list, to be applied in one step (FIFO-8, FIFO-22)."""
        self._put(ReplacedAll(tuple(self._transformed(obj) for obj in objects), resource_version))

    def resync(self) -> None:
        """Queue a resync: a notification of every object that the store holds when it is processed (FIFO-9)."""
        self._put(SyncAll())

    def bookmark(self, resource_version: str) -> None:
        """Queue a bookmark."""
        self._put(Bookmark(resource_version))

    def pop(self, process: Process, until: float | None = None) -> Delta | None:
        """Wait for the oldest delta, process it and return it; None when the clock reaches `until` without one.

        Once synced, consecutive events of different objects come as one Batch (FIFO-11). `process` runs without the
        lock; its exceptions are logged, and the delta counts as processed (FIFO-5). Raises QueueClosed when the queue
        is closed and empty (FIFO-2).
        """
        with self._condition:
            while not self._deltas:
                if self._closed:
                    raise QueueClosed
                remaining = None if until is None else until - self._clock.now()
                if remaining is not None and remaining <= 0:
                    return None
                self._clock.wait(self._condition, remaining)
            delta = self._take()
            initial = not self._synced
            self._processing += 1
        self._process(process, delta, initial)
        return delta

    def has_synced(self) -> bool:
        """True once the first list has been processed; it stays true (FIFO-4)."""
        return self._synced

    def close(self) -> None:
        """Let `pop` drain the queue and then raise QueueClosed. Idempotent."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def __len__(self) -> int:
        """The number of queued deltas."""
        with self._condition:
            return len(self._deltas)

    def _put(self, delta: Delta) -> None:
        with self._condition:
            while self._processing and len(self._deltas) >= _HIGH_WATER and not self._closed:
                self._clock.wait(self._condition, None)
            self._deltas.append(delta)
            self._note_first(delta)
            self._condition.notify_all()

    def _note_first(self, delta: Delta) -> None:
        """Remember the first list, which must be processed before the queue is synced, unless it is empty."""
        if self._first is not None or isinstance(delta, SyncAll | Bookmark):
            return
        self._first = delta
        self._synced = not (isinstance(delta, ReplacedAll) and delta.objects)

    def _take(self) -> Delta:
        """The oldest delta; once synced, with the events behind it up to a second one of the same object (FIFO-11)."""
        first = self._deltas.popleft()
        if not self._synced or not isinstance(first, Event) or self._batch == 1:
            return first
        events = {first.obj.key: first}
        while self._deltas and len(events) < self._batch:
            event = self._deltas[0]
            if not isinstance(event, Event) or event.obj.key in events:
                break
            events[event.obj.key] = event
            self._deltas.popleft()
        return Batch(tuple(events.values())) if len(events) > 1 else first

    def _process(self, process: Process, delta: Delta, initial: bool) -> None:
        started = self._clock.now()
        try:
            process(delta, initial)
        except ANY_FAILURE:
            log.exception("processing a delta failed", delta=type(delta).__name__)
        seconds = self._clock.now() - started
        with self._condition:
            self._processing -= 1
            self._synced = self._synced or delta is self._first
            queued = len(self._deltas)
            self._condition.notify_all()
        if seconds > _SLOW_SECONDS and queued > _SLOW_QUEUED:
            log.warning("slow event handlers block the queue", seconds=round(seconds, 3), queued=queued)

    def _transformed(self, obj: Object) -> Object:
        if self._transform is None:
            return obj
        try:
            made: object = self._transform(obj)
        except ANY_FAILURE as error:
            raise TransformFailed(f"the transform failed for {obj!r}: {error!r}") from error
        if not isinstance(made, Object):
            raise TransformFailed(f"the transform made {made!r} of {obj!r} instead of an object")
        return made
