"""Queues as Prometheus series (informers-workqueue.md 8.1).

A scrape reads the counters of all queues: no thread of its own, no lag (MET-5), no cost on the path of an item.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from workqueue.statistics import DURATION_BOUNDS, Durations, QueueStatistics

_LABELS = ("name",)
_BUCKETS = (*map(str, DURATION_BOUNDS), "+Inf")


class MetricsProvider(Protocol):
    """Publishes the statistics of queues (MET-7)."""

    def track(self, name: str, statistics: Callable[[], QueueStatistics]) -> None:
        """Publish the result of `statistics` under the queue's name at every scrape."""


class PrometheusQueueMetrics(Collector):
    """The `workqueue_*` series of one registry, labelled with the queue's name only, as in v1.6 (MET-2)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, Callable[[], QueueStatistics]] = {}
        registry.register(self)

    def track(self, name: str, statistics: Callable[[], QueueStatistics]) -> None:
        """Publish a queue. Raises ValueError if another queue of this registry has the name."""
        with self._lock:
            if name in self._queues:
                raise ValueError(f"a queue named {name!r} already reports to this registry")
            self._queues[name] = statistics

    def collect(self) -> Iterable[Metric]:
        """Yield all series, from one reading of each queue."""
        with self._lock:
            queues = dict(self._queues)
        return _families({name: statistics() for name, statistics in queues.items()})


def _families(queues: dict[str, QueueStatistics]) -> Iterator[Metric]:
    yield _depth(queues)
    yield _counter("adds", "Items added, without duplicates.", {name: q.adds for name, q in queues.items()})
    yield _counter("retries", "Items added with a delay.", {name: q.retries for name, q in queues.items()})
    yield _histogram(
        "queue_duration_seconds",
        "How long items wait before they are processed.",
        {name: q.queue_durations for name, q in queues.items()},
    )
    yield _histogram(
        "work_duration_seconds",
        "How long workers take for an item.",
        {name: q.work_durations for name, q in queues.items()},
    )
    yield _gauge(
        "unfinished_work_seconds",
        "Sum of the times for which workers have had their present items; grows while workers are stuck.",
        {name: q.unfinished_seconds for name, q in queues.items()},
    )
    yield _gauge(
        "longest_running_processor_seconds",
        "The longest time for which a worker has had its present item.",
        {name: q.longest_running_seconds for name, q in queues.items()},
    )


def _depth(queues: dict[str, QueueStatistics]) -> Metric:
    """One series for a plain queue; for a priority queue one per priority, with the label `priority` (MET-6)."""
    family = GaugeMetricFamily("workqueue_depth", "Items that need work.", labels=_LABELS)
    for name, queue in queues.items():
        if queue.depth_by_priority is None:
            family.add_metric([name], queue.depth)
            continue
        for priority, depth in queue.depth_by_priority.items():
            family.add_sample("workqueue_depth", {"name": name, "priority": priority}, depth)
    return family


def _gauge(name: str, documentation: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"workqueue_{name}", documentation, labels=_LABELS)
    for queue, value in values.items():
        family.add_metric([queue], value)
    return family


def _counter(name: str, documentation: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(f"workqueue_{name}", documentation, labels=_LABELS)
    for queue, value in values.items():
        family.add_metric([queue], value)
    return family


def _histogram(name: str, documentation: str, values: dict[str, Durations]) -> Metric:
    family = HistogramMetricFamily(f"workqueue_{name}", documentation, labels=_LABELS)
    for queue, durations in values.items():
        buckets = list(zip(_BUCKETS, accumulate(durations.counts), strict=True))
        family.add_metric([queue], buckets, durations.total)
    return family
