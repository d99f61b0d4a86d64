"""What a queue counts about itself, as plain numbers.

Numbers instead of Prometheus objects keep a queue fast (nothing is exported until a scrape asks) and free of exporters
under its lock (informers-workqueue.md TH-1).
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass

DURATION_BOUNDS = (1e-08, 1e-07, 1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
"""Upper bounds, in seconds, of the duration histograms (MET-1)."""

MAX_PRIORITIES = 25
"""How many priorities have a depth of their own; each is a series of its own (MET-6)."""

OTHER_PRIORITIES = "exceeded_cardinality_limit"
"""The name that all further priorities share (MET-6)."""


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram: how many durations fell into each bucket, the last one being unbounded, and their sum in seconds."""

    counts: tuple[int, ...] = (0,) * (len(DURATION_BOUNDS) + 1)
    total: float = 0.0


class DurationRecorder:
    """Counts durations. Not locked: its owner is."""

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts = [0] * (len(DURATION_BOUNDS) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(DURATION_BOUNDS, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Durations:
        """What was counted so far."""
        return Durations(tuple(self._counts), self._total)


class Depths:
    """Counts items by the name of their priority. Not locked: its owner is."""

    __slots__ = ("_depths",)

    def __init__(self) -> None:
        self._depths = {"0": 0}

    def change(self, priority: int, by: int) -> None:
        """Count `by` items more (or less) of `priority`. A name once given stays, at 0 when there is nothing."""
        name = str(priority)
        if name not in self._depths and len(self._depths) >= MAX_PRIORITIES:
            name = OTHER_PRIORITIES
        self._depths[name] = self._depths.get(name, 0) + by

    def snapshot(self) -> dict[str, int]:
        """What was counted so far."""
        return dict(self._depths)


def ages(started: Collection[float], now: float) -> tuple[float, float]:
    """The sum and the largest of the ages of what `started` at these times, in seconds."""
    if not started:
        return 0.0, 0.0
    return sum(now - start for start in started), now - min(started)


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """One consistent reading of a queue (informers-workqueue.md 8.1).

    `depth` counts every item that needs work, also those added while they are processed, which `len` does not (MET-3).
    A priority queue reports it by priority as well.
    Times are seconds; the last two cover the items being processed now and stand still after shutdown (MET-5).
    """

    depth: int = 0
    adds: int = 0
    retries: int = 0
    queue_durations: Durations = Durations()
    work_durations: Durations = Durations()
    unfinished_seconds: float = 0.0
    longest_running_seconds: float = 0.0
    depth_by_priority: Mapping[str, int] | None = None
