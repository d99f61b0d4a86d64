"""How often: a queue whose items wait longer after each failure (informers-workqueue.md RQ-1..4).

For each item a worker calls `add_rate_limited` after a failure or `forget` after a success, and then `done`.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from workqueue.delaying_queue import DelayingQueue
from workqueue.metrics import MetricsProvider
from workqueue.rate_limiters import RateLimiter
from workqueue.statistics import QueueStatistics
from workqueue.timers import Timers

T = TypeVar("T", bound=Hashable)


class RateLimitingQueue(Generic[T]):
    """A `DelayingQueue` with `add_rate_limited`."""

    def __init__(
        self, limiter: RateLimiter[T], timers: Timers, *, name: str = "", metrics: MetricsProvider | None = None
    ) -> None:
        self._queue: DelayingQueue[T] = DelayingQueue(timers, name=name, metrics=metrics)
        self._limiter = limiter

    def add_rate_limited(self, item: T) -> None:
        """Count a failure of `item` and add it after the limiter's delay. Call it before `done`."""
        self._queue.add_after(item, self._limiter.when(item))

    def forget(self, item: T) -> None:
        """Reset the failures of `item`. Does not replace `done`."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The number of failures of `item` since its last `forget`."""
        return self._limiter.num_requeues(item)

    def add_after(self, item: T, seconds: float) -> None:
        """See `DelayingQueue.add_after`."""
        self._queue.add_after(item, seconds)

    def add(self, item: T) -> None:
        """See `Queue.add`."""
        self._queue.add(item)

    def get(self) -> tuple[T | None, bool]:
        """See `Queue.get`."""
        return self._queue.get()

    def try_get(self) -> tuple[T | None, bool]:
        """See `Queue.try_get`."""
        return self._queue.try_get()

    def done(self, item: T) -> None:
        """See `Queue.done`."""
        self._queue.done(item)

    def shut_down(self) -> None:
        """See `DelayingQueue.shut_down`."""
        self._queue.shut_down()

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """See `DelayingQueue.shut_down_with_drain`."""
        return self._queue.shut_down_with_drain(timeout)

    @property
    def shutting_down(self) -> bool:
        """True once a shutdown has begun."""
        return self._queue.shutting_down

    def __len__(self) -> int:
        """The number of queued items."""
        return len(self._queue)

    def statistics(self) -> QueueStatistics:
        """See `DelayingQueue.statistics`."""
        return self._queue.statistics()
