"""How often the status of one object is written, and reconciles that fail are tried, so that none is tried without end.

Each write of a status brings its object back at once. Where two looks at the world differ each time, as when every
other call reaches a PD member that has fallen behind, that would go on as fast as the API server answers (R19). So it
would where two processes write one status: a second operator, or the leader before us, not gone yet (FP9). The queue's
back-off does not help: news of an object end its wait.
"""

from ports.clock import Clock

BURST = 30
"""Writes of one status that need not wait: more than any step of an operation takes."""

RATE = 2.0
"""Writes of one status a second after that."""

FAILURE = 3.0
"""Writes that a failed reconcile counts for: a key that goes on failing is tried less than once in a second (R13).

As many less can be saved up after each failure in a row, or a quiet minute would be followed by a burst of failures.
"""

_FRACTION = 0.001
"""Of a write: who waited for one may be that short of it, because fractions of seconds do not add up."""


class StatusWriteLimiter:
    """The writes that one object has left. For one thread at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(BURST)
        self._at = clock.now()
        self._failures = 0

    def wrote(self) -> None:
        """Count a write."""
        self._take(1.0)

    def failed(self) -> None:
        """Count a reconcile that failed: what it wrote brings the key back at once, whatever its back-off."""
        self._take(FAILURE)
        self._failures += 1

    def worked(self) -> None:
        """A reconcile did not fail."""
        if self._failures:
            self._take(0.0)
            self._failures = 0

    def pause(self) -> float:
        """Seconds to wait before this object is looked at, 0 while it has writes left."""
        missing = 1 - self._writes()
        return missing / RATE if missing > _FRACTION else 0.0

    def _take(self, writes: float) -> None:
        self._left, self._at = self._writes() - writes, self._clock.now()

    def _writes(self) -> float:
        most = max(BURST - FAILURE * self._failures, 1.0)
        return min(self._left + (self._clock.now() - self._at) * RATE, most)
