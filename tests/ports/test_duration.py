"""Durations, as Go reads and prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("30s", 30),
        ("400s", 400),
        ("1500m", 90000),
        ("1h30m", 5400),
        ("30m0s", 1800),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("700ms", 0.7),
        ("1m0.5s", 60.5),
        (".5s", 0.5),
        ("5.s", 5),
        ("20us", 2e-5),
        ("20µs", 2e-5),
        ("3ns", 3e-9),
        ("-1m", -60),
        ("+5m", 300),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert seconds == duration.seconds(text)


@pytest.mark.parametrize("text", ["", "10", "1d", "m", "1h 30m", "5 m", "5m3", "1.2.3s", "ten minutes", ".", "-", "٣s"])
def test_refuses_text_that_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; use, for example, 90s"):
        duration.seconds(text)


def test_refuses_more_than_go_counts() -> None:
    assert 2562047 * 3600 == duration.seconds("2562047h")
    with pytest.raises(ValueError, match="too long a duration; use less than 2562047h"):
        duration.seconds("2562048h")


def test_equal_durations_in_different_units_are_equal() -> None:
    assert duration.nanoseconds("1.1s") == duration.nanoseconds("1100ms")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (10.5, "10.5s"),
        (30, "30s"),
        (60, "1m0s"),
        (60.5, "1m0.5s"),
        (300, "5m0s"),
        (1800, "30m0s"),
        (3600, "1h0m0s"),
        (3723.45, "1h2m3.45s"),
        (86400, "24h0m0s"),
        (90061, "25h1m1s"),
        (0.5, "500ms"),
        (0.0015, "1.5ms"),
        (2e-6, "2µs"),
        (3e-9, "3ns"),
        (-5, "-5s"),
    ],
)
def test_a_duration_is_printed_as_go_does(seconds: float, text: str) -> None:
    assert text == duration.go_text(seconds)


@given(st.integers(min_value=-(10**9), max_value=10**9).map(lambda milliseconds: milliseconds / 1000))
def test_a_printed_duration_can_be_read(seconds: float) -> None:
    assert seconds == duration.seconds(duration.go_text(seconds))
