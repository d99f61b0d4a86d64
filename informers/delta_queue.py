"""The queue between the reflector and the store: every event, in the order of arrival (informers-workqueue.md 12).

Of the two designs known under this name, this is the in-order one: one delta per event, a relist is one delta that is
applied in one step against what the store holds by then. Tombstones are therefore made when it is applied
(`informers.applying`), and nothing queued can be overtaken or merged.
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
"""Events that are applied in one step at most (FIFO-11)."""
_HIGH_WATER = 2 * _BATCH
"""Queued deltas from which on a producer waits for the consumer (FIFO-12)."""
_SLOW_SECONDS = 0.1
_SLOW_QUEUED = 10

Process = Callable[[Delta, bool], None]
"""Applies a delta; the flag says that it belongs to the initial list (FIFO-3)."""


class TransformFailed(ValueError):
    """Raised for an object that the transform did not make another object of; names the object."""


class QueueClosed(Exception):
    """Raised by pop when the queue is closed and empty."""


class DeltaFIFO:
    """Deltas in order of arrival. Safe for threads; one consumer at a time makes sense."""

    def __init__(self, clock: Clock, *, batch: int = _BATCH) -> None:
        """`batch` is how many events of different objects are processed together at most."""
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
        """Let objects pass through `transform` when they enter (FIFO-10).

        The call fails with TransformFailed where it raises, or returns anything but an object.
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
        """Queue the news of everything that is stored by the time it is processed (FIFO-9)."""
        self._put(SyncAll())

    def bookmark(self, resource_version: str) -> None:
        """Queue the news of a version."""
        self._put(Bookmark(resource_version))

    def pop(self, process: Process, until: float | None = None) -> Delta | None:
        """Wait for the oldest delta, process it and return it; None when the clock reaches `until` without one.

        Once synced, events of different objects that are queued one after another come as one Batch (FIFO-11).
        The lock is free while `process` runs. Its exceptions are logged and the delta counts as processed (FIFO-5).
        Raises QueueClosed when the queue is closed and empty (FIFO-2).
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
        """Whether what came first has been processed; for ever true from then on (FIFO-4)."""
        return self._synced

    def close(self) -> None:
        """Let pop drain what is queued and then raise. Idempotent."""
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
        """Only a first list that has objects must be processed before the queue counts as synced."""
        if self._first is not None or isinstance(delta, SyncAll | Bookmark):
            return
        self._first = delta
        self._synced = not (isinstance(delta, ReplacedAll) and delta.objects)

    def _take(self) -> Delta:
        """The oldest delta; once synced, with the events after it, up to the second one of an object (FIFO-11)."""
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
