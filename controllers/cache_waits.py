"""Growing delays for stages that wait for a cache: a cache whose watch is silent may be behind for minutes (F3, F6).

Every retry costs a whole reconcile for each object that waits. Retrying rarely loses nothing: when the cache catches
up, the event enqueues the object at once.

Without this pace a minute of such a wait costs 599 requests to servers, not 189 (bench/memories.json).
"""

from collections.abc import Mapping
from dataclasses import replace

from member.outcome import Outcome, poll_interval
from ports.clock import Clock

_REASONS = frozenset({"Conflict", "CacheOutdated", "PodChanged"})


class CacheWaits:
    """The times since which stages of one object have waited for caches. Not thread-safe."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def paced(self, outcomes: Mapping[str, Outcome], clock: Clock) -> Mapping[str, Outcome]:
        """The outcomes, where `retry_after` of each wait for a cache grows with the duration of the wait."""
        now, late = clock.now(), [(stage, each) for stage, each in outcomes.items() if each.reason in _REASONS]
        waiting = {stage: each for stage, each in late if each.retry_after is not None}
        self._since = {stage: self._since.get(stage, now) for stage in waiting}
        again = {stage: poll_interval(now - since) for stage, since in self._since.items()}
        return {**outcomes, **{stage: replace(each, retry_after=again[stage]) for stage, each in waiting.items()}}
