"""Timestamps as users write them (backup.md 1.1)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from apis import tso

MAY = datetime(2024, 5, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        str(tso.of_time(MAY)),
        "2024-05-01 10:00:00",
        "2024-05-01T10:00:00Z",
        "2024-05-01t10:00:00z",
        "2024-05-01T18:00:00+08:00",
        "2024-05-01T10:00:00.000Z",
    ],
)
def test_parses_all_notations_of_a_time(text: str) -> None:
    assert tso.of_time(MAY) == tso.parse(text)


def test_an_empty_text_is_0() -> None:
    assert 0 == tso.parse("")


def test_a_tso_is_milliseconds_and_18_bits() -> None:
    assert 1714557600000 << 18 == tso.of_time(MAY)
    assert MAY + timedelta(milliseconds=7) == tso.time_of((1714557600007 << 18) + 5)
    assert tso.of_time(MAY) == tso.of_time(MAY.astimezone(timezone(timedelta(hours=8))))


@pytest.mark.parametrize(
    "text", ["now", "-1", "1.5", "2024-05-01", "2024-13-01 10:00:00", "2024-05-01T10:00:00", "٣", str(2**64)]
)
def test_refuses_text_that_is_no_timestamp(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        tso.parse(text)
