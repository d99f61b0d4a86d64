from itertools import accumulate
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports.pace import Bucket, Pace, limit


@pytest.mark.parametrize(
    ("pace", "pauses"),
    [
        (Pace(5.0, 60.0), [0.0, 5.0, 10.0, 20.0, 40.0, 60.0, 60.0]),
        (Pace(60.0, 60.0, at_once=3), [0.0, 0.0, 0.0, 60.0, 60.0]),
        (Pace(4.0, 3.0), [0.0, 3.0, 3.0]),
    ],
)
def test_pauses_double_after_the_attempts_at_once(pace: Pace, pauses: list[float]) -> None:
    assert pauses == [pace.after(attempts) for attempts in range(len(pauses))]


@pytest.mark.rule("RL-2")
def test_the_pause_after_any_number_of_attempts_is_a_number() -> None:
    assert 1000.0 == Pace(0.005, 1000.0).after(10**6)


def test_a_bucket_gives_its_burst_and_then_the_rate() -> None:
    bucket = Bucket(limit(10.0, 3), 0.0)
    assert [0.0, 0.0, 0.0, 0.1, 0.2] == pytest.approx([bucket.take(0.0) for _ in range(5)])


def test_a_bucket_shows_the_pause_without_taking() -> None:
    bucket = Bucket(Pace(10.0, 10.0, at_once=2), 0.0, left=0.0)
    assert [10.0, 10.0, 2.0, 0.0] == pytest.approx([bucket.pause(now) for now in (0.0, 0.0, 8.0, 10.0)])


def test_a_bucket_saves_no_more_than_its_burst() -> None:
    bucket = Bucket(Pace(10.0, 10.0, at_once=2), 0.0)
    assert 2.0 == bucket.left(10_000.0)


@given(st.lists(st.floats(0.0, 5.0), min_size=1), st.floats(0.1, 10.0), st.integers(1, 5))
def test_tokens_never_come_faster_than_the_rate(gaps: list[float], per_second: float, burst: int) -> None:
    bucket = Bucket(limit(per_second, burst), 0.0)
    times = list(accumulate(gaps))
    exists = [now + bucket.take(now) for now in times]
    for count, at in enumerate(exists[burst:], burst + 1):
        assert (count - burst) / per_second <= at + 1e-6
    assert max(exists, default=-inf) <= times[-1] + len(times) / per_second + 1e-6
