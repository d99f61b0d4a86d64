"""What first: a rate limiting queue whose urgent items overtake (informers-workqueue.md PQ-1..11).

An item is *waiting* until its due time, or *ready*, never both: unlike in the plain ladder, adding it now takes it out
of the wait. It may be either while it is *processing*; a ready one then keeps its place and is passed over until its
worker is done. With a `rest`, one that was just processed waits that long first: what happens meanwhile is one turn.
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
"""Seconds after which an item has waited so long that it gets a turn though more urgent ones are ready."""

_SELDOM = 10
"""Of so many turns one is for those that have waited long: however much is urgent, nothing waits for ever."""


class _Place(NamedTuple):
    """Where an item stands: its priority, and a time of the clock."""

    priority: int
    time: float


class _Wait(NamedTuple):
    """Until when an item waits, with which priority, and what ends the wait."""

    priority: int
    due: float
    timer: Timer


class Rest(NamedTuple):
    """How long an item rests after its turn, in seconds: `least`, and for so long that all those that rest together
    have no more than `rate` turns a second, but never longer than `most`.
    """

    least: float = 0.0
    rate: float = math.inf
    most: float = math.inf

    def among(self, resting: int) -> float:
        """Seconds of rest where so many items rest."""
        return max(self.least, min(resting / self.rate, self.most))


NO_REST = Rest()


class PriorityQueue(Generic[T]):
    """A `RateLimitingQueue` that hands out higher numbers first; 0 is what nothing else was said of."""

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
        """`timers` as in DelayingQueue, `strict` as in Queue. Without a limiter: 5 ms, doubling to 1000 s (PQ-11).

        `rest` is how long an item that is added while it is processed, or soon after, waits to be handed out again. One
        that is added with a delay of its own keeps that, unless so many rest that they do so for longer. What was
        handed out with a priority below 0 leaves no rest: what happens first after it is no part of a burst. What is
        added with one above 0 does not wait for it.
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
        """Since when; the same items as in the order."""
        self._processing: dict[T, _Place] = {}
        """Since when, and with which priority handed out."""
        self._resting: OrderedDict[T, float] = OrderedDict()
        """Until when, in the order of their turns; a plain dict would be slow to find its first one."""
        self._turns = 0
        self._getters = 0
        self._has_workers = False
        """Whether somebody has waited for an item: then there are threads, and one should run the timers."""
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
        """Mark `item` as needing work now; a higher priority that it has stays. Does nothing after shutdown."""
        self._add(item, 0.0, priority)

    def add_after(self, item: T, seconds: float) -> None:
        """Add `item` in `seconds`, never for infinity. Put back by its worker, before `done`, it keeps its priority
        (PQ-10). Raises ValueError for NaN.
        """
        self._add(item, seconds, self._priority_of_turn(item))

    def add_rate_limited(self, item: T) -> None:
        """Count a failure of `item` and add it when the limiter allows; as to its priority see `add_after`."""
        self._add(item, self._limiter.when(item), self._priority_of_turn(item))

    def add_with_opts(self, *items: T, after: float = 0.0, rate_limited: bool = False, priority: int = 0) -> None:
        """Add items in `after` seconds, or when the limiter allows, whichever is sooner when both are given (PQ-6).

        Raises ValueError when `after` is NaN.

        A known item takes the higher priority, at the end of that level, and the earlier due time; one that is ready
        stays so (PQ-2, PQ-3).
        """
        for item in items:
            delay = after
            if rate_limited:
                limit = self._limiter.when(item)
                delay = min(after, limit) if after > 0 else limit
            self._add(item, delay, priority)

    def forget(self, item: T) -> None:
        """Count no more failures of `item`. `done` is still owed."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """How many failures of `item` are counted."""
        return self._limiter.num_requeues(item)

    def get_with_priority(self) -> tuple[T | None, int, bool]:
        """Wait for an item and take it: `(item, priority, False)`, or `(None, 0, True)` when shut down and empty.

        Queued items are still handed out after shutdown, as by `Queue`. Who takes an item owes a `done`.
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
        """Give `item` back. If it became ready meanwhile, it is handed out again. Raises ValueError as `Queue.done`."""
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
        """See `DelayingQueue.shut_down`: waiting items are dropped, ready ones are not (better than PQ-9)."""
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
        """Whether a shutdown has begun."""
        return self._shutting_down

    def __len__(self) -> int:
        """How many items are ready, those among them that are still processed included (PQ-5, PQ-7)."""
        with self._lock:
            return len(self._ready)

    def statistics(self) -> QueueStatistics:
        """What happened so far, read in one piece. An add with a delay is a retry, whatever came of it (PQ-8)."""
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
        """Seconds for which `item` still rests."""
        if turn := self._processing.get(item):
            return self._least_rest(turn)
        until = self._resting.get(item)
        return until - self._clock.now() if until is not None else 0.0

    def _wait(self, item: T, due: float, priority: int) -> None:
        """Let `item` wait until `due`, or until when it waits already if that is sooner. Raises ValueError for NaN."""
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
                return  # it came earlier, or the queue is shut down
            if self._rest.least and item in self._processing:
                # its turn takes longer than a rest, which begins at the end of it
                del self._waiting[item]
                self._wait(item, self._clock.now() + self._rest.least, wait.priority)
                return
            self._make_ready(item, wait.priority)

    def _make_ready(self, item: T, priority: int) -> None:
        waited = self._waiting.pop(item, None)
        if waited is not None:
            # what is not taken off the heap stays there until it is due, one for each sync
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
        """The most urgent item; now and then the one that has waited longest, if that is long."""
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
