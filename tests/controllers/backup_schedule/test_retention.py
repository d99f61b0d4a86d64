"""Retention of backups by number and by age, with and without a log backup (backup.md 5.3)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from apis import tso
from controllers.backup_schedule.made import Made
from controllers.backup_schedule.retention import Log, by_age, by_number

DAY = timedelta(days=1)
TODAY = datetime(2026, 6, 1, tzinfo=UTC)


def at(day: float) -> int:
    """The TSO of this many days before today."""
    return tso.of_time(TODAY - day * DAY)


def made(day: float, end: str = "Complete", **facts: object) -> Made:
    """A snapshot from this many days ago; a good one has its data from then."""
    usual: dict[str, object] = {
        "name": f"{end or 'Running'}-{day:g}",
        "uid": f"{day}{end}",
        "owner": "o",
        "created": TODAY - day * DAY,
        "is_log": False,
        "is_volume": False,
        "is_being_deleted": False,
        "end": end,
        "why": "",
        "at_end": bool(end),
        "completed": "",
        "is_doubtful": False,
        "is_incremental": False,
        "ts": at(day) if end == "Complete" else 0,
    }
    return Made(**usual | facts)  # type: ignore[arg-type]


def names(backups: Sequence[Made]) -> list[str]:
    return [each.name for each in backups]


def good(*days: float) -> list[Made]:
    return [made(day) for day in days]


def numbered(backups: Sequence[Made], most: int, log: Log | None = None) -> list[str]:
    return names(by_number(backups, most, log).backups)


def aged(backups: Sequence[Made], days: float, log: Log | None = None, now: datetime = TODAY) -> list[str]:
    return names(by_age(backups, days * DAY, now, log).backups)


@pytest.mark.rule("backup-5.3")
def test_the_newest_good_backups_are_kept_by_number() -> None:
    assert ["Complete-4", "Complete-3"] == numbered(good(1, 2, 3, 4), 2)
    assert [] == numbered(good(1, 2), 2)


@pytest.mark.rule("backup-5.3")
def test_failed_and_running_backups_displace_no_good_one() -> None:
    """In v1.6 all count, even the log backup, which is then stopped and deleted."""
    others = [made(0, ""), made(0.1, "Failed"), made(0.2, "Invalid"), made(0.3, "Failed"), made(9, "", is_log=True)]
    assert ["Complete-3", "Failed-0.3"] == numbered([*others, *good(1, 2, 3)], 2)


@pytest.mark.rule("backup-5.3")
def test_a_backup_that_is_being_deleted_no_longer_counts() -> None:
    assert [] == numbered([made(1, is_being_deleted=True), *good(2, 3)], 2)


@pytest.mark.rule("backup-5.3")
def test_by_number_the_base_of_a_log_that_is_behind_stays() -> None:
    assert ["Complete-4", "Complete-2"] == numbered(good(0, 1, 2, 3, 4), 2, Log(at(30), at(2.5)))
    assert ["Complete-4", "Complete-3", "Complete-2"] == numbered(good(0, 1, 2, 3, 4), 2, Log(at(30), at(0)))


@pytest.mark.parametrize("end", ["Complete", "Failed", "Invalid", ""])
@pytest.mark.rule("backup-5.3")
def test_volume_snapshots_of_v1_6_stay_and_count_for_nothing(end: str) -> None:
    volumes = [made(day, end, is_volume=True) for day in (0, 0.5, 50)]
    assert ["Complete-9"] == numbered([*volumes, *good(8, 9)], 1)
    assert [] == aged([*volumes, *good(8, 9)], 7)


@pytest.mark.rule("backup-5.3")
def test_older_backups_are_removed_by_age() -> None:
    assert ["Complete-10", "Complete-8"] == aged(good(0, 1, 8, 10), 7)


@pytest.mark.rule("backup-5.3")
def test_age_counts_from_the_data_and_not_from_the_creation() -> None:
    late = made(1, ts=at(9))
    assert ["Complete-1"] == aged([late, *good(0)], 7)


@pytest.mark.parametrize("log", [None, Log(at(999), at(100))])
@pytest.mark.rule("backup-5.3")
def test_the_last_good_one_stays_however_old_it_is(log: Log | None) -> None:
    """In v1.6 a cluster whose backups all fail loses its earlier good ones."""
    assert [] == aged(good(100), 7, log)
    assert ["Complete-120"] == aged(good(100, 110, 120), 7, log)[:1]


@pytest.mark.rule("backup-5.3")
def test_old_data_is_kept_while_no_new_data_is_saved() -> None:
    assert [] == aged(good(30, 33, 36), 7)


@pytest.mark.rule("backup-5.3")
def test_a_clock_that_was_put_forward_removes_nothing() -> None:
    assert [] == aged(good(0, 3, 6), 7, now=TODAY + 300 * DAY)


@pytest.mark.rule("backup-5.3")
def test_a_clock_that_was_put_back_removes_nothing() -> None:
    assert [] == aged(good(0, 3, 6), 7, now=TODAY - 300 * DAY)


@pytest.mark.rule("backup-5.3")
def test_a_failed_backup_is_no_base_and_is_removed_by_its_own_age() -> None:
    """In v1.6 it counts as old at any age, and is kept as the base instead of the good one."""
    backups = [made(8.5, "Failed"), made(1, "Failed"), *good(0, 8, 9)]
    assert ["Complete-9", "Failed-8.5"] == aged(backups, 7, Log(at(30), at(0)))


@pytest.mark.rule("backup-5.3")
def test_failed_ones_do_not_heap_up_while_none_succeeds() -> None:
    backups = [*good(30), *(made(day, "Failed") for day in (1, 6, 8, 20)), made(9, "Invalid")]
    for log in (None, Log(at(60), at(30))):
        assert {"Failed-8", "Failed-20", "Invalid-9"} == set(aged(backups, 7, log))
    assert [] == aged([made(6, "Failed"), *good(30)], 7)


@pytest.mark.rule("backup-5.3")
def test_the_base_of_the_oldest_point_in_time_stays() -> None:
    expired = by_age(good(0, 5, 8, 10, 12), 7 * DAY, TODAY, Log(at(30), at(0)))
    assert ["Complete-12", "Complete-10"] == names(expired.backups)
    assert at(8) == expired.log_until


@pytest.mark.rule("backup-5.3")
def test_the_window_is_counted_from_what_the_log_has_saved() -> None:
    assert [] == aged(good(5, 8, 10), 7, Log(at(30), at(2)))
    assert ["Complete-10"] == aged(good(5, 9, 10), 7, Log(at(30), at(2)))


@pytest.mark.parametrize(
    "log", [Log(at(7.5), at(0)), Log(at(30), 0), Log(at(30), at(9))], ids=["younger", "unknown", "behind"]
)
@pytest.mark.rule("backup-5.3")
def test_of_a_log_that_does_not_hold_the_base_nothing_is_cut(log: Log) -> None:
    assert 0 == by_age(good(0, 8, 10), 7 * DAY, TODAY, log).log_until


@pytest.mark.rule("backup-5.3")
def test_by_age_the_base_of_a_log_that_is_behind_stays() -> None:
    assert ["Complete-12", "Complete-9"] == aged(good(0, 8, 9, 10, 12), 7, Log(at(30), at(9.5)))


@pytest.mark.rule("backup-5.3")
def test_an_incremental_backup_is_no_base_of_a_log() -> None:
    changes = [made(day, is_incremental=True) for day in (0, 8, 9)]
    expired = by_age([*changes, made(10), made(12)], 7 * DAY, TODAY, Log(at(30), at(0)))
    assert (["Complete-12", "Complete-9"], 0) == (names(expired.backups), expired.log_until)
    assert ["Complete-12", "Complete-9", "Complete-8"] == numbered(
        [*changes, made(10), made(12)], 1, Log(at(30), at(0))
    )


@pytest.mark.rule("backup-5.3")
def test_an_export_without_a_tso_is_as_old_as_it_is() -> None:
    assert ["Complete-9"] == aged([made(0, ts=0), made(9, ts=0)], 7)


@pytest.mark.rule("backup-5.3")
def test_backups_with_missing_files_neither_displace_others_nor_are_displaced() -> None:
    doubtful = [made(day, name=f"Doubtful-{day}", is_doubtful=True) for day in (0, 2, 3)]
    backups = [*doubtful, *good(1, 9), made(0.5, "Failed")]
    assert ["Complete-9", "Doubtful-3", "Doubtful-2"] == numbered(backups, 1)
    assert [] == aged([made(30, is_doubtful=True)], 7)
