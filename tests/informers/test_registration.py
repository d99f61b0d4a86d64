"""Delivery to one handler, one step at a time."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from informers.handlers import ResourceEventHandlerFuncs
from informers.metrics import InformerMetrics
from informers.notifications import Add
from informers.registration import HandlerRegistration
from informers.resync import Turn
from informers.threads import start_thread
from kube.objects import Object
from kube.resources import PODS
from ports.clock import FakeClock
from tests.informers.support import DEADLINE, Recorder, eventually, pod_object


class Failing:
    """A handler that raises while a flag is set."""

    def __init__(self) -> None:
        self.failing = True
        self.calls = 0

    def on_add(self, obj: Object) -> None:
        self.calls += 1
        if self.failing:
            raise RuntimeError("no")


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def registration(clock: FakeClock, on_add: object, registry: CollectorRegistry) -> HandlerRegistration:
    handler = on_add if isinstance(on_add, Recorder) else ResourceEventHandlerFuncs(on_add=on_add)  # type: ignore[arg-type]  # tests pass callables
    return HandlerRegistration("test", handler, Turn(0, 0), clock, InformerMetrics(registry).claim("", PODS))


def add(name: str = "a") -> Add:
    return Add(pod_object(name), True)


@pytest.mark.rule("INF-13")
def test_a_registration_syncs_after_the_last_initial_addition(clock: FakeClock, registry: CollectorRegistry) -> None:
    recorder = Recorder()
    mine = registration(clock, recorder, registry)
    mine.put([add("a"), add("b")])
    mine.put_synced()
    synced = []
    for _ in range(3):
        synced.append(mine.has_synced())
        mine.step()
    assert [False, False, False] == synced
    assert mine.has_synced()
    assert ["add a@1", "add b@1"] == recorder.told


@pytest.mark.rule("INF-16", "INF-18")
def test_pauses_grow_with_failures_in_a_row(clock: FakeClock, registry: CollectorRegistry) -> None:
    handler = Failing()
    mine = registration(clock, handler.on_add, registry)
    mine.put([add() for _ in range(9)])
    assert [1, 2, 4, 8, 16, 30, 30] == [mine.step() for _ in range(7)]
    handler.failing = False
    assert mine.step() == 0
    handler.failing = True
    assert mine.step() == 1
    labels = {"resource": "pods", "handler": "test"}
    assert registry.get_sample_value("informer_handler_failures_total", labels) == 8


@pytest.mark.rule("INF-17")
def test_a_failing_initial_addition_does_not_block_the_sync(clock: FakeClock, registry: CollectorRegistry) -> None:
    mine = registration(clock, Failing().on_add, registry)
    mine.put([add()])
    mine.put_synced()
    mine.step()
    mine.step()
    assert mine.has_synced()


@pytest.mark.rule("INF-18")
def test_a_pause_is_cut_short_by_the_end(clock: FakeClock, registry: CollectorRegistry) -> None:
    handler = Failing()
    mine = registration(clock, handler.on_add, registry)
    mine.put([add(), add()])
    thread = start_thread("handler", mine.run)
    clock.wait_for_waiters()
    mine.cancel()
    thread.join(DEADLINE)
    assert (False, 1, 0) == (thread.is_alive(), handler.calls, mine.pending())


@pytest.mark.rule("INF-16")
def test_the_next_notification_comes_after_the_pause(clock: FakeClock, registry: CollectorRegistry) -> None:
    handler = Failing()
    mine = registration(clock, handler.on_add, registry)
    mine.put([add(), add()])
    thread = start_thread("handler", mine.run)
    clock.wait_for_waiters()
    assert handler.calls == 1
    clock.step(1)
    eventually(lambda: handler.calls == 2)
    mine.cancel()
    thread.join(DEADLINE)


@pytest.mark.rule("INF-20")
def test_a_handler_that_lags_is_named_once_and_its_slow_calls_from_then_on(
    clock: FakeClock, registry: CollectorRegistry, logs: list[MutableMapping[str, Any]]
) -> None:
    mine = registration(clock, lambda _: clock.step(0.2), registry)
    mine.put([add()])
    mine.step()
    assert [] == logs
    for _ in range(3):
        mine.put([add() for _ in range(1025)])
    mine.step()
    assert ["handler lags behind", "slow handler call"] == [entry["event"] for entry in logs]
    assert {"test"} == {entry["handler"] for entry in logs}


@pytest.mark.rule("INF-20")
def test_pending_notifications_are_counted(clock: FakeClock, registry: CollectorRegistry) -> None:
    mine = registration(clock, Recorder(), registry)
    mine.put([add() for _ in range(1025)])
    labels = {"resource": "pods", "handler": "test"}
    assert registry.get_sample_value("informer_handler_pending", labels) == 1025
    for _ in range(2):
        mine.cancel()
    mine.put([add()])
    assert mine.pending() == 0
    assert registry.get_sample_value("informer_handler_pending", labels) is None
