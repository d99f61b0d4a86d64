"""Keys that may wait without effect do not delay the others (reliability.md R31)."""

import threading
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from controllers.controller import Controller
from controllers.metrics import ControllerMetrics
from controllers.queues import controller_queue
from ports.clock import FakeClock
from ports.stopping import Stop
from tests.workqueue.background import DEADLINE, in_background
from workqueue.timers import Timers

SLOW = [f"ns/slow-{number}" for number in range(8)]


class Syncs:
    """Slow keys wait for a gate; the test counts those inside and those that came out."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.inside: list[str] = []
        self.most_at_once = 0
        self.entered = threading.Semaphore(0)
        self.quick_done = threading.Event()
        self.finished: list[str] = []

    def __call__(self, key: str) -> None:
        if key not in SLOW:
            self.quick_done.set()
            return
        with self.lock:
            self.inside.append(key)
            self.most_at_once = max(self.most_at_once, len(self.inside))
        self.entered.release()
        assert self.gate.wait(DEADLINE)
        with self.lock:
            self.inside.remove(key)
            self.finished.append(key)


@pytest.mark.rule("R31")
def test_slow_keys_take_two_workers_at_most_and_all_get_their_turn() -> None:
    clock = FakeClock()
    syncs, queue, stop = Syncs(), controller_queue("c", Timers(clock)), Stop()
    metrics = ControllerMetrics(CollectorRegistry()).of("c")
    controller = Controller("c", queue, syncs, clock=clock, metrics=metrics, is_slow=lambda key: key in SLOW)
    running = in_background(lambda: controller.run(3, stop))
    for key in SLOW:
        queue.add(key)
    for _ in range(2):
        assert syncs.entered.acquire(timeout=DEADLINE)
    queue.add(SLOW[0])
    queue.add("ns/quick")
    assert syncs.quick_done.wait(DEADLINE)

    syncs.gate.set()
    for _ in range(len(SLOW) - 1):
        assert syncs.entered.acquire(timeout=DEADLINE)
    stop.set()
    assert running.result(DEADLINE)
    assert 2 == syncs.most_at_once
    assert set(SLOW) == set(syncs.finished)


@pytest.mark.rule("CW-10")
def test_keys_that_wait_in_the_slow_lane_are_left_at_the_stop() -> None:
    clock = FakeClock()
    syncs, queue, stop = Syncs(), controller_queue("c", Timers(clock)), Stop()
    metrics = ControllerMetrics(CollectorRegistry()).of("c")
    controller = Controller("c", queue, syncs, clock=clock, metrics=metrics, is_slow=lambda key: key in SLOW)
    running = in_background(lambda: controller.run(1, stop))
    for key in SLOW:
        queue.add(key)
    for _ in range(2):
        assert syncs.entered.acquire(timeout=DEADLINE)
    stop.set()
    syncs.gate.set()
    assert running.result(DEADLINE)
    assert 2 == len(syncs.finished)


@pytest.mark.rule("R31")
def test_syncs_that_take_long_give_up_their_places() -> None:
    """Servers of more clusters than there are workers fall silent at once: no key is known to be slow yet.

    The second time, the workers lose their places sooner.
    """
    clock = FakeClock()
    timers = Timers(clock)
    syncs, queue, stop = Syncs(), controller_queue("c", timers), Stop()
    metrics = ControllerMetrics(CollectorRegistry()).of("c")
    controller = Controller("c", queue, syncs, clock=clock, metrics=metrics, timers=timers)
    running = in_background(lambda: controller.run(3, stop))
    for key in SLOW:
        queue.add(key)
    queue.add("ns/quick")
    for patience in (0.3, 0.15):
        for _ in range(3):
            assert syncs.entered.acquire(timeout=DEADLINE)
        assert not syncs.quick_done.is_set()
        clock.step(patience)
        timers.fire_due()
    assert syncs.quick_done.wait(DEADLINE)
    for _ in range(2):
        assert syncs.entered.acquire(timeout=DEADLINE)

    syncs.gate.set()
    _wait_for(lambda: len(syncs.finished) == len(SLOW))
    syncs.gate.clear()
    # the initial number of workers is left
    for key in SLOW[:4]:
        queue.add(key)
    for _ in range(3):
        assert syncs.entered.acquire(timeout=DEADLINE)
    assert not syncs.entered.acquire(timeout=0.1)
    syncs.gate.set()
    stop.set()
    assert running.result(DEADLINE)
    assert [] == [each.name for each in threading.enumerate() if each.name.startswith("c-")]


@pytest.mark.rule("CW-10")
def test_the_stop_waits_for_a_sync_that_has_left_its_place() -> None:
    clock = FakeClock()
    timers = Timers(clock)
    syncs, queue, stop = Syncs(), controller_queue("c", timers), Stop()
    metrics = ControllerMetrics(CollectorRegistry()).of("c")
    controller = Controller("c", queue, syncs, clock=clock, metrics=metrics, timers=timers)
    running = in_background(lambda: controller.run(1, stop))
    queue.add(SLOW[0])
    assert syncs.entered.acquire(timeout=DEADLINE)
    clock.step(0.3)
    timers.fire_due()
    stop.set()
    assert not running.done()
    syncs.gate.set()
    assert running.result(DEADLINE)
    assert [SLOW[0]] == syncs.finished


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = threading.Event()
    for _ in range(int(DEADLINE * 100)):
        if condition():
            return
        deadline.wait(0.01)
    raise AssertionError("took too long")
