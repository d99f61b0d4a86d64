"""The waits of items before their retries."""

import pytest

from ports.clock import FakeClock
from workqueue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)


def delays(limiter: RateLimiter[str], item: str, count: int) -> list[float]:
    return [limiter.when(item) for _ in range(count)]


@pytest.mark.rule("RL-1")
def test_the_delay_doubles_per_item(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(clock, 0.001, 1)

    assert [0.001, 0.002, 0.004, 0.008, 0.016] == delays(limiter, "one", 5)
    assert (5, 0) == (limiter.num_requeues("one"), limiter.num_requeues("two"))
    assert 0.001 == limiter.when("two")

    limiter.forget("one")
    assert 0 == limiter.num_requeues("one")
    assert 0.001 == limiter.when("one")


@pytest.mark.parametrize(("base", "cap", "third"), [(0.001, 1000.0, 0.004), (60.0, 3600000.0, 240.0)])
@pytest.mark.rule("RL-2")
def test_the_delay_is_capped(clock: FakeClock, base: float, cap: float, third: float) -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(clock, base, cap)

    seen = delays(limiter, "one", 1001)

    assert (third, cap) == (seen[2], seen[1000])


@pytest.mark.rule("RL-3")
def test_fast_attempts_come_first(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = ItemFastSlowRateLimiter(clock, 0.005, 10, 3)

    assert [0.005, 0.005, 0.005, 10, 10] == delays(limiter, "one", 5)
    assert 5 == limiter.num_requeues("one")
    limiter.forget("one")
    assert 0.005 == limiter.when("one")


@pytest.mark.rule("RL-4")
def test_a_bucket_lets_a_burst_pass_and_then_a_rate(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = BucketRateLimiter(clock, qps=10, burst=100)

    seen = [limiter.when(str(item)) for item in range(102)]

    assert [0.0] * 100 == seen[:100]
    assert pytest.approx([0.1, 0.2]) == seen[100:]
    limiter.forget("101")
    assert 0 == limiter.num_requeues("101")


@pytest.mark.rule("RL-4")
def test_a_bucket_refills_up_to_its_burst(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = BucketRateLimiter(clock, qps=10, burst=2)
    for item in "abcd":
        limiter.when(item)

    clock.step(0.25)
    assert pytest.approx(0.05) == limiter.when("e")
    clock.step(3600)
    assert [0.0, 0.0, 0.1] == pytest.approx([limiter.when(item) for item in "abc"])


@pytest.mark.rule("RL-4")
def test_an_item_that_waits_for_its_token_takes_no_second_one(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = BucketRateLimiter(clock, qps=10, burst=1)

    assert [0.0, *[0.1] * 1000] == pytest.approx(delays(limiter, "flood", 1001))
    assert pytest.approx(0.2) == limiter.when("other")
    clock.step(0.1)
    assert pytest.approx(0.2) == limiter.when("flood")


@pytest.mark.rule("RL-5")
def test_the_longest_delay_holds_and_every_limiter_counts(clock: FakeClock) -> None:
    exponential: RateLimiter[str] = ItemExponentialFailureRateLimiter(clock, 1, 100)
    fast_slow: RateLimiter[str] = ItemFastSlowRateLimiter(clock, 3, 5, 1)
    limiter: RateLimiter[str] = MaxOfRateLimiter(exponential, fast_slow)

    assert [3, 5, 5, 8] == delays(limiter, "one", 4)
    assert 4 == limiter.num_requeues("one")
    limiter.forget("one")
    assert (0, 0) == (exponential.num_requeues("one"), fast_slow.num_requeues("one"))


@pytest.mark.rule("RL-6")
def test_a_maximum_wait_caps_another_limiter(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(clock, 1, 100), 3)

    assert [1, 2, 3, 3] == delays(limiter, "one", 4)
    assert 4 == limiter.num_requeues("one")
    limiter.forget("one")
    assert 0 == limiter.num_requeues("one")


@pytest.mark.rule("RL-7")
def test_defaults(clock: FakeClock) -> None:
    controller: RateLimiter[str] = default_controller_rate_limiter(clock)
    item_based: RateLimiter[str] = default_item_based_rate_limiter(clock)

    assert [0.005, 0.01, 0.02] == delays(controller, "one", 3)
    assert [0.001, 0.002] == delays(item_based, "one", 2)
    assert 1000 == delays(item_based, "one", 30)[-1]


@pytest.mark.rule("RL-8")
def test_an_idle_item_is_dropped(clock: FakeClock) -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(clock, 1, 100)
    delays(limiter, "idle", 3)
    clock.step(150)
    delays(limiter, "busy", 2)

    clock.step(51)

    assert (0, 2) == (limiter.num_requeues("idle"), limiter.num_requeues("busy"))


@pytest.mark.rule("RL-9")
def test_waits_for_the_shared_bucket_are_reported(clock: FakeClock) -> None:
    waits: list[float] = []
    limiter: RateLimiter[str] = default_controller_rate_limiter(clock, qps=10, burst=2, on_wait=waits.append)

    for item in "abcd":
        limiter.when(item)

    assert [0.1, 0.2] == pytest.approx(waits)
