"""How often the status of one cluster is written, and syncs that fail are tried, so that none is synced without end.

Each write of a status brings its cluster back at once. Where two looks at the world differ each time, as when every
other call reaches a PD member that has fallen behind, that would go on as fast as the API server answers (R19). So it
would where two processes write one status: a second operator, or the leader before us, not gone yet (FP9).
"""

import threading
from dataclasses import dataclass

from ports.clock import Clock

BURST = 30
"""Writes of one status that need not wait: more than any step of an operation takes."""

RATE = 2.0
"""Writes of one status a second after that."""

FAILURE = 3.0
"""Writes that a failed sync counts for: a key that goes on failing is tried less than once in a second (R13).

As many less can be saved up after each failure in a row, or a quiet minute would be followed by a burst of failures.
"""

_FRACTION = 0.001
"""Of a write: who waited for one may be that short of it, because fractions of seconds do not add up."""


@dataclass(frozen=True, slots=True)
class _Left:
    writes: float
    at: float
    failures: int = 0


class StatusWriteLimiter:
    """The writes that each cluster has left. May be used by several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, _Left] = {}

    def wrote(self, key: str) -> None:
        """Count a write."""
        with self._lock:
            self._left[key] = _Left(self._writes(key) - 1, self._clock.now(), self._failures(key))

    def failed(self, key: str) -> None:
        """Count a sync that failed: what it wrote brings it back at once, whatever its back-off."""
        with self._lock:
            self._left[key] = _Left(self._writes(key) - FAILURE, self._clock.now(), self._failures(key) + 1)

    def worked(self, key: str) -> None:
        """A sync did not fail."""
        with self._lock:
            if self._failures(key):
                self._left[key] = _Left(self._writes(key), self._clock.now())

    def pause(self, key: str) -> float:
        """Seconds to wait before this cluster is looked at, 0 while it has writes left."""
        with self._lock:
            missing = 1 - self._writes(key)
        return missing / RATE if missing > _FRACTION else 0.0

    def forget(self, key: str) -> None:
        """Drop what is known of a key whose object is gone."""
        with self._lock:
            self._left.pop(key, None)

    def _writes(self, key: str) -> float:
        left = self._left.get(key)
        if left is None:
            return BURST
        most = max(BURST - FAILURE * left.failures, 1.0)
        return min(left.writes + (self._clock.now() - left.at) * RATE, most)

    def _failures(self, key: str) -> int:
        left = self._left.get(key)
        return left.failures if left else 0
