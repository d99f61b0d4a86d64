"""Log lines about a failure that lasts, without a line for each attempt."""

import logging
import threading
from typing import TYPE_CHECKING

from ports.clock import Clock
from ports.pace import Pace

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_PACE = Pace(60.0, 3600.0)
"""The silence after each log line."""


class FailureLog:
    """Logs the failures of one thing: the first immediately, later ones after 1, 2, 4 minutes and so on, at last once
    an hour; all others at level debug.

    Alternating successes and failures do not shorten the intervals: only after a success that lasted as long as the
    current interval does a failure count as a first one. Without it five minutes of a silent TiDB are 49 lines, not 5
    (bench/memories.json). After a restart a lasting failure is logged once more. Thread-safe.
    """

    def __init__(self, log: "FilteringBoundLogger", clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._lines = 0
        self._silent_until = float("-inf")
        self._since = 0.0
        self._failures = 0
        self._is_told = False

    def failed(self, event: str, *, level: int = logging.WARNING, **about: object) -> None:
        """Record a failure; `failures` in the log line is the number since the last success."""
        with self._lock:
            is_due, failures = self._count(self._clock.now()), self._failures
        self._log.log(level if is_due else logging.DEBUG, event, failures=failures, **about)

    def worked(self, event: str, **about: object) -> None:
        """Record a success. If the failure was logged, log its end and duration; otherwise cheap."""
        if not self._failures:
            return
        with self._lock:
            failures, is_told, seconds = self._failures, self._is_told, self._clock.now() - self._since
            self._failures, self._is_told = 0, False
        if is_told:
            self._log.info(event, failures=failures, seconds=round(seconds, 1), **about)

    def _count(self, now: float) -> bool:
        """Count a failure; True if it should be logged."""
        if now >= self._silent_until + _PACE.after(self._lines):
            self._lines, self._failures, self._is_told = 0, 0, False
        if not self._failures:
            self._since = now
        self._failures += 1
        if now < self._silent_until:
            return False
        self._lines += 1
        self._silent_until, self._is_told = now + _PACE.after(self._lines), True
        return True
