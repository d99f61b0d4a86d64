"""Who waits for a cache looks again ever more rarely: one whose watch is silent may be behind for minutes (F3, F6).

Each look costs all that a reconcile reads, for each object of which the cache is behind. What it learns is an event,
and brings the object back at once.
"""

from collections.abc import Mapping
from dataclasses import replace

from member.outcome import Done, Outcome, poll_interval
from ports.clock import Clock

_REASONS = frozenset({"Conflict", "CacheOutdated", "PodChanged"})


class CacheWaits:
    """Since when stages of one object have waited for caches. For one thread at a time."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def paced(self, outcomes: Mapping[str, Outcome], clock: Clock) -> Mapping[str, Outcome]:
        """The outcomes; those that wait for caches come back the later the longer they do."""
        now, waiting = clock.now(), {stage: each for stage, each in outcomes.items() if _waits_for_cache(each)}
        self._since = {stage: self._since.get(stage, now) for stage in waiting}
        again = {stage: poll_interval(now - since) for stage, since in self._since.items()}
        return {**outcomes, **{stage: replace(each, retry_after=again[stage]) for stage, each in waiting.items()}}


def _waits_for_cache(outcome: Outcome) -> bool:
    return not isinstance(outcome, Done) and outcome.reason in _REASONS and outcome.retry_after is not None
