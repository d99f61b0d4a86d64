"""Delayed calls, made by one thread for the whole process (informers-workqueue.md 25.1).

`call_at` pushes onto a heap and returns; there is no bounded buffer that could block it (DQ-10).
"""

import heapq
import math
import threading
from collections.abc import Callable
from itertools import count

import structlog

from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.stopping import Stop

_log = structlog.get_logger(__name__)


_FEW = 64
"""The number of cancelled calls that may stay on the heap, however short it is."""


class Timer:
    """One delayed call."""

    __slots__ = ("_timers", "call")

    def __init__(self, timers: "Timers", call: Callable[[], None]) -> None:
        self._timers = timers
        self.call: Callable[[], None] | None = call
        """None once made or cancelled; guarded by the lock of `Timers`."""

    def cancel(self) -> None:
        """Drop the call. Has no effect once it was made."""
        self._timers.cancel(self)


class Timers:
    """A heap of delayed calls. A thread in `run` makes each when it is due; tests call `fire_due` instead."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Timer]] = []
        self._cancelled = 0
        """The number of cancelled timers on the heap."""
        self._attended = False
        self._missed = False
        self._sequence = count()

    def call_at(self, due: float, call: Callable[[], None]) -> Timer:
        """Make `call` when the clock's `now()` reaches `due`; calls due at the same time keep their order.

        `call` runs on the timer thread, so it must be quick and must not block. Raises ValueError if `due` is NaN.
        """
        require_seconds(due, "a time")
        timer = Timer(self, call)
        with self._changed:
            is_first = not self._heap or due < self._heap[0][0]
            heapq.heappush(self._heap, (due, next(self._sequence), timer))
            if is_first:
                self._changed.notify_all()
        return timer

    def cancel(self, timer: Timer) -> None:
        """See `Timer.cancel`."""
        with self._changed:
            if timer.call is None:
                return
            timer.call = None
            self._cancelled += 1
            if self._cancelled > max(_FEW, len(self._heap) // 2):
                self._heap = [entry for entry in self._heap if entry[2].call]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def __len__(self) -> int:
        """The number of calls that are still due."""
        with self._changed:
            return len(self._heap) - self._cancelled

    def require_attendance(self) -> None:
        """Log an error, once, if neither `run` nor `fire_due` was ever called: delayed items would never arrive."""
        if not self._attended and not self._missed:
            self._missed = True
            _log.error("timers are not running, so delayed items never become ready: run `Timers.run` in a thread")

    def next_due(self) -> float | None:
        """The time, by the clock's `now()`, at which the next call is due; None without one."""
        with self._changed:
            return self._first_due()

    def fire_due(self) -> None:
        """Make every call that is due, in order of due time, without waiting."""
        self._attended = True
        for call in self._take_due():
            try:
                call()
            except ANY_FAILURE:
                # One bad call must not silence the retries of every other queue.
                _log.exception("timer call failed", call=repr(call))

    def run(self, stop: Stop) -> None:
        """Make calls as they become due, until stopped; drops the calls that are left then (DQ-8)."""
        self._attended = True
        with stop.calling(self._wake):
            while not stop.is_set():
                self.fire_due()
                self._wait(stop)

    def _take_due(self) -> list[Callable[[], None]]:
        due = []
        with self._changed:
            now = self.clock.now()
            while (first := self._first_due()) is not None and first <= now:
                timer = heapq.heappop(self._heap)[2]
                if timer.call:
                    due.append(timer.call)
                timer.call = None
        return due

    def _wait(self, stop: Stop) -> None:
        with self._changed:
            if stop.is_set():
                return
            first = self._first_due()
            remaining = None if first is None else first - self.clock.now()
            if remaining is None or remaining > 0:
                self.clock.wait(self._changed, remaining)

    def _first_due(self) -> float | None:
        """The due time of the next call; drops cancelled calls in front of it."""
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def require_seconds(value: float, what: str = "a delay") -> None:
    """Raise ValueError for NaN: every comparison with it is false, so a heap that holds it has no order."""
    if math.isnan(value):
        raise ValueError(f"{what} in seconds must be a number, not {value}")
