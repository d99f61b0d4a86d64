"""Tells in the log what fails again and again, for hours maybe, without a line for each time."""

import logging
import threading

from structlog.typing import FilteringBoundLogger

from ports.clock import Clock

_FIRST_SILENCE = 60.0
_LONGEST_SILENCE = 3600.0


class FailureLog:
    """The failures of one thing: told at once, then after a minute, two, four, at last once an hour; else at debug.

    What works and fails in turn is told no more often: only after a rest as long as the silence are failures news
    again. Safe for use by many threads.
    """

    def __init__(self, log: FilteringBoundLogger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._silence = 0.0
        self._silent_until = float("-inf")
        self._since = 0.0
        self._failures = 0
        self._is_told = False

    def failed(self, event: str, *, level: int = logging.WARNING, **about: object) -> None:
        """It failed, or fails still; `failures` in the line counts since it last worked."""
        with self._lock:
            is_due, failures = self._count(self._clock.now()), self._failures
        self._log.log(level if is_due else logging.DEBUG, event, failures=failures, **about)

    def worked(self, event: str, **about: object) -> None:
        """It works; a line says so, and for how long it did not, if its failing was told. Costs nothing else."""
        if not self._failures:
            return
        with self._lock:
            failures, is_told, seconds = self._failures, self._is_told, self._clock.now() - self._since
            self._failures, self._is_told = 0, False
        if is_told:
            self._log.info(event, failures=failures, seconds=round(seconds, 1), **about)

    def _count(self, now: float) -> bool:
        """Count one more; whether to tell it."""
        if now >= self._silent_until + self._silence:
            self._silence, self._failures, self._is_told = 0.0, 0, False
        if not self._failures:
            self._since = now
        self._failures += 1
        if now < self._silent_until:
            return False
        self._silence = min(max(2 * self._silence, _FIRST_SILENCE), _LONGEST_SILENCE)
        self._silent_until, self._is_told = now + self._silence, True
        return True
