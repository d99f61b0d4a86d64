"""How long to wait before an item is tried again (informers-workqueue.md RL-1..9)."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from ports.ageing import Ageing
from ports.clock import Clock
from ports.pace import Bucket, Pace, limit

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Decides how long an item waits. Safe for use by many threads."""

    def when(self, item: T_contra) -> float:
        """Count a failure of `item` and return how many seconds it should wait."""

    def forget(self, item: T_contra) -> None:
        """Reset the failures of `item`: it succeeded, or the worker has given it up."""

    def num_requeues(self, item: T_contra) -> int:
        """The number of failures of `item` since its last `forget`."""


class ItemExponentialFailureRateLimiter(Generic[T]):
    """Doubles the delay with each failure of an item: base, 2*base, 4*base, ... up to `max_delay` seconds.

    An item without a failure for twice `max_delay` starts again at `base` (RL-8). A key that fails is synced 41 times
    in an hour, not 3,599 times as each second (bench/memories.json). After a restart it starts at `base`.
    """

    def __init__(self, clock: Clock, base: float, max_delay: float) -> None:
        self._pace = Pace(base, max_delay)
        self._failures = _Failures[T](clock, idle_limit=2 * max_delay)

    def when(self, item: T) -> float:
        """Seconds: base * 2^failures, capped."""
        return self._pace.after(self._failures.count_one(item))

    def forget(self, item: T) -> None:
        """Start again at base."""
        self._failures.forget(item)

    def num_requeues(self, item: T) -> int:
        """Failures since the last `forget`."""
        return self._failures.of(item)


class ItemFastSlowRateLimiter(Generic[T]):
    """Delays the first `max_fast_attempts` failures of an item by `fast` seconds, later ones by `slow` seconds."""

    def __init__(self, clock: Clock, fast: float, slow: float, max_fast_attempts: int) -> None:
        self._fast = fast
        self._slow = slow
        self._max_fast_attempts = max_fast_attempts
        self._failures = _Failures[T](clock, idle_limit=2 * slow)

    def when(self, item: T) -> float:
        """Seconds: fast or slow."""
        return self._fast if self._failures.count_one(item) <= self._max_fast_attempts else self._slow

    def forget(self, item: T) -> None:
        """Start again with the fast attempts."""
        self._failures.forget(item)

    def num_requeues(self, item: T) -> int:
        """Failures since the last `forget`."""
        return self._failures.of(item)


class BucketRateLimiter(Generic[T]):
    """Admits `qps` items per second, and up to `burst` at once after a quiet time; all items share the bucket (RL-4).

    Tokens are not returned. An item that waits for its token takes no second one: a key that a handler adds a thousand
    times delays other keys by one token. `on_wait` receives each delay above zero (RL-9). Of 1,000 keys that fail, 199
    are synced in ten seconds, not 3,000 (bench/memories.json). After a restart the burst is full.
    """

    def __init__(
        self, clock: Clock, qps: float, burst: int, on_wait: Callable[[float], None] = lambda _seconds: None
    ) -> None:
        self._clock = clock
        self._on_wait = on_wait
        self._lock = threading.Lock()
        self._bucket = Bucket(limit(qps, burst), clock.now())
        self._due: OrderedDict[T, float] = OrderedDict()
        """The times at which waiting items get their tokens, in ascending order."""

    def when(self, item: T) -> float:
        """Seconds until the token of `item` exists."""
        with self._lock:
            now = self._clock.now()
            self._drop_due(now)
            delay = self._due[item] - now if item in self._due else self._take(item, now)
        if delay > 0:
            self._on_wait(delay)
        return delay

    def _take(self, item: T, now: float) -> float:
        delay = self._bucket.take(now)
        if delay > 0:
            self._due[item] = now + delay
        return delay

    def _drop_due(self, now: float) -> None:
        while self._due and next(iter(self._due.values())) <= now:
            self._due.popitem(last=False)

    def forget(self, item: T) -> None:
        """Nothing: the bucket counts no failures."""

    def num_requeues(self, item: T) -> int:  # noqa: ARG002  (the bucket counts no failures)
        """Always 0."""
        return 0


class MaxOfRateLimiter(Generic[T]):
    """Returns the longest delay of several limiters, each of which counts every failure."""

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        self._limiters = limiters

    def when(self, item: T) -> float:
        """The longest delay, in seconds."""
        return max(limiter.when(item) for limiter in self._limiters)

    def forget(self, item: T) -> None:
        """Reset the failures of `item` in all limiters."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The largest count."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


class WithMaxWaitRateLimiter(Generic[T]):
    """Caps the delay of another limiter at `max_delay` seconds."""

    def __init__(self, limiter: RateLimiter[T], max_delay: float) -> None:
        self._limiter = limiter
        self._max_delay = max_delay

    def when(self, item: T) -> float:
        """The capped delay, in seconds."""
        return min(self._limiter.when(item), self._max_delay)

    def forget(self, item: T) -> None:
        """Reset the failures of `item` in the other limiter."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The limiter's count."""
        return self._limiter.num_requeues(item)


def default_controller_rate_limiter(
    clock: Clock,
    *,
    base: float = 0.005,
    max_delay: float = 1000.0,
    qps: float = 10.0,
    burst: int = 100,
    on_wait: Callable[[float], None] = lambda _seconds: None,
) -> RateLimiter[T]:
    """The longer of an exponential delay per item and a bucket for all (RL-7). `on_wait` gets the bucket's delays."""
    return MaxOfRateLimiter(
        ItemExponentialFailureRateLimiter[T](clock, base, max_delay),
        BucketRateLimiter[T](clock, qps, burst, on_wait),
    )


def default_item_based_rate_limiter(clock: Clock) -> RateLimiter[T]:
    """Exponential per item, 1 ms to 1000 s (RL-7)."""
    return ItemExponentialFailureRateLimiter[T](clock, 0.001, 1000.0)


class _Failures(Generic[T]):
    """Counts failures per item and drops items that have not failed for `idle_limit` seconds (RL-8)."""

    def __init__(self, clock: Clock, idle_limit: float) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Ageing[T, int] = Ageing(idle_limit)

    def count_one(self, item: T) -> int:
        with self._lock:
            now = self._clock.now()
            return self._counts.note(item, (self._counts.get(item, now) or 0) + 1, now).value

    def forget(self, item: T) -> None:
        with self._lock:
            self._counts.drop(item)

    def of(self, item: T) -> int:
        return self._counts.get(item, self._clock.now()) or 0
