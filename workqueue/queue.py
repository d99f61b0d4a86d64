"""What to do next: a queue of distinct items, each with at most one worker at a time.

An item that needs work is *dirty*; an item that a worker has is *processing*. An item added while a worker has it is
both, and is queued when that worker calls `done`. Invariant: the queue holds exactly the items that are dirty and not
processing, each once.
"""

import threading
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from ports.clock import Clock
from workqueue.drain import Drain
from workqueue.metrics import MetricsProvider
from workqueue.statistics import DurationRecorder, QueueStatistics, ages

T = TypeVar("T", bound=Hashable)


class Queue(Generic[T]):
    """Fair, free of duplicates, for many producers and many consumers (informers-workqueue.md WQ-1..17)."""

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "",
        metrics: MetricsProvider | None = None,
        strict: bool = __debug__,
    ) -> None:
        """A queue with a `name` reports to `metrics`. A `strict` one raises ValueError on a stray `done` (WQ-14)."""
        self._clock = clock
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._drain = Drain(clock, self._lock, self._is_drained)
        self._queued: deque[T] = deque()
        self._dirty: dict[T, float] = {}
        self._processing: dict[T, float] = {}
        self._getters = 0
        self._shutting_down = False
        self._strict = strict
        self._adds = 0
        self._queue_durations = DurationRecorder()
        self._work_durations = DurationRecorder()
        self._ages_at_shutdown: tuple[float, float] | None = None
        if name and metrics:
            metrics.track(name, self.statistics)

    def add(self, item: T) -> None:
        """Mark `item` as dirty. Has no effect on a dirty item, or after shutdown."""
        with self._lock:
            if self._shutting_down or item in self._dirty:
                return
            self._adds += 1
            self._dirty[item] = self._clock.now()
            if item not in self._processing:
                self._push(item)

    def get(self) -> tuple[T | None, bool]:
        """Wait for an item and take it: `(item, False)`, or `(None, True)` when shut down and empty.

        The caller must call `done` with the item.
        """
        with self._lock:
            while not self._queued and not self._shutting_down:
                self._getters += 1
                try:
                    self._clock.wait(self._ready, None)
                finally:
                    self._getters -= 1
            return self._take()

    def try_get(self) -> tuple[T | None, bool]:
        """Take an item without waiting: like `get`, or `(None, False)` when the queue is empty."""
        with self._lock:
            return self._take()

    def done(self, item: T) -> None:
        """Return `item` to the queue, which queues it again if it was added meanwhile.

        Raises ValueError in a strict queue if no worker has it.
        """
        with self._lock:
            started = self._processing.pop(item, None)
            if started is None:
                if self._strict:
                    raise ValueError(f"done({item!r}) without get")
                return
            self._work_durations.observe(self._clock.now() - started)
            if item in self._dirty:
                self._push(item)
            else:
                self._drain.notice()

    def shut_down(self) -> None:
        """Ignore further adds; workers still get what is queued. Ends a waiting drain (WQ-11). Idempotent."""
        with self._lock:
            self._end()
            self._drain.give_up()

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """Ignore further adds and wait at most `timeout` seconds until all items are done; True if they are (WQ-12).

        Keep the workers running: queued items have to be processed as well.
        """
        with self._lock:
            self._end()
            return self._drain.wait(timeout)

    @property
    def shutting_down(self) -> bool:
        """True once a shutdown has begun."""
        return self._shutting_down

    def __len__(self) -> int:
        """The number of queued items, without those that workers have (WQ-7)."""
        with self._lock:
            return len(self._queued)

    def statistics(self) -> QueueStatistics:
        """All counters so far, as one consistent reading."""
        with self._lock:
            unfinished, longest = self._ages_at_shutdown or ages(self._processing.values(), self._clock.now())
            return QueueStatistics(
                depth=len(self._dirty),
                adds=self._adds,
                queue_durations=self._queue_durations.snapshot(),
                work_durations=self._work_durations.snapshot(),
                unfinished_seconds=unfinished,
                longest_running_seconds=longest,
            )

    def _push(self, item: T) -> None:
        self._queued.append(item)
        if self._getters:
            self._ready.notify()

    def _take(self) -> tuple[T | None, bool]:
        if not self._queued:
            return None, self._shutting_down
        item = self._queued.popleft()
        now = self._clock.now()
        self._queue_durations.observe(now - self._dirty.pop(item))
        self._processing[item] = now
        return item, False

    def _end(self) -> None:
        if not self._shutting_down:
            self._ages_at_shutdown = ages(self._processing.values(), self._clock.now())
        self._shutting_down = True
        self._ready.notify_all()

    def _is_drained(self) -> bool:
        return not self._processing and not self._queued
