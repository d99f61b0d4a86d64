"""One thread for all delayed calls."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from ports.clock import FakeClock
from ports.stopping import Stop
from tests.workqueue.background import DEADLINE, in_background
from workqueue.delaying_queue import DelayingQueue
from workqueue.priority_queue import PriorityQueue
from workqueue.timers import Timers


@contextmanager
def running(timers: Timers) -> Iterator[None]:
    stop = Stop()
    ended = in_background(lambda: timers.run(stop))
    try:
        yield
    finally:
        stop.set()
        ended.result(DEADLINE)


def test_DQ_3_calls_are_made_in_order_of_due_time(clock: FakeClock) -> None:
    timers = Timers(clock)
    made: list[str] = []
    for due, name in ((1.0, "last"), (0.5, "second"), (0.25, "first"), (0.5, "third")):
        timers.call_at(due, lambda name=name: made.append(name))  # type: ignore[misc]

    timers.fire_due()
    assert [] == made
    assert 0.25 == timers.next_due()

    clock.step(2)
    timers.fire_due()
    assert ["first", "second", "third", "last"] == made
    assert timers.next_due() is None


def test_a_failing_call_is_logged_and_the_next_one_is_made(clock: FakeClock) -> None:
    timers = Timers(clock)
    made: list[str] = []

    def fail() -> None:
        raise RuntimeError("boom")

    timers.call_at(0, fail)
    timers.call_at(0, lambda: made.append("next"))

    with capture_logs() as logs:
        timers.fire_due()

    assert ["timer call failed"] == [entry["event"] for entry in logs]
    assert ["next"] == made


def test_DQ_7_the_thread_sleeps_until_the_first_due_time(clock: FakeClock) -> None:
    timers = Timers(clock)
    called = Stop()
    timers.call_at(10, called.set)

    with running(timers):
        clock.wait_for_waiters()
        clock.step(10)
        in_background(lambda: called.wait(clock)).result(DEADLINE)


def test_DQ_7_an_earlier_call_wakes_the_thread(clock: FakeClock) -> None:
    timers = Timers(clock)
    called = Stop()
    timers.call_at(10, lambda: None)

    with running(timers):
        clock.wait_for_waiters()
        timers.call_at(0, called.set)
        in_background(lambda: called.wait(clock)).result(DEADLINE)


def test_DQ_8_stopping_ends_the_thread_and_drops_what_waits(clock: FakeClock) -> None:
    timers = Timers(clock)
    made: list[str] = []
    timers.call_at(1, lambda: made.append("late"))

    with running(timers):
        clock.wait_for_waiters()

    clock.step(2)
    assert [] == made


QUEUES = [PriorityQueue[str], DelayingQueue[str]]


def errors_of_a_delayed_add(queue: PriorityQueue[str] | DelayingQueue[str], *, with_workers: bool) -> list[str]:
    queue.add("a")
    assert ("a", False) == (queue.get() if with_workers else queue.try_get())
    with capture_logs() as logs:
        for delay in (1.0, 2.0):
            queue.add_after("a", delay)
    return [entry["event"] for entry in logs if entry["log_level"] == "error"]


@pytest.mark.parametrize("make", QUEUES, ids=["priority queue", "delaying queue"])
def test_DQ_1_a_delay_that_nobody_counts_down_is_an_error_said_once(
    clock: FakeClock, make: Callable[[Timers], PriorityQueue[str] | DelayingQueue[str]]
) -> None:
    (error,) = errors_of_a_delayed_add(make(Timers(clock)), with_workers=True)
    assert "run `Timers.run` in a thread" in error
    assert [] == errors_of_a_delayed_add(make(Timers(clock)), with_workers=False), "somebody steps through it"
    timers = Timers(clock)
    with running(timers):
        clock.wait_for_waiters(1)
        assert [] == errors_of_a_delayed_add(make(timers), with_workers=True)
