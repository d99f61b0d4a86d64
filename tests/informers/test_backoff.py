import pytest

from informers.attempts import Backoff
from ports.clock import FakeClock
from ports.randomness import SeededRandomness


class NoJitter:
    """Always the low end of a range."""

    def uniform(self, low: float, high: float) -> float:
        return low

    def integer(self, low: int, high: int) -> int:
        return low

    def uuid(self) -> str:
        return ""


@pytest.mark.rule("REF-41")
def test_delays_double_up_to_thirty_seconds(clock: FakeClock) -> None:
    backoff = Backoff(clock, NoJitter())
    assert [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] == pytest.approx([backoff.next() for _ in range(8)])


@pytest.mark.rule("REF-41")
def test_two_quiet_minutes_start_the_sequence_again(clock: FakeClock) -> None:
    backoff = Backoff(clock, NoJitter())
    for _ in range(8):
        clock.step(119)
        backoff.next()
    assert backoff.next() == 30.0
    clock.step(121)
    assert backoff.next() == 0.8


@pytest.mark.rule("REF-43")
def test_the_first_delay_is_between_once_and_twice_the_base(clock: FakeClock) -> None:
    first = [Backoff(clock, SeededRandomness(seed)).next() for seed in range(100)]
    assert all(0.8 <= delay < 1.6 for delay in first)
    assert len(set(first)) > 90
