"""For how long this process has known of something, by a clock that nobody sets (lifecycle.md F14, F44).

A time that is stored tells what the clock on the wall has shown, which may jump. What is measured here begins with the
first look of this process: a period is never shortened, and begins again with an operator that has just started.
"""

from dataclasses import dataclass
from datetime import datetime

from ports.clock import Clock

_FORGOTTEN = 3600.0
"""Seconds without a look after which something is measured from the beginning."""


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Since when something has been known: `since` is for sentences, `seconds` is what has elapsed."""

    since: datetime
    seconds: float


@dataclass(slots=True)
class _Start:
    wall: datetime
    first: float
    looked: float


class Stopwatches:
    """Those of one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str], _Start] = {}
        self._swept = 0.0

    def look(self, what: str, key: str, clock: Clock) -> Stopwatch:
        """The time since the first look at `key`, which names one instance of `what`; the first look starts it."""
        now = clock.now()
        self._sweep(now)
        start = self._starts.get((what, key))
        if start is None or now - start.looked > _FORGOTTEN:
            start = self._starts[what, key] = _Start(clock.wall(), now, now)
        start.looked = now
        return Stopwatch(start.wall, now - start.first)

    def known(self, what: str) -> list[str]:
        """The keys that were looked at lately."""
        return [key for kind, key in self._starts if kind == what]

    def forget(self, what: str, key: str) -> None:
        """Begin anew with the next look."""
        self._starts.pop((what, key), None)

    def is_due(self, what: str, key: str, period: float, clock: Clock) -> bool:
        """Whether what is done for `key` once in `period` seconds is to be done now, which this notes as done."""
        is_new = (what, key) not in self._starts
        if not is_new and self.look(what, key, clock).seconds < period:
            return False
        self.forget(what, key)
        self.look(what, key, clock)
        return True

    def _sweep(self, now: float) -> None:
        if now - self._swept > _FORGOTTEN:
            self._swept = now
            self._starts = {each: start for each, start in self._starts.items() if now - start.looked <= _FORGOTTEN}
