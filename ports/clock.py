"""Time as an argument (informers-workqueue.md TH-14, TH-20).

`now()` is monotonic and serves only for differences; `wall()` is for records that people and other machines read. A
thread never sleeps: it waits on a condition, with a deadline, through the clock.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Reads the time and waits."""

    def now(self) -> float:
        """Monotonic seconds."""

    def wall(self) -> datetime:
        """The time of day, aware, in UTC."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait for a notification of `condition`, whose lock the caller holds, for at most `timeout` seconds.

        May return early, so callers check their condition again.
        """


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.monotonic()  # noqa: TID251  (this is the port)

    def wall(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251  (this is the port)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait for a notification of `condition`, whose lock the caller holds, for at most `timeout` seconds."""
        # Python rejects longer timeouts
        condition.wait(None if timeout is None else min(timeout, threading.TIMEOUT_MAX))


class FakeClock:
    """A clock that moves only when a test steps it.

    `wait` blocks the calling thread until it is notified or until `step` passes its deadline.
    """

    def __init__(self, began: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        """`began` is the time of day at construction."""
        self._lock = threading.Condition()
        self._now = 0.0
        self._wall = began
        self._waiters: dict[int, tuple[threading.Condition, float]] = {}

    def now(self) -> float:
        """Virtual monotonic seconds; 0 at construction."""
        # one number is read whole even without the lock, and the simulator asks for it at every turn
        return self._now

    def wall(self) -> datetime:
        """The virtual time of day."""
        return self._wall + timedelta(seconds=self._now)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait for a notification of `condition`, or until a `step` passes the deadline."""
        if timeout is not None and timeout <= 0:
            return
        me = threading.get_ident()
        with self._lock:
            deadline = float("inf") if timeout is None else self._now + timeout
            self._waiters[me] = (condition, deadline)
            self._lock.notify_all()
        try:
            condition.wait()
        finally:
            with self._lock:
                self._waiters.pop(me, None)

    def step(self, seconds: float) -> None:
        """Move time forward and wake every waiter whose deadline has passed. The caller must hold no waiter's lock."""
        with self._lock:
            self._now += seconds
            due = {me: condition for me, (condition, deadline) in self._waiters.items() if deadline <= self._now}
            for me in due:
                # this thread has been woken but may not have run yet: it is no longer a waiter, or the next step would
                # overtake it
                del self._waiters[me]
        for condition in due.values():
            with condition:
                condition.notify_all()

    def jump(self, time: timedelta) -> None:
        """Set the time of day forward or back, as an administrator may; monotonic time does not change."""
        with self._lock:
            self._wall += time

    def has_waiters(self, count: int = 1) -> bool:
        """True if at least `count` threads are waiting."""
        with self._lock:
            return len(self._waiters) >= count

    def wait_for_waiters(self, count: int = 1, timeout: float = 5.0) -> None:
        """Block, in real time, until `count` threads are waiting.

        Raises TimeoutError after `timeout` real seconds.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: len(self._waiters) >= count, timeout):
                raise TimeoutError(f"{len(self._waiters)} threads wait on the clock, expected {count}")
