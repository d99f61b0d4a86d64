"""One thread for all delayed calls."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ports.clock import FakeClock, SystemClock
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


@pytest.mark.rule("DQ-3")
def test_calls_are_made_in_order_of_due_time(clock: FakeClock) -> None:
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


@pytest.mark.rule("DQ-7")
def test_the_thread_sleeps_until_the_first_due_time(clock: FakeClock) -> None:
    timers = Timers(clock)
    called = Stop()
    timers.call_at(10, called.set)

    with running(timers):
        clock.wait_for_waiters()
        clock.step(10)
        in_background(lambda: called.wait(clock)).result(DEADLINE)


@pytest.mark.rule("DQ-7")
def test_an_earlier_call_wakes_the_thread(clock: FakeClock) -> None:
    timers = Timers(clock)
    called = Stop()
    timers.call_at(10, lambda: None)

    with running(timers):
        clock.wait_for_waiters()
        timers.call_at(0, called.set)
        in_background(lambda: called.wait(clock)).result(DEADLINE)


@pytest.mark.rule("DQ-8")
def test_stopping_ends_the_thread_and_drops_what_waits(clock: FakeClock) -> None:
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
@pytest.mark.rule("DQ-1")
def test_a_delay_without_a_running_timer_is_logged_once_as_an_error(
    clock: FakeClock, make: Callable[[Timers], PriorityQueue[str] | DelayingQueue[str]]
) -> None:
    (error,) = errors_of_a_delayed_add(make(Timers(clock)), with_workers=True)
    assert "run `Timers.run` in a thread" in error
    assert [] == errors_of_a_delayed_add(make(Timers(clock)), with_workers=False), "somebody steps through it"
    timers = Timers(clock)
    with running(timers):
        clock.wait_for_waiters(1)
        assert [] == errors_of_a_delayed_add(make(timers), with_workers=True)


@pytest.mark.parametrize("kind", [PriorityQueue, DelayingQueue])
@pytest.mark.parametrize("delay", [math.inf, 1e10, 1e300])
def test_an_item_that_is_due_in_ages_keeps_no_other_waiting(
    kind: Callable[[Timers], PriorityQueue[str] | DelayingQueue[str]], delay: float
) -> None:
    """On the machine's clock: it can't wait for as long as that."""
    timers = Timers(SystemClock())
    queue = kind(timers)
    with running(timers):
        queue.add_after("late", delay)
        queue.add_after("soon", 0.01)

        assert ("soon", False) == in_background(queue.get).result(DEADLINE)
        queue.done("soon")
        queue.add_after("soon too", 0.01)

        assert ("soon too", False) == in_background(queue.get).result(DEADLINE)
        queue.done("soon too")
    assert 0 == len(queue)


@pytest.mark.parametrize("kind", [PriorityQueue, DelayingQueue])
def test_an_invalid_delay_is_refused_and_harms_no_other_item(
    clock: FakeClock, kind: Callable[[Timers], PriorityQueue[str] | DelayingQueue[str]]
) -> None:
    timers = Timers(clock)
    queue = kind(timers)
    queue.add_after("b", 2)
    with pytest.raises(ValueError, match="a time in seconds must be a number, not nan"):
        queue.add_after("x", math.nan)
    queue.add_after("a", 1)

    clock.step(3)
    timers.fire_due()

    assert [("a", False), ("b", False), (None, False)] == [queue.try_get() for _ in range(3)]


def test_a_cancelled_call_does_not_happen_and_does_not_count(clock: FakeClock) -> None:
    timers = Timers(clock)
    made: list[str] = []
    first = timers.call_at(1, lambda: made.append("first"))
    timers.call_at(2, lambda: made.append("second"))
    first.cancel()
    first.cancel()

    assert (1, 2) == (len(timers), timers.next_due())
    clock.step(2)
    timers.fire_due()
    first.cancel()
    assert (["second"], 0) == (made, len(timers))


def test_the_heap_keeps_nothing_of_waits_that_are_over(clock: FakeClock) -> None:
    """Each sync schedules a later one, and events come sooner: this once left a dead entry for every sync."""
    timers = Timers(clock)
    queue: PriorityQueue[str] = PriorityQueue(timers)
    for number in range(2000):
        key = f"key-{number % 10}"
        queue.add(key)
        assert (key, False) == queue.try_get()
        queue.add_after(key, 600)
        queue.done(key)

    assert 10 == len(timers)
    assert len(timers._heap) < 200


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans())))
def test_the_remaining_calls_come_in_order_after_cancellations(calls: list[tuple[int, bool]]) -> None:
    clock = FakeClock()
    timers = Timers(clock)
    made: list[int] = []
    made_timers = [timers.call_at(due, lambda due=due: made.append(due)) for due, _ in calls]  # type: ignore[misc]
    for timer, (_, cancelled) in zip(made_timers, calls, strict=True):
        if cancelled:
            timer.cancel()

    expected = sorted(due for due, cancelled in calls if not cancelled)
    assert (expected[0] if expected else None) == timers.next_due()
    clock.step(9)
    timers.fire_due()
    assert expected == made


def test_a_shutdown_leaves_nothing_on_the_heap(clock: FakeClock) -> None:
    timers = Timers(clock)
    queues: list[PriorityQueue[str] | DelayingQueue[str]] = [PriorityQueue(timers), DelayingQueue(timers)]
    for queue in queues:
        queue.add_after("a", 5)
        queue.shut_down()
    assert (0, None) == (len(timers), timers.next_due())
