"""The world's clock for code that waits on it: whoever waits lets the others go on."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from ports.clock import Clock
from sandbox import overlap


class WaitingClock:
    """See `Clock`; its waits are `wait`, which is given seconds. `ahead`: by how much its time of day is wrong."""

    def __init__(
        self, clock: Clock, wait: Callable[[float], object], ahead: Callable[[], timedelta] = timedelta
    ) -> None:
        self._clock = clock
        self._wait = wait
        self._ahead = ahead

    def now(self) -> float:
        """See `Clock`."""
        return self._clock.now() + overlap.ahead()

    def wall(self) -> datetime:
        """See `Clock`."""
        return self._clock.wall() + self._ahead()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """See `Clock`; nobody here waits for a notification alone."""
        assert timeout is not None
        condition.release()
        try:
            self._wait(timeout)
        finally:
            condition.acquire()
