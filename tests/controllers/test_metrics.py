"""Series of controllers."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controllers.metrics import ControllerMetrics


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.mark.rule("8.2")
def test_buckets_of_the_sync_time(registry: CollectorRegistry) -> None:
    ControllerMetrics(registry).of("tidbcluster")

    family = next(family for family in registry.collect() if family.name == "controller_runtime_reconcile_time_seconds")
    bounds = [float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels]

    assert (0.005, 60.0, float("inf")) == (bounds[0], bounds[-2], bounds[-1])
    assert 41 == len(bounds)


@pytest.mark.rule("MET-14")
def test_no_created_series(registry: CollectorRegistry) -> None:
    ControllerMetrics(registry).of("tidbcluster").record("error", 1)
    assert b"_created" not in generate_latest(registry)


@pytest.mark.rule("MET-13")
def test_no_two_controllers_report_under_one_name(registry: CollectorRegistry) -> None:
    metrics = ControllerMetrics(registry)
    metrics.of("backup")
    metrics.of("backupSchedule").set_workers(5)

    with pytest.raises(ValueError, match="'backup' is already registered"):
        metrics.of("backup")
    workers = [
        registry.get_sample_value("controller_runtime_max_concurrent_reconciles", {"controller": name})
        for name in ("backup", "backupSchedule")
    ]
    assert [0, 5] == workers


@pytest.mark.rule("RL-9")
def test_throttled_retries_are_counted(registry: CollectorRegistry) -> None:
    ControllerMetrics(registry).of("tidbcluster").record_throttled(0.1)
    labels = {"controller": "tidbcluster"}
    assert 1 == registry.get_sample_value("tidb_operator_throttled_retries_total", labels)
