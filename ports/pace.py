"""How soon something may be done again: one immutable policy for back-off, quiet periods and limits.

A policy has no state. Callers count their attempts: in a row, as an `Entry` of an `Ageing` map, or in a `Bucket`.
"""

from dataclasses import dataclass
from math import inf

_MAX_EXPONENT = 62
"""With a larger exponent the float would overflow; every pause is capped long before (RL-2)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Pauses in seconds: `at_once` attempts without one, then `first`, doubled after each attempt up to `longest`.

    A back-off is `Pace(5, 60)`, a quiet period `Pace(60, 60)`, a contest of three free attempts `Pace(60, 60, 3)`, a
    limit of two per second after a burst of thirty `Pace(0.5, 0.5, 30)`.
    """

    first: float
    longest: float
    at_once: int = 1

    def after(self, attempts: int) -> float:
        """The seconds from the last of `attempts` in a row to the next one."""
        if attempts < self.at_once:
            return 0.0
        return min(self.first * 2.0 ** min(attempts - self.at_once, _MAX_EXPONENT), self.longest)


def limit(per_second: float, burst: int) -> Pace:
    """The policy of a steady rate after a burst."""
    return Pace(1 / per_second, 1 / per_second, burst)


class Bucket:
    """Tokens, one for each attempt: initially the burst, refilled at the rate of a policy (RL-4). Not thread-safe."""

    def __init__(self, pace: Pace, now: float, left: float = inf) -> None:
        """`left` is the number of tokens in the beginning, at most the burst."""
        self._seconds, self._most = pace.first, float(pace.at_once)
        self._left, self._at = min(left, self._most), now

    def left(self, now: float) -> float:
        """The tokens that are left; below zero if future ones are taken."""
        return min(self._left + (now - self._at) / self._seconds, self._most)

    def pause(self, now: float) -> float:
        """The seconds until a token exists."""
        return max(0.0, (1.0 - self.left(now)) * self._seconds)

    def take(self, now: float, tokens: float = 1.0) -> float:
        """Take tokens, possibly future ones; return the seconds until they exist."""
        self._left, self._at = self.left(now) - tokens, now
        return max(0.0, -self._left * self._seconds)
