"""Monotonic timers of one cluster, which wall-clock jumps cannot shorten (lifecycle.md F14, F44, I22).

A time stored in a status comes from the wall clock, which may jump, and may include hours without an operator. These
timers count only while this process looks, so a period is never shortened. A restart begins every period again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from ports.ageing import Ageing
from ports.clock import Clock

LONGEST_GAP = 120.0
"""The longest time in seconds between two looks at the same trouble; back-off may take 100."""

_FORGOTTEN = 3600.0
"""Seconds without a look after which a stopwatch starts again."""


@dataclass(frozen=True, slots=True)
class FailureTimer:
    """One trouble: `since` is for messages, `lasted` the seconds from the first look to the newest."""

    since: datetime
    lasted: float
    last_seen: float


class FailureTimers:
    """Timers of troubles that have to last without a break. Not thread-safe."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, FailureTimer]] = {}

    def update(self, kind: str, keys: Collection[str], clock: Clock) -> Mapping[str, FailureTimer]:
        """Record that exactly `keys` have trouble of this kind now.

        The timers of other keys end. A timer that was not updated for `LONGEST_GAP` starts again.
        """
        before = self._seen.get(kind, {})
        self._seen[kind] = {key: _continued(before.get(key), clock) for key in keys}
        return self._seen[kind]

    def known(self, kind: str) -> Collection[str]:
        """The keys of the last update."""
        return self._seen.get(kind, {}).keys()

    def reset(self, kind: str) -> None:
        """End all timers of a kind, because the trouble cannot be observed now."""
        self._seen.pop(kind, None)


def _continued(before: FailureTimer | None, clock: Clock) -> FailureTimer:
    now = clock.now()
    if before is None or now - before.last_seen > LONGEST_GAP:
        return FailureTimer(clock.wall(), 0.0, now)
    return FailureTimer(before.since, before.lasted + now - before.last_seen, now)


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """The time since a first look: `since` is for messages, `seconds` has elapsed."""

    since: datetime
    seconds: float


class Stopwatches:
    """Stopwatches by purpose and key, e.g. ("eviction", "basic-tikv-1"). Not thread-safe."""

    def __init__(self) -> None:
        self._starts: Ageing[tuple[str, str], datetime] = Ageing(_FORGOTTEN)

    def look(self, what: str, key: str, clock: Clock) -> Stopwatch:
        """The time since the first look at `key`; the first look starts the stopwatch."""
        now = clock.now()
        start = self._starts.touch((what, key), clock.wall, now)
        return Stopwatch(start.value, now - start.since)

    def known(self, what: str) -> list[str]:
        """The keys with a running stopwatch."""
        return [key for kind, key in self._starts if kind == what]

    def forget(self, what: str, key: str) -> None:
        """Let the next look start the stopwatch again."""
        self._starts.drop((what, key))

    def is_due(self, what: str, key: str, period: float, clock: Clock) -> bool:
        """True at most once in `period` seconds, beginning with the first call."""
        is_new = self._starts.entry((what, key), clock.now()) is None
        if not is_new and self.look(what, key, clock).seconds < period:
            return False
        self.forget(what, key)
        self.look(what, key, clock)
        return True
