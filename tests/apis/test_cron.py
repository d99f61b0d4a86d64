"""The due times of a schedule, in v1.6's notation (backup.md 5)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from apis.cron import BadSchedule, Schedule, parse

START = datetime(2026, 1, 1, tzinfo=UTC)


def times(text: str, start: str, count: int = 3) -> list[str]:
    """The first times of a schedule after a moment."""
    found = parse(text).after(datetime.fromisoformat(start))
    return [f"{each:%Y-%m-%d %H:%M}" for each in islice(found, count)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/1 * * * *", ["2026-01-01 00:01", "2026-01-01 00:02", "2026-01-01 00:03"]),
        ("0 3 * * 1-5", ["2026-01-01 03:00", "2026-01-02 03:00", "2026-01-05 03:00"]),
        ("30 2 1 * ?", ["2026-01-01 02:30", "2026-02-01 02:30", "2026-03-01 02:30"]),
        ("15/20 5 * * *", ["2026-01-01 05:15", "2026-01-01 05:35", "2026-01-01 05:55"]),
        ("0 0 * JAN mon", ["2026-01-05 00:00", "2026-01-12 00:00", "2026-01-19 00:00"]),
        ("@daily", ["2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00"]),
        ("@weekly", ["2026-01-04 00:00", "2026-01-11 00:00", "2026-01-18 00:00"]),
        ("TZ=Asia/Tokyo 0 3 * * *", ["2026-01-01 18:00", "2026-01-02 18:00", "2026-01-03 18:00"]),
        ("CRON_TZ=America/New_York @daily", ["2026-01-01 05:00", "2026-01-02 05:00", "2026-01-03 05:00"]),
        ("CRON_TZ=UTC  0 6 * * *", ["2026-01-01 06:00", "2026-01-02 06:00", "2026-01-03 06:00"]),
    ],
)
@pytest.mark.rule("backup-5")
def test_reads_every_notation_of_v1_6(text: str, expected: list[str]) -> None:
    assert expected == times(text, "2026-01-01T00:00:00Z")


@pytest.mark.rule("backup-5")
def test_if_day_and_weekday_are_restricted_either_may_match() -> None:
    """In v1.6 a step is a restriction, in Debian's cron it is none."""
    assert ["2026-01-13 00:00", "2026-01-15 00:00", "2026-01-20 00:00"] == times("0 0 15 * 2", "2026-01-10T00:00:00Z")
    assert ["2026-01-05 00:00", "2026-01-07 00:00", "2026-01-09 00:00"] == times("0 0 */2 * 6", "2026-01-03T00:00:00Z")
    assert ["2026-01-04 00:00", "2026-01-05 00:00", "2026-01-06 00:00"] == times("0 0 5 * */2", "2026-01-03T00:00:00Z")


@pytest.mark.rule("backup-5")
def test_a_time_that_summer_time_skips_runs_right_after_the_gap() -> None:
    """v1.6 makes no backup on that day."""
    berlin = "CRON_TZ=Europe/Berlin 30 2 * * *"
    assert ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"] == times(berlin, "2026-03-28T00:00:00Z")


@pytest.mark.parametrize("start", ["2026-10-24T23:50:00Z", "2026-10-25T00:00:00Z"])
@pytest.mark.rule("backup-5")
def test_a_time_that_occurs_twice_counts_once(start: str) -> None:
    """v1.6 makes two backups on that day."""
    berlin = "CRON_TZ=Europe/Berlin 30 2 * * *"
    assert ["2026-10-25 00:30", "2026-10-26 01:30"] == times(berlin, start, 2)


@pytest.mark.rule("backup-5")
def test_between_the_two_occurrences_the_next_time_is_tomorrow() -> None:
    assert ["2026-10-26 01:30"] == times("CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-25T01:10:00Z", 1)


@pytest.mark.rule("backup-5")
def test_an_hourly_schedule_runs_every_hour_through_a_clock_change() -> None:
    found = times("CRON_TZ=Europe/Berlin 0 * * * *", "2026-10-24T23:30:00Z", 4)
    assert ["2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 03:00"] == found


@pytest.mark.rule("backup-5")
def test_an_interval_counts_from_the_start() -> None:
    schedule = parse("@every 1h30m", START)
    assert [START + timedelta(hours=3), START + timedelta(hours=4.5)] == list(
        islice(schedule.after(START + timedelta(hours=1.5)), 2)
    )
    assert START + timedelta(hours=1.5) == schedule.next(START - timedelta(days=9))


@pytest.mark.parametrize(
    ("text", "days", "expected"),
    [
        ("* * * * *", 30, timedelta(days=30)),
        ("0 3 * * *", 30, timedelta(days=29, hours=3)),
        ("0 3 * * *", 0.1, None),
        ("@every 1s", 400, timedelta(days=400)),
        ("0 0 29 2 *", 4000, timedelta(days=2 * 365 + 59 + 4 * 365 + 1 + 4 * 365 + 1)),
    ],
)
@pytest.mark.rule("backup-5")
def test_finds_the_latest_due_time_after_any_pause(text: str, days: float, expected: timedelta | None) -> None:
    found = parse(text, START).latest(START, START + timedelta(days=days))
    assert expected == (found and found - START)


@pytest.mark.rule("backup-5")
def test_finds_the_latest_of_many_times_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[datetime] = []
    after = Schedule.after

    def counting(self: Schedule, time: datetime) -> Iterator[datetime]:
        for each in after(self, time):
            looked.append(each)
            yield each

    monkeypatch.setattr(Schedule, "after", counting)
    parse("* * * * *", START).latest(START, START + timedelta(days=300))
    assert len(looked) < 100


@pytest.mark.rule("backup-5")
def test_a_schedule_without_a_zone_uses_the_process_zone() -> None:
    def hour(usual: str) -> int:
        found = parse("0 3 * * *", START, usual).next(START)
        assert found
        return found.hour

    assert [18, 3, 3] == [hour(usual) for usual in ("Asia/Tokyo", "", ":/etc/localtime")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * *", "has 4 fields in place of 5: minute, hour, day, month, weekday, such as 0 3 * * 1-5"),
        ("0 0 3 * * *", "has 6 fields in place of 5"),
        ("61 * * * *", "bad minute; write five fields"),
        ("0 3 * * 1-9", "bad day-of-week"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("@often", "@often is unknown; use one of @yearly"),
        ("@every soon", "'soon' is not a duration"),
        ("@every 0s", "@every 0s must be more than 0"),
        ("@every -5m", "@every -5m must be more than 0"),
        ("TZ=Mars/Olympus 0 3 * * *", "time zone Mars/Olympus is unknown; use a name such as Europe/Berlin"),
        ("TZ=../etc/passwd 0 3 * * *", "time zone ../etc/passwd is unknown"),
        ("TZ=America 0 3 * * *", "time zone America is unknown"),
        ("", "has 0 fields"),
    ],
)
@pytest.mark.rule("backup-5")
def test_refuses_a_schedule_that_names_no_times(text: str, expected: str) -> None:
    with pytest.raises(BadSchedule) as raised:
        parse(text)
    assert str(raised.value).startswith(expected)
