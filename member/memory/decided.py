"""What stages have decided when nothing was to be done, so that it need not be decided again on the same inputs.

A cluster at rest is looked at every half minute. What it is like is asked each time; what follows from that, and from
what the caches hold, is the same as long as both are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kube.reading import Readings
from member.outcome import Done, Outcome, first_retry
from ports.clock import Clock

LONGEST: Final = 300.0
"""Seconds after which all is decided anew, whatever is the same."""


@dataclass(frozen=True, slots=True)
class _Decision:
    seen: bytes
    readings: Readings
    outcomes: Mapping[str, Outcome]
    until: float


class Decided:
    """The last decision to do nothing, if that was the last one. For one thread at a time."""

    def __init__(self) -> None:
        self._last: _Decision | None = None

    def on(self, seen: bytes, clock: Clock) -> Mapping[str, Outcome] | None:
        """What the stages have answered to this sight of the cluster, if the caches are as they were."""
        last = self._last
        if last is None or last.seen != seen or clock.now() >= last.until or not last.readings.still_hold():
            return None
        return last.outcomes

    def nothing_to_do(self, seen: bytes, readings: Readings, outcomes: Mapping[str, Outcome], clock: Clock) -> None:
        """Note what was decided on what was seen and read, if all is done."""
        if all(isinstance(outcome, Done) for outcome in outcomes.values()):
            # what an outcome expects at a time, such as the end of a certificate, no input shows
            holds_for = min(LONGEST, first_retry(outcomes.values()) or LONGEST)
            self._last = _Decision(seen, readings, dict(outcomes), clock.now() + holds_for)
        else:
            self.forget()

    def forget(self) -> None:
        """Something was done: what is decided next is decided anew."""
        self._last = None
