"""Queues as Prometheus series."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from ports.clock import FakeClock
from workqueue.delaying_queue import DelayingQueue
from workqueue.metrics import PrometheusQueueMetrics
from workqueue.queue import Queue
from workqueue.timers import Timers


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> PrometheusQueueMetrics:
    return PrometheusQueueMetrics(registry)


@pytest.mark.rule("MET-2")
def test_every_series_has_its_name_and_label(
    clock: FakeClock, registry: CollectorRegistry, metrics: PrometheusQueueMetrics
) -> None:
    queue: DelayingQueue[str] = DelayingQueue(Timers(clock), name="tidbcluster", metrics=metrics)
    queue.add("a")
    queue.add("b")
    queue.add_after("c", 0)
    clock.step(0.5)
    queue.get()
    clock.step(2)

    def value(series: str) -> float | None:
        return registry.get_sample_value(series, {"name": "tidbcluster"})

    assert {
        "workqueue_depth": 2,
        "workqueue_adds_total": 3,
        "workqueue_retries_total": 1,
        "workqueue_queue_duration_seconds_sum": 0.5,
        "workqueue_queue_duration_seconds_count": 1,
        "workqueue_work_duration_seconds_count": 0,
        "workqueue_unfinished_work_seconds": 2,
        "workqueue_longest_running_processor_seconds": 2,
    } == {
        series: value(series)
        for series in (
            "workqueue_depth",
            "workqueue_adds_total",
            "workqueue_retries_total",
            "workqueue_queue_duration_seconds_sum",
            "workqueue_queue_duration_seconds_count",
            "workqueue_work_duration_seconds_count",
            "workqueue_unfinished_work_seconds",
            "workqueue_longest_running_processor_seconds",
        )
    }


@pytest.mark.rule("MET-1")
def test_buckets_are_ten_powers_of_ten(
    clock: FakeClock, registry: CollectorRegistry, metrics: PrometheusQueueMetrics
) -> None:
    queue: Queue[str] = Queue(clock, name="q", metrics=metrics)
    queue.add("a")
    clock.step(0.01)
    queue.get()

    family = next(family for family in registry.collect() if family.name == "workqueue_queue_duration_seconds")
    buckets = {float(sample.labels["le"]): sample.value for sample in family.samples if "le" in sample.labels}

    assert pytest.approx([10.0**exponent for exponent in range(-8, 2)]) == sorted(buckets)[:-1]
    assert {0.001: 0, 0.01: 1, 10: 1, float("inf"): 1}.items() <= buckets.items()


@pytest.mark.rule("MET-14")
def test_no_created_series(clock: FakeClock, registry: CollectorRegistry, metrics: PrometheusQueueMetrics) -> None:
    Queue[str](clock, name="q", metrics=metrics)
    assert b"_created" not in generate_latest(registry)


@pytest.mark.rule("MET-7")
def test_each_queue_reports_to_the_provider_it_is_given(clock: FakeClock) -> None:
    registries = [CollectorRegistry(), CollectorRegistry()]
    queues = [Queue[str](clock, name="q", metrics=PrometheusQueueMetrics(registry)) for registry in registries]
    queues[0].add("a")

    assert [1, 0] == [registry.get_sample_value("workqueue_depth", {"name": "q"}) for registry in registries]


def test_a_name_is_used_once_per_registry(clock: FakeClock, metrics: PrometheusQueueMetrics) -> None:
    Queue[str](clock, name="q", metrics=metrics)
    with pytest.raises(ValueError, match="'q' already reports"):
        Queue[str](clock, name="q", metrics=metrics)


@pytest.mark.rule("WQ-17")
def test_a_nameless_queue_has_no_series(
    clock: FakeClock, registry: CollectorRegistry, metrics: PrometheusQueueMetrics
) -> None:
    Queue[str](clock, metrics=metrics).add("a")
    assert [] == [sample for family in registry.collect() for sample in family.samples]
