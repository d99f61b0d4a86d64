"""A queue whose items wait longer the more often they fail."""

import pytest

from ports.clock import FakeClock
from workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from workqueue.rate_limiting_queue import RateLimitingQueue
from workqueue.timers import Timers


@pytest.fixture
def timers(clock: FakeClock) -> Timers:
    return Timers(clock)


@pytest.fixture
def queue(clock: FakeClock, timers: Timers) -> RateLimitingQueue[str]:
    return RateLimitingQueue(ItemExponentialFailureRateLimiter(clock, 0.001, 1), timers)


@pytest.mark.rule("RQ-1", "RQ-4")
def test_failures_lengthen_the_delay_until_forgotten(
    clock: FakeClock, timers: Timers, queue: RateLimitingQueue[str]
) -> None:
    queue.add_rate_limited("one")
    assert 0.001 == timers.next_due()
    clock.step(0.001)
    timers.fire_due()
    queue.add_rate_limited("one")
    assert pytest.approx(0.003) == timers.next_due()
    assert 2 == queue.num_requeues("one")

    queue.forget("one")
    assert 0 == queue.num_requeues("one")


@pytest.mark.rule("RQ-2")
def test_forget_does_not_replace_done(queue: RateLimitingQueue[str]) -> None:
    queue.add("one")
    assert ("one", False) == queue.get()
    queue.forget("one")
    queue.add("one")
    assert (None, False) == queue.try_get()

    queue.done("one")
    assert ("one", False) == queue.try_get()


@pytest.mark.rule("RQ-3")
def test_a_failed_item_waits_though_it_is_not_done_yet(
    clock: FakeClock, timers: Timers, queue: RateLimitingQueue[str]
) -> None:
    queue.add("one")
    queue.get()
    queue.add_rate_limited("one")
    queue.done("one")
    assert 0 == len(queue)

    clock.step(0.001)
    timers.fire_due()
    assert 1 == len(queue)


def test_the_ladder_shuts_down_as_one(queue: RateLimitingQueue[str]) -> None:
    queue.add_after("one", 1)
    assert queue.shut_down_with_drain(timeout=0)
    queue.shut_down()

    assert queue.shutting_down
    assert (None, True) == queue.get()
