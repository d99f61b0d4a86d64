"""Exceptions of handlers, transforms and index functions cost the one call, SystemExit and cancellation included."""

import threading
from asyncio import CancelledError

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from informers.factory import SharedInformerFactory
from informers.handlers import ResourceEventHandlerFuncs
from informers.list_watch import ListWatch
from informers.metrics import InformerMetrics
from informers.shared_informer import SharedInformer
from kube.objects import Object
from kube.resources import PODS
from ports.clock import FakeClock, SystemClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from tests.informers.fake_source import FakeSource, pod
from tests.informers.support import DEADLINE, Recorder, eventually, running, starting

ERRORS = [ValueError("no"), SystemExit(2), CancelledError(), GeneratorExit()]


class World:
    """An informer on a real clock in front of a source with one pod, and its metrics."""

    def __init__(self) -> None:
        self.source, self.registry = FakeSource(), CollectorRegistry()
        self.source.add(pod("a"))
        self.informer = SharedInformer(
            ListWatch(self.source.client(), PODS),
            SystemClock(),
            SeededRandomness(1),
            metrics=InformerMetrics(self.registry),
        )

    def counted(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"resource": "pods"} | labels)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.rule("INF-16")
def test_a_handler_that_raises_anything_gets_the_next_notification(error: BaseException) -> None:
    world, heard = World(), Recorder()
    errors = [error]

    def on_add(obj: Object) -> None:
        if errors:
            raise errors.pop()
        heard.on_add(obj, False)

    registration = world.informer.add_event_handler(ResourceEventHandlerFuncs(on_add), name="odd")
    with running(world.informer):
        world.source.add(pod("b"))
        assert ["add b@12"] == heard.wait_for(1)
        assert registration.has_synced(), "INF-17"
        assert 1.0 == world.counted("informer_handler_failures_total", handler="odd")


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.rule("ST-8")
def test_any_exception_of_an_index_function_costs_no_object(error: BaseException) -> None:
    world = World()

    def by_color(obj: Object) -> list[str]:
        if obj.metadata.name == "a":
            raise error
        return ["red"]

    world.informer.add_indexers({"color": by_color})
    with running(world.informer):
        world.source.add(pod("b"))
        eventually(lambda: len(world.informer.store) == 2)

    assert ["ns/b"] == world.informer.store.index_keys("color", "red")
    assert 1.0 == world.counted("informer_index_failures_total", index="color")


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.rule("INF-41")
def test_any_exception_of_an_error_handler_ends_nothing(clock: FakeClock, error: BaseException) -> None:
    source = FakeSource()
    informer = SharedInformer(ListWatch(source.client(), PODS), clock, SeededRandomness(1))

    def handle(*_: object) -> None:
        raise error

    informer.set_watch_error_handler(handle)
    source.fail("LIST", ConnectionError("no"))  # type: ignore[arg-type]
    with capture_logs() as logs:
        assert informer.reflector.step() >= 0.8
        informer.reflector.step()

    assert ["watch error handler failed"] == [entry["event"] for entry in logs]
    assert "10" == informer.last_sync_resource_version()


@pytest.mark.parametrize("error", [*ERRORS, None], ids=repr)
@pytest.mark.rule("FIFO-10")
def test_a_transform_that_makes_no_object_fails_each_round_and_says_so(error: BaseException | None) -> None:
    world = World()

    def transform(_obj: Object) -> Object:
        if error:
            raise error
        return None  # type: ignore[return-value]

    world.informer.set_transform(transform)
    with capture_logs() as logs, starting(world.informer):
        eventually(lambda: len(logs) > 0)
        assert not world.informer.has_synced()

    assert "the transform" in logs[0]["error"]
    assert "<Pod ns/a @11>" in logs[0]["error"]


@pytest.mark.rule("FIFO-10")
def test_a_transform_that_fails_for_one_event_costs_that_event_alone() -> None:
    world = World()

    def transform(obj: Object) -> Object:
        if obj.metadata.name == "b":
            raise SystemExit
        return obj

    world.informer.set_transform(transform)
    with running(world.informer):
        world.source.add(pod("b"))
        world.source.add(pod("c"))
        eventually(lambda: len(world.informer.store) == 2)

    assert {"ns/a", "ns/c"} == set(world.informer.store.list_keys())
    assert 1.0 == world.counted("informer_unreadable_objects_total")


@pytest.mark.rule("FAC-5")
def test_a_handler_that_blocks_at_the_stop_is_named(clock: FakeClock) -> None:
    source, blocked, free, stop = FakeSource(), threading.Event(), threading.Event(), Stop()
    source.add(pod("a"))

    def block(_obj: Object) -> None:
        blocked.set()
        assert free.wait(DEADLINE)

    factory = SharedInformerFactory(source.client(), clock, SeededRandomness(1))
    factory.informer_for(PODS).add_event_handler(ResourceEventHandlerFuncs(block), name="slow")
    factory.start(stop)
    assert blocked.wait(DEADLINE)
    stop.set()
    try:
        with capture_logs() as logs:
            assert not factory.shutdown(timeout=0.2)
    finally:
        free.set()

    (told,) = (entry for entry in logs if entry["log_level"] == "error")
    assert ["handler-pods-slow"] == told["threads"]
    assert factory.shutdown()
