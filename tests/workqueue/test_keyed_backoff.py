"""Growing pauses of things that have names."""

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from workqueue.keyed_backoff import KeyedBackoff


@pytest.fixture
def backoff(clock: FakeClock) -> KeyedBackoff[str]:
    return KeyedBackoff(clock, SeededRandomness(1), 1.0, 10.0)


def test_RL_10_the_pause_of_a_key_doubles_up_to_the_longest(clock: FakeClock, backoff: KeyedBackoff[str]) -> None:
    assert [1, 2, 4, 8, 10, 10] == [backoff.next("one", clock.now()) for _ in range(6)]
    assert 1 == backoff.next("two", clock.now())

    backoff.reset("one")
    assert 1 == backoff.next("one", clock.now())


def test_RL_10_an_idle_key_starts_again(clock: FakeClock, backoff: KeyedBackoff[str]) -> None:
    backoff.next("one", 0)
    clock.step(20)
    assert 2 == backoff.next("one", clock.now())
    clock.step(20.1)
    assert 1 == backoff.next("one", clock.now())


def test_RL_10_a_key_is_in_backoff_until_its_pause_has_passed(clock: FakeClock, backoff: KeyedBackoff[str]) -> None:
    assert not backoff.is_in_backoff_since_update("one", 0)
    backoff.next("one", 0)
    backoff.next("one", 0)

    assert [True, False] == [backoff.is_in_backoff_since_update("one", at) for at in (1.9, 2.0)]


def test_RL_10_what_has_expired_is_dropped(clock: FakeClock, backoff: KeyedBackoff[str]) -> None:
    backoff.next("old", 0)
    clock.step(15)
    backoff.next("new", clock.now())
    clock.step(5.1)

    backoff.gc()

    assert 1 == len(backoff)
    assert 2 == backoff.next("new", clock.now())


def test_RL_10_jitter_lengthens_a_pause_by_at_most_its_share(clock: FakeClock) -> None:
    backoff: KeyedBackoff[str] = KeyedBackoff(clock, SeededRandomness(1), 1.0, 1000.0, jitter=0.5)

    first, second = (backoff.next("one", 0) for _ in range(2))

    assert 1 < first < 1.5
    assert 2 * first < second < 2.5 * first
