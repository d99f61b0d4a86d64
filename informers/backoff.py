"""Delays between a reflector's attempts (informers-workqueue.md 11.1, REF-41, REF-42)."""

from ports.clock import Clock
from ports.randomness import Randomness

_INITIAL = 0.8
_FACTOR = 2.0
_CAP = 30.0
_QUIET = 120.0
"""Seconds without a call of `next` after which the sequence starts again."""


class Backoff:
    """Growing delays of one reflector: 0.8 s, doubling up to 30 s, each multiplied by a random factor in [1, 2)."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness
        self._base = _INITIAL
        self._drawn_at = clock.now()

    def next(self) -> float:
        """The next delay in seconds. After two minutes without a call the sequence starts again (REF-41)."""
        now = self._clock.now()
        if now - self._drawn_at > _QUIET:
            self._base = _INITIAL
        self._drawn_at = now
        base, self._base = self._base, min(self._base * _FACTOR, _CAP)
        return base * self._randomness.uniform(1.0, 2.0)
