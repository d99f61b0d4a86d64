"""A queue whose items may be added later."""

from collections.abc import Callable

import pytest

from ports.clock import FakeClock
from workqueue.delaying_queue import DelayingQueue
from workqueue.timers import Timers


@pytest.fixture
def timers(clock: FakeClock) -> Timers:
    return Timers(clock)


@pytest.fixture
def queue(timers: Timers) -> DelayingQueue[str]:
    return DelayingQueue(timers)


def pass_time(timers: Timers, clock: FakeClock, seconds: float) -> None:
    clock.step(seconds)
    timers.fire_due()


def take_all(queue: DelayingQueue[str]) -> list[str]:
    taken = []
    while (item := queue.try_get()[0]) is not None:
        taken.append(item)
        queue.done(item)
    return taken


@pytest.mark.parametrize("delay", [0, -1])
@pytest.mark.rule("DQ-1")
def test_without_delay_the_item_is_added_at_once(queue: DelayingQueue[str], delay: float) -> None:
    queue.add_after("foo", delay)

    assert ["foo"] == take_all(queue)
    assert 1 == queue.statistics().retries


@pytest.mark.rule("DQ-1")
def test_a_delayed_item_comes_when_due(queue: DelayingQueue[str], timers: Timers, clock: FakeClock) -> None:
    queue.add_after("foo", 5)

    pass_time(timers, clock, 4.9)
    assert [] == take_all(queue)
    pass_time(timers, clock, 0.1)
    assert ["foo"] == take_all(queue)


@pytest.mark.parametrize("delays", [(10, 5), (5, 10)])
@pytest.mark.rule("DQ-2")
def test_the_earlier_due_time_holds(
    queue: DelayingQueue[str], timers: Timers, clock: FakeClock, delays: tuple[float, float]
) -> None:
    for delay in delays:
        queue.add_after("foo", delay)

    pass_time(timers, clock, 5)
    assert ["foo"] == take_all(queue)
    pass_time(timers, clock, 5)
    assert [] == take_all(queue)


@pytest.mark.rule("DQ-3")
def test_due_items_come_in_order_of_due_time(queue: DelayingQueue[str], timers: Timers, clock: FakeClock) -> None:
    for item, delay in (("last", 1), ("second", 0.5), ("first", 0.25)):
        queue.add_after(item, delay)

    pass_time(timers, clock, 2)

    assert ["first", "second", "last"] == take_all(queue)


@pytest.mark.rule("DQ-4")
def test_a_direct_add_does_not_cancel_the_delayed_one(
    queue: DelayingQueue[str], timers: Timers, clock: FakeClock
) -> None:
    queue.add_after("foo", 1)
    queue.add("foo")

    assert ["foo"] == take_all(queue)
    pass_time(timers, clock, 1)
    assert ["foo"] == take_all(queue)


@pytest.mark.rule("DQ-5")
def test_an_item_that_fires_while_queued_is_one_item(
    queue: DelayingQueue[str], timers: Timers, clock: FakeClock
) -> None:
    queue.add_after("foo", 1)
    queue.add("foo")
    pass_time(timers, clock, 1)

    assert ["foo"] == take_all(queue)


@pytest.mark.rule("DQ-6")
def test_len_does_not_count_waiting_items(queue: DelayingQueue[str]) -> None:
    queue.add_after("foo", 1)
    assert 0 == len(queue)


@pytest.mark.parametrize("shut_down", [DelayingQueue[str].shut_down, DelayingQueue[str].shut_down_with_drain])
@pytest.mark.rule("DQ-8")
def test_shutdown_drops_waiting_items(
    queue: DelayingQueue[str], timers: Timers, clock: FakeClock, shut_down: Callable[[DelayingQueue[str]], object]
) -> None:
    queue.add_after("foo", 1)

    shut_down(queue)
    queue.add_after("bar", 1)
    pass_time(timers, clock, 1)

    assert (None, True) == queue.get()
    assert queue.shutting_down


@pytest.mark.rule("DQ-9")
def test_an_item_fires_once(queue: DelayingQueue[str], timers: Timers, clock: FakeClock) -> None:
    queue.add_after("foo", 1)
    pass_time(timers, clock, 1)
    assert ["foo"] == take_all(queue)

    pass_time(timers, clock, 20)
    assert [] == take_all(queue)


@pytest.mark.rule("25.1")
def test_two_queues_share_the_timers(timers: Timers, clock: FakeClock) -> None:
    one: DelayingQueue[str] = DelayingQueue(timers)
    other: DelayingQueue[str] = DelayingQueue(timers)
    one.add_after("foo", 1)
    other.add_after("foo", 2)

    pass_time(timers, clock, 1)

    assert (["foo"], []) == (take_all(one), take_all(other))


@pytest.mark.rule("DQ-10")
def test_add_after_never_blocks(queue: DelayingQueue[str], timers: Timers) -> None:
    for number in range(2000):
        queue.add_after(f"item-{number}", 1 + number)
    assert 1 == timers.next_due()
