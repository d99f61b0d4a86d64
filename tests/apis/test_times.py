"""Times that users, other operators and this one wrote."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from apis.times import parse_time, stamp

THREE = datetime(2026, 11, 21, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-11-21T03:00:00Z", "2026-11-21T03:00:00+00:00", "2026-11-21T05:00:00+02:00", "2026-11-21T03:00:00"],
    ids=["UTC", "offset of zero", "another zone", "no zone"],
)
def test_reads_times_of_every_zone_as_utc(text: str) -> None:
    found = parse_time(text)
    assert (THREE, UTC) == (found, found.tzinfo if found else None)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00"])
def test_returns_none_for_an_invalid_time(text: str) -> None:
    assert parse_time(text) is None


def test_reads_the_times_that_it_writes() -> None:
    assert THREE == parse_time(stamp(THREE))


def test_a_time_of_another_zone_is_written_in_utc() -> None:
    assert "2026-11-21T03:00:00Z" == stamp(THREE.astimezone(timezone(timedelta(hours=8))))
