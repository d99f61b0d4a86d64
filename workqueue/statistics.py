"""The counters of a queue, as plain numbers.

Numbers instead of Prometheus objects keep a queue fast: it exports nothing until a scrape, and calls no exporter under
its lock (informers-workqueue.md TH-1).
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass

DURATION_BOUNDS = (1e-08, 1e-07, 1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
"""Upper bounds, in seconds, of the duration histograms (MET-1)."""

MAX_PRIORITIES = 25
"""The number of priorities with a series of their own (MET-6)."""

OTHER_PRIORITIES = "exceeded_cardinality_limit"
"""The label value that all further priorities share (MET-6)."""


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram: the number of durations in each bucket, of which the last is unbounded, and their sum in seconds."""

    counts: tuple[int, ...] = (0,) * (len(DURATION_BOUNDS) + 1)
    total: float = 0.0


class DurationRecorder:
    """Counts durations. Not thread-safe: call it with the queue's lock held."""

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
    """Counts items by the name of their priority. Not thread-safe: call it with the queue's lock held."""

    __slots__ = ("_depths",)

    def __init__(self) -> None:
        self._depths = {"0": 0}

    def change(self, priority: int, by: int) -> None:
        """Add `by`, which may be negative, to the depth of `priority`. An empty priority keeps its name, at 0."""
        name = str(priority)
        if name not in self._depths and len(self._depths) >= MAX_PRIORITIES:
            name = OTHER_PRIORITIES
        self._depths[name] = self._depths.get(name, 0) + by

    def snapshot(self) -> dict[str, int]:
        """What was counted so far."""
        return dict(self._depths)


def ages(started: Collection[float], now: float) -> tuple[float, float]:
    """The sum and the maximum, in seconds, of the times from each of `started` to `now`."""
    if not started:
        return 0.0, 0.0
    return sum(now - start for start in started), now - min(started)


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """One consistent reading of a queue (informers-workqueue.md 8.1).

    `depth` counts every item that needs work; `len` does not count those added while a worker has them (MET-3).
    `unfinished_seconds` and `longest_running_seconds` cover the items that workers have now; after a shutdown they keep
    their last value (MET-5). Only a priority queue has `depth_by_priority`.
    """

    depth: int = 0
    adds: int = 0
    retries: int = 0
    queue_durations: Durations = Durations()
    work_durations: Durations = Durations()
    unfinished_seconds: float = 0.0
    longest_running_seconds: float = 0.0
    depth_by_priority: Mapping[str, int] | None = None
