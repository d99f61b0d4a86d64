"""Since when this process has seen a trouble without a break (lifecycle.md F44, I22).

What is stored may include hours in which nobody looked, and the clock on the wall may jump: neither counts. Forgotten
with the process, so that an operator that has just started gives every member a whole period.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from ports.clock import Clock

LONGEST_GAP = 120.0
"""Seconds between two looks beyond which nobody knows what was between them; back-off may cost 100."""


@dataclass(frozen=True, slots=True)
class FailureTimer:
    """One trouble. `since` is for sentences; `lasted` is the seconds from the first look to the newest."""

    since: datetime
    lasted: float
    last_seen: float


class FailureTimers:
    """The troubles of one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, FailureTimer]] = {}

    def update(self, kind: str, keys: Collection[str], clock: Clock) -> Mapping[str, FailureTimer]:
        """Note that just `keys` are in trouble of a kind now; the others, and what was long unseen, begin anew."""
        before = self._seen.get(kind, {})
        self._seen[kind] = {key: _again(before.get(key), clock) for key in keys}
        return self._seen[kind]

    def known(self, kind: str) -> Collection[str]:
        """What was in trouble of a kind at the last look."""
        return self._seen.get(kind, {}).keys()

    def reset(self, kind: str) -> None:
        """Begin anew: it can't be seen at present."""
        self._seen.pop(kind, None)


def _again(before: FailureTimer | None, clock: Clock) -> FailureTimer:
    now = clock.now()
    if before is None or now - before.last_seen > LONGEST_GAP:
        return FailureTimer(clock.wall(), 0.0, now)
    return FailureTimer(before.since, before.lasted + now - before.last_seen, now)
