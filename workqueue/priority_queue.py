"""In which order: a rate limiting queue in which urgent items overtake others (informers-workqueue.md PQ-1..11).

An item is *waiting* until its due time, or *ready*, never both: unlike in the other queues, `add` ends its wait. It may
be either while a worker is *processing* it; a ready item then keeps its place and is skipped until that worker calls
`done`. With a `rest`, an item that was just processed waits that long before its next turn, which then covers all
changes of that time.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from workqueue.drain import Drain
from workqueue.metrics import MetricsProvider
from workqueue.ordering import ByPriority
from workqueue.rate_limiters import ItemExponentialFailureRateLimiter, RateLimiter
from workqueue.statistics import Depths, DurationRecorder, QueueStatistics, ages
from workqueue.timers import Timer, Timers

T = TypeVar("T", bound=Hashable)

_LONG = 30.0
"""Seconds of waiting after which an item may get a turn before more urgent ones."""

_SELDOM = 10
"""One turn in so many goes to an item that has waited `_LONG`, so that urgent items cannot starve it."""


class _Place(NamedTuple):
    """The priority of an item, and the time at which it became ready or a worker took it."""

    priority: int
    time: float


class _Wait(NamedTuple):
    """A waiting item: its priority, its due time, and the timer that ends the wait."""

    priority: int
    due: float
    timer: Timer


class Rest(NamedTuple):
    """How long an item rests after its turn: at least `least` seconds, and up to `most` seconds while so many items
    rest that together they would have more than `rate` turns a second.
    """

    least: float = 0.0
    rate: float = math.inf
    most: float = math.inf

    def among(self, resting: int) -> float:
        """The rest in seconds while `resting` items rest."""
        return max(self.least, min(resting / self.rate, self.most))


NO_REST = Rest()


class PriorityQueue(Generic[T]):
    """A `RateLimitingQueue` that hands out items with higher priorities first. The default priority is 0."""

    def __init__(
        self,
        timers: Timers,
        *,
        limiter: RateLimiter[T] | None = None,
        name: str = "",
        metrics: MetricsProvider | None = None,
        strict: bool = __debug__,
        rest: Rest = NO_REST,
    ) -> None:
        """`timers` as in DelayingQueue, `strict` as in Queue. The default limiter starts at 5 ms and doubles to 1000 s
        (PQ-11).

        `rest` delays the next turn of an item that is added during its turn or soon after. An item added with a delay
        of its own keeps that delay, unless its rest is longer. A turn with a priority below 0 (a resync) is followed by
        no rest, since the first change after it is not part of a burst. An item added with a priority above 0 does not
        rest.
        """
        self._timers = timers
        self._rest = rest
        self._clock = timers.clock
        self._limiter = limiter or ItemExponentialFailureRateLimiter[T](timers.clock, 0.005, 1000.0)
        self._lock = threading.Lock()
        self._available = threading.Condition(self._lock)
        self._drain = Drain(timers.clock, self._lock, self._is_drained)
        self._order: ByPriority[T] = ByPriority()
        self._waiting: dict[T, _Wait] = {}
        self._ready: dict[T, _Place] = {}
        """The same items as in `_order`, with the time at which they became ready."""
        self._processing: dict[T, _Place] = {}
        """The items that workers have, with the priority and the time of their turn."""
        self._resting: OrderedDict[T, float] = OrderedDict()
        """The ends of rests, in the order of turns. Not a dict: finding its first key is slow after deletions."""
        self._turns = 0
        self._getters = 0
        self._has_workers = False
        """True once a worker has waited for an item: a process with threads should run the timers in one."""
        self._shutting_down = False
        self._strict = strict
        self._adds = 0
        self._retries = 0
        self._depths = Depths()
        self._queue_durations = DurationRecorder()
        self._work_durations = DurationRecorder()
        self._ages_at_shutdown: tuple[float, float] | None = None
        if name and metrics:
            metrics.track(name, self.statistics)

    def add(self, item: T, priority: int = 0) -> None:
        """Make `item` ready; it keeps a higher priority that it has. Has no effect after shutdown."""
        self._add(item, 0.0, priority)

    def add_after(self, item: T, seconds: float) -> None:
        """Add `item` in `seconds`, never if that is infinite. If its worker adds it before `done`, it keeps its
        priority (PQ-10). Raises ValueError for NaN.
        """
        self._add(item, seconds, self._priority_of_turn(item))

    def add_rate_limited(self, item: T) -> None:
        """Count a failure of `item` and add it after the limiter's delay, with the priority as in `add_after`."""
        self._add(item, self._limiter.when(item), self._priority_of_turn(item))

    def add_with_opts(self, *items: T, after: float = 0.0, rate_limited: bool = False, priority: int = 0) -> None:
        """Add items after `after` seconds or after the limiter's delay; with both, after the shorter one (PQ-6).

        A known item gets the higher priority, at the end of that level, and the earlier due time; a ready item stays
        ready (PQ-2, PQ-3). Raises ValueError if `after` is NaN.
        """
        for item in items:
            delay = after
            if rate_limited:
                limit = self._limiter.when(item)
                delay = min(after, limit) if after > 0 else limit
            self._add(item, delay, priority)

    def forget(self, item: T) -> None:
        """Reset the failures of `item`. Does not replace `done`."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The number of failures of `item` since its last `forget`."""
        return self._limiter.num_requeues(item)

    def get_with_priority(self) -> tuple[T | None, int, bool]:
        """Wait for an item and take it: `(item, priority, False)`, or `(None, 0, True)` when shut down and empty.

        After a shutdown workers still get the items that are ready, as from `Queue`. The caller must call `done`.
        """
        with self._lock:
            self._has_workers = True
            while (item := self._next()) is None and not self._shutting_down:
                self._getters += 1
                try:
                    self._clock.wait(self._available, None)
                finally:
                    self._getters -= 1
            if item is None:
                return None, 0, True
            return item, self._take(item), False

    def get(self) -> tuple[T | None, bool]:
        """See `Queue.get`."""
        item, _, shutdown = self.get_with_priority()
        return item, shutdown

    def try_get(self) -> tuple[T | None, bool]:
        """See `Queue.try_get`."""
        with self._lock:
            item = self._next()
            if item is None:
                return None, self._shutting_down
            self._take(item)
            return item, False

    def done(self, item: T) -> None:
        """Return `item` to the queue, which hands it out again if it became ready meanwhile.

        Raises ValueError in a strict queue if no worker has it.
        """
        with self._lock:
            started = self._processing.pop(item, None)
            if started is None:
                if self._strict:
                    raise ValueError(f"done({item!r}) without get")
                return
            now = self._clock.now()
            self._work_durations.observe(now - started.time)
            if self._least_rest(started):
                self._let_rest(item, now)
            if item in self._ready:
                self._wake_one()
            else:
                self._drain.notice()

    def shut_down(self) -> None:
        """See `DelayingQueue.shut_down`. Ready items stay; controller-runtime drops them as well (PQ-9)."""
        with self._lock:
            self._end()
            self._drain.give_up()

    def shut_down_with_drain(self, timeout: float | None = None) -> bool:
        """See `DelayingQueue.shut_down_with_drain`."""
        with self._lock:
            self._end()
            return self._drain.wait(timeout)

    @property
    def shutting_down(self) -> bool:
        """True once a shutdown has begun."""
        return self._shutting_down

    def __len__(self) -> int:
        """The number of ready items, including those that a worker still has (PQ-5, PQ-7)."""
        with self._lock:
            return len(self._ready)

    def statistics(self) -> QueueStatistics:
        """All counters so far, as one consistent reading. Every add with a delay counts as a retry (PQ-8)."""
        with self._lock:
            unfinished, longest = self._ages_at_shutdown or self._ages()
            return QueueStatistics(
                depth=len(self._ready),
                adds=self._adds,
                retries=self._retries,
                queue_durations=self._queue_durations.snapshot(),
                work_durations=self._work_durations.snapshot(),
                unfinished_seconds=unfinished,
                longest_running_seconds=longest,
                depth_by_priority=self._depths.snapshot(),
            )

    def _priority_of_turn(self, item: T) -> int:
        with self._lock:
            turn = self._processing.get(item)
            return turn.priority if turn else 0

    def _add(self, item: T, delay: float, priority: int) -> None:
        with self._lock:
            if self._shutting_down:
                return
            self._retries += delay > 0
            if item in self._ready:
                self._raise_priority(item, priority)
                return
            under_way = delay > 0 and item in self._processing
            rests = not under_way and priority <= 0
            wait = max(delay, self._rest_of(item)) if rests else delay
            if wait <= 0:
                self._make_ready(item, priority)
                return
            self._wait(item, self._clock.now() + wait, priority)
        if self._has_workers:
            self._timers.require_attendance()

    def _least_rest(self, turn: _Place) -> float:
        return self._rest.least if turn.priority >= 0 else 0.0

    def _let_rest(self, item: T, now: float) -> None:
        self._resting.pop(item, None)
        while self._resting and self._resting[first := next(iter(self._resting))] <= now:
            del self._resting[first]
        rest = self._rest.among(len(self._resting) + 1)
        self._resting[item] = until = now + rest
        wait = self._waiting.get(item)
        if wait is not None and wait.due < until and rest > self._rest.least:
            del self._waiting[item]
            wait.timer.cancel()
            self._wait(item, until, wait.priority)

    def _rest_of(self, item: T) -> float:
        """The seconds until `item` may have its next turn."""
        if turn := self._processing.get(item):
            return self._least_rest(turn)
        until = self._resting.get(item)
        return until - self._clock.now() if until is not None else 0.0

    def _wait(self, item: T, due: float, priority: int) -> None:
        """Let `item` wait until `due`, unless its present wait ends earlier. Raises ValueError for NaN."""
        known = self._waiting.get(item)
        if known is not None:
            priority = max(priority, known.priority)
            if known.due <= due:
                self._waiting[item] = known._replace(priority=priority)
                return
        if due == math.inf:
            return
        self._waiting[item] = _Wait(priority, due, self._timers.call_at(due, partial(self._fire, item, due)))
        if known is not None:
            known.timer.cancel()

    def _fire(self, item: T, due: float) -> None:
        with self._lock:
            wait = self._waiting.get(item)
            if wait is None or wait.due != due:
                return  # an earlier due time replaced this one, or the queue is shut down
            if self._rest.least and item in self._processing:
                # its turn is not over yet, and its rest begins when it is
                del self._waiting[item]
                self._wait(item, self._clock.now() + self._rest.least, wait.priority)
                return
            self._make_ready(item, wait.priority)

    def _make_ready(self, item: T, priority: int) -> None:
        waited = self._waiting.pop(item, None)
        if waited is not None:
            # otherwise each sync would leave a timer on the heap until its due time
            waited.timer.cancel()
            priority = max(priority, waited.priority)
        self._ready[item] = _Place(priority, self._clock.now())
        self._order.push(item, priority)
        self._adds += 1
        self._depths.change(priority, +1)
        if item not in self._processing:
            self._wake_one()

    def _raise_priority(self, item: T, priority: int) -> None:
        former, since = self._ready[item]
        if priority <= former:
            return
        self._ready[item] = _Place(priority, since)
        self._order.remove(item, former)
        self._order.push(item, priority)
        self._depths.change(former, -1)
        self._depths.change(priority, +1)

    def _next(self) -> T | None:
        """The most urgent item; in one turn of `_SELDOM`, the item that has waited longest, if longer than `_LONG`."""
        if self._turns % _SELDOM:
            return self._order.first(self._processing)
        heads = list(self._order.heads(self._processing))
        if not heads:
            return None
        oldest = min(heads, key=lambda item: self._ready[item].time)
        return oldest if self._clock.now() - self._ready[oldest].time > _LONG else heads[0]

    def _take(self, item: T) -> int:
        self._turns += 1
        priority, since = self._ready.pop(item)
        now = self._clock.now()
        self._order.remove(item, priority)
        self._depths.change(priority, -1)
        self._queue_durations.observe(now - since)
        self._processing[item] = _Place(priority, now)
        return priority

    def _wake_one(self) -> None:
        if self._getters:
            self._available.notify()

    def _end(self) -> None:
        if not self._shutting_down:
            self._ages_at_shutdown = self._ages()
        self._shutting_down = True
        for wait in self._waiting.values():
            wait.timer.cancel()
        self._waiting.clear()
        self._available.notify_all()

    def _is_drained(self) -> bool:
        return not self._processing and not self._ready

    def _ages(self) -> tuple[float, float]:
        return ages([place.time for place in self._processing.values()], self._clock.now())
