"""Calls that are due later, made by one thread for the whole process (informers-workqueue.md 25.1).

Nothing is handed over through a bounded buffer (DQ-10): `call_at` pushes on the heap and returns.
"""

import heapq
import threading
from collections.abc import Callable
from itertools import count

import structlog

from ports.clock import Clock
from ports.stopping import Stop

_log = structlog.get_logger(__name__)


class Timers:
    """A heap of calls. `run` makes each of them when it is due; without a thread, `fire_due` does."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._changed = threading.Condition(threading.Lock())
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._attended = False
        self._missed = False
        self._sequence = count()

    def call_at(self, due: float, call: Callable[[], None]) -> None:
        """Make `call` when the clock's `now()` reaches `due`; calls due at the same time keep their order.

        `call` runs on the timer thread: it must be quick and never wait.
        """
        with self._changed:
            is_first = not self._heap or due < self._heap[0][0]
            heapq.heappush(self._heap, (due, next(self._sequence), call))
            if is_first:
                self._changed.notify_all()

    def require_attendance(self) -> None:
        """Log an error, once, when nobody has run or fired these timers yet: what is delayed would never come."""
        if not self._attended and not self._missed:
            self._missed = True
            _log.error("timers are not running, so delayed items never become ready: run `Timers.run` in a thread")

    def next_due(self) -> float | None:
        """When the first waiting call is due, in the clock's `now()`; None when none waits."""
        with self._changed:
            return self._heap[0][0] if self._heap else None

    def fire_due(self) -> None:
        """Make every call that is due, in order of due time. Never waits."""
        self._attended = True
        for call in self._take_due():
            try:
                call()
            except Exception:
                # One bad call must not silence the retries of every other queue.
                _log.exception("timer call failed", call=repr(call))

    def run(self, stop: Stop) -> None:
        """Make calls as they become due, until stopped; calls still waiting then are dropped (DQ-8)."""
        self._attended = True
        with stop.calling(self._wake):
            while not stop.is_set():
                self.fire_due()
                self._wait(stop)

    def _take_due(self) -> list[Callable[[], None]]:
        due = []
        with self._changed:
            now = self.clock.now()
            while self._heap and self._heap[0][0] <= now:
                due.append(heapq.heappop(self._heap)[2])
        return due

    def _wait(self, stop: Stop) -> None:
        with self._changed:
            if stop.is_set():
                return
            remaining = self._heap[0][0] - self.clock.now() if self._heap else None
            if remaining is None or remaining > 0:
                self.clock.wait(self._changed, remaining)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
