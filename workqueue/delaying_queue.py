"""When: a queue whose items may be added later (informers-workqueue.md DQ-1..10)."""

import math
import threading
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from workqueue.metrics import MetricsProvider
from workqueue.queue import Queue
from workqueue.statistics import QueueStatistics
from workqueue.timers import Timer, Timers

T = TypeVar("T", bound=Hashable)


class DelayingQueue(Generic[T]):
    """A `Queue` with `add_after`. `len` does not count waiting items (DQ-6)."""

    def __init__(self, timers: Timers, *, name: str = "", metrics: MetricsProvider | None = None) -> None:
        """Share one `timers` among all queues, and run it in a thread: `Thread(target=timers.run, args=[stop])`."""
        self._queue: Queue[T] = Queue(timers.clock)
        self._timers = timers
        self._lock = threading.Lock()
        self._waiting: dict[T, tuple[float, Timer]] = {}
        self._stopped = False
        self._retries = 0
        self._has_workers = False
        if name and metrics:
            metrics.track(name, self.statistics)

    def add_after(self, item: T, seconds: float) -> None:
        """Add `item` in `seconds`: immediately if that is zero or less, never if it is infinite.

        The earlier of two due times wins (DQ-2). An `add` in between does not cancel it (DQ-4). Has no effect after
        shutdown. Raises ValueError for NaN.
        """
        at_once = seconds <= 0
        with self._lock:
            if self._stopped:
                return
            self._retries += 1
            if not at_once:
                self._wait(item, self._timers.clock.now() + seconds)
        if at_once:
            self._queue.add(item)
        elif self._has_workers:
            self._timers.require_attendance()

    def _wait(self, item: T, due: float) -> None:
        """Let `item` wait until `due`, unless its present wait ends earlier."""
        known = self._waiting.get(item)
        if (known[0] if known else math.inf) <= due:
            return
        self._waiting[item] = due, self._timers.call_at(due, partial(self._fire, item, due))
        if known:
            known[1].cancel()

    def _fire(self, item: T, due: float) -> None:
        with self._lock:
            if self._waiting.get(item, (None, None))[0] != due:
                return  # an earlier due time replaced this one, or the queue is shut down
            del self._waiting[item]
        self._queue.add(item)

    def add(self, item: T) -> None:
        """See `Queue.add`."""
        self._queue.add(item)

    def get(self) -> tuple[T | None, bool]:
        """See `Queue.get`."""
        self._has_workers = True
        return self._queue.get()

    def try_get(self) -> tuple[T | None, bool]:
        """See `Queue.try_get`."""
        return self._queue.try_get()

    def done(self, item: T) -> None:
        """See `Queue.done`."""
        self._queue.done(item)

    def shut_down(self) -> None:
        """See `Queue.shut_down`. Drops waiting items."""
        self._drop_waiting()
        self._queue.shut_down()

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """See `Queue.shut_down_with_drain`. Drops waiting items (DQ-8)."""
        self._drop_waiting()
        return self._queue.shut_down_with_drain(timeout)

    def _drop_waiting(self) -> None:
        with self._lock:
            self._stopped = True
            for _, timer in self._waiting.values():
                timer.cancel()
            self._waiting.clear()

    @property
    def shutting_down(self) -> bool:
        """True once a shutdown has begun."""
        return self._queue.shutting_down

    def __len__(self) -> int:
        """The number of queued items."""
        return len(self._queue)

    def statistics(self) -> QueueStatistics:
        """All counters so far; every `add_after` counts as a retry (PQ-8)."""
        return replace(self._queue.statistics(), retries=self._retries)
