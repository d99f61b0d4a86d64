"""The queue that every controller has, with v1.6's patience (scheduler-deployment.md 3.5, RL-7)."""

from collections.abc import Callable

from workqueue.metrics import MetricsProvider
from workqueue.priority_queue import NO_REST, PriorityQueue, Rest
from workqueue.rate_limiters import RateLimiter, default_controller_rate_limiter
from workqueue.timers import Timers

REST = Rest(least=1.0, rate=5.0, most=12.0)
"""How long a key rests between two syncs in a process, however much happens to its object meanwhile.

A cluster that comes up causes a hundred events, many of them by what the operator writes itself, and a sync costs as
much as twenty writes. The more clusters come up at once, the longer each takes, and the less is lost by looking at it
less often. What happens first after a rest, or after a look that only a resync brought up, counts at once, and so do
what users change and the last replica of a StatefulSet that becomes ready (`controllers.enqueueing`).
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

    `on_throttled` gets, in seconds, each wait for that shared rate (`SyncMetrics.record_throttled`); `rest` is that of
    `PriorityQueue`.
    """
    limiter: RateLimiter[str] = default_controller_rate_limiter(
        timers.clock, base=1.0, max_delay=100.0, qps=10.0, burst=100, on_wait=on_throttled
    )
    return PriorityQueue(timers, limiter=limiter, name=name, metrics=metrics, rest=rest)
