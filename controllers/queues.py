"""The queue of a controller, with the retry delays of v1.6 (scheduler-deployment.md 3.5, RL-7)."""

from collections.abc import Callable

from workqueue.metrics import MetricsProvider
from workqueue.priority_queue import NO_REST, PriorityQueue, Rest
from workqueue.rate_limiters import RateLimiter, default_controller_rate_limiter
from workqueue.timers import Timers

REST = Rest(least=1.0, rate=5.0, most=12.0)
"""The minimum time between two syncs of a key, however many events its object has.

A starting cluster causes a hundred events, many of them from the operator's own writes, and a sync costs as much as
twenty writes. The more clusters start at once, the longer each takes, and the less a longer rest matters. The key is
synced at once for the first event after a rest or after the sync of a resync, for a user's change, and when the last
replica of a StatefulSet becomes ready (`controllers.enqueueing`).

The rest also bounds syncs that cause each other: two processes that write one status in turn, or a key whose failures
cause events, which end its back-off (R13).
"""


def controller_queue(
    name: str,
    timers: Timers,
    *,
    metrics: MetricsProvider | None = None,
    on_throttled: Callable[[float], None] = lambda _seconds: None,
    rest: Rest = NO_REST,
) -> PriorityQueue[str]:
    """A queue of keys: retries after 1 s, doubling to 100 s, and at most 10 per second after a burst of 100.

    `on_throttled` receives each wait for that shared rate, in seconds (`SyncMetrics.record_throttled`). For `rest` see
    `PriorityQueue`.
    """
    limiter: RateLimiter[str] = default_controller_rate_limiter(
        timers.clock, base=1.0, max_delay=100.0, qps=10.0, burst=100, on_wait=on_throttled
    )
    return PriorityQueue(timers, limiter=limiter, name=name, metrics=metrics, rest=rest)
