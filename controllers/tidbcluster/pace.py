"""How often the status of one cluster is written, so that no cluster is synced without end.

Each write of a status brings its cluster back at once. Where two looks at the world differ each time, as when every
other call reaches a PD member that has fallen behind, that would go on as fast as the API server answers (R19).
"""

import threading
from dataclasses import dataclass

from ports.clock import Clock

BURST = 30
"""Writes of one status that need not wait: more than any step of an operation takes."""

RATE = 2.0
"""Writes of one status a second after that."""


@dataclass(frozen=True, slots=True)
class _Left:
    writes: float
    at: float


class Pace:
    """The writes that each cluster has left. May be used by several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, _Left] = {}

    def wrote(self, key: str) -> None:
        """Count a write."""
        with self._lock:
            self._left[key] = _Left(self._writes(key) - 1, self._clock.now())

    def pause(self, key: str) -> float:
        """Seconds to wait before this cluster is looked at, 0 while it has writes left."""
        with self._lock:
            return max((1 - self._writes(key)) / RATE, 0.0)

    def forget(self, key: str) -> None:
        """Drop what is known of a key whose object is gone."""
        with self._lock:
            self._left.pop(key, None)

    def _writes(self, key: str) -> float:
        left = self._left.get(key)
        return min(left.writes + (self._clock.now() - left.at) * RATE, BURST) if left else BURST
