"""The world's clock for code that waits on it: a wait lets the other components continue."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from ports.clock import Clock
from sandbox import overlap


class WaitingClock:
    """A clock whose waits call `wait` with the seconds. `ahead` is the error of its time of day."""

    def __init__(
        self, clock: Clock, wait: Callable[[float], object], ahead: Callable[[], timedelta] = timedelta
    ) -> None:
        self._clock = clock
        self._wait = wait
        self._ahead = ahead

    def now(self) -> float:
        return self._clock.now() + overlap.ahead()

    def wall(self) -> datetime:
        return self._clock.wall() + self._ahead()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait through `wait`; no caller here waits for a notification alone."""
        assert timeout is not None
        condition.release()
        try:
            self._wait(timeout)
        finally:
            condition.acquire()
