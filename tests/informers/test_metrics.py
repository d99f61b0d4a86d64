import pytest
from prometheus_client import CollectorRegistry

from informers.list_watch import ListWatch
from informers.metrics import InformerMetrics
from informers.shared_informer import SharedInformer
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from tests.informers.fake_source import FakeSource, pod
from tests.informers.support import Recorder, eventually, running

IDENTITY = {"name": "main", "group": "", "version": "v1", "resource": "pods"}


@pytest.mark.rule("MET-21")
def test_an_informer_publishes_while_it_runs(clock: FakeClock) -> None:
    registry = CollectorRegistry()
    metrics = InformerMetrics(registry)
    source = FakeSource()
    source.add(pod("a"))

    def informer() -> SharedInformer:
        return SharedInformer(
            ListWatch(source.client(), source.resource), clock, SeededRandomness(1), metrics=metrics, name="main"
        )

    first, second = informer(), informer()
    first.add_event_handler(Recorder(), name="mine")
    second.add_event_handler(Recorder(), name="hidden")
    with running(first), running(second):
        eventually(lambda: registry.get_sample_value("informer_processing_latency_seconds_count", IDENTITY) == 1)
        assert registry.get_sample_value("informer_queued_items", IDENTITY) == 0
        assert registry.get_sample_value("informer_store_resource_version", IDENTITY) == 11
        handlers = [
            registry.get_sample_value("informer_handler_pending", {"resource": "pods", "handler": name})
            for name in ("mine", "hidden")
        ]
        assert (handlers[0] is not None, handlers[1]) == (True, None)
        failures = {"resource": "pods", "handler": "mine"}
        assert registry.get_sample_value("informer_handler_failures_total", failures) == 0
    assert registry.get_sample_value("informer_store_resource_version", IDENTITY) is None
    with running(informer()):
        assert registry.get_sample_value("informer_store_resource_version", IDENTITY) == 11


@pytest.mark.parametrize(
    ("version", "number"), [("12345678901234567890", 678901234567890.0), ("", 0.0), ("not-a-number", 0.0)]
)
@pytest.mark.rule("8.4")
def test_versions_are_published_by_their_last_fifteen_digits(version: str, number: float) -> None:
    registry = CollectorRegistry()
    InformerMetrics(registry).claim("main", FakeSource().resource).show_state(lambda: 3, lambda: version)
    assert registry.get_sample_value("informer_store_resource_version", IDENTITY) == number
    assert registry.get_sample_value("informer_queued_items", IDENTITY) == 3


@pytest.mark.rule("ST-8")
def test_failures_of_index_functions_are_counted() -> None:
    registry = CollectorRegistry()
    InformerMetrics(registry).claim("main", FakeSource().resource).index_failed("shape")
    labels = {"resource": "pods", "index": "shape"}
    assert registry.get_sample_value("informer_index_failures_total", labels) == 1


@pytest.mark.rule("8.4")
def test_a_handler_keeps_its_gauge_when_an_older_one_of_its_name_is_removed() -> None:
    registry = CollectorRegistry()
    metrics = InformerMetrics(registry).claim("main", FakeSource().resource)
    older, newer = (lambda: 1), (lambda: 2)
    metrics.show_handler("h", older)
    metrics.show_handler("h", newer)

    metrics.hide_handler("h", older)
    shown = registry.get_sample_value("informer_handler_pending", {"resource": "pods", "handler": "h"})
    metrics.hide_handler("h", newer)

    assert shown == 2
    assert registry.get_sample_value("informer_handler_pending", {"resource": "pods", "handler": "h"}) is None
