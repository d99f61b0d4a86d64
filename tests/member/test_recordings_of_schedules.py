"""A schedule's objects and status match a live v1.6's by field (backup.md 5.2)."""

import re
from datetime import datetime

import pytest

from apis.backup_defaulting import with_schedule_defaults
from apis.backup_schedules import BackupSchedule
from apis.backups import Backup
from apis.decoding import decode
from apis.times import parse_time
from apis.validation.backup_schedules import validate_backup_schedule
from kube.objects import Json
from member.backups.naming import time_of_name
from member.backups.schedules import log_start_of, scheduled_backup, scheduled_log
from tests.apis.backups import recorded
from tests.member.recordings import differences
from tests.member.test_recordings_of_backups import recorded as items_of

ADDED = re.compile(
    r"/metadata/(annotations/.*|finalizers/\d+)|/status/.*"
    # defaults of the definition
    r"|/spec/(backoffRetryPolicy/\w+|calcSizeLevel|cleanPolicy|volumeBackupInitJobMaxActiveSeconds|backupMode)"
)
MADE = "both-2026-11-22t01-47-09"


@pytest.fixture
def items() -> dict[str, Json]:
    """The recorded schedules, and the objects that v1.6 created from them."""
    return items_of("dev-schedule")


def schedule(items: dict[str, Json], name: str) -> BackupSchedule:
    return with_schedule_defaults(decode(items[f"BackupSchedule/{name}"], BackupSchedule))


def unexplained(there: Json, made: Json) -> list[str]:
    return [line for line in differences(there, made) if not ADDED.fullmatch(line.partition(": ")[0])]


def time(text: str) -> datetime:
    found = time_of_name(text) or parse_time(text)
    assert found
    return found


@pytest.mark.rule("backup-5.2")
def test_backups_equal_v1_6(items: dict[str, Json]) -> None:
    """Except for the time in the name: v1.6 uses the time of creation, this operator the due time."""
    made = scheduled_backup(schedule(items, "both"), time(MADE.removeprefix("both-")))
    assert [] == unexplained(items[f"Backup/{MADE}"], made)


@pytest.mark.rule("backup-5.2")
def test_log_backups_equal_v1_6(items: dict[str, Json]) -> None:
    both = schedule(items, "both")
    start = time(items["BackupSchedule/both"]["status"]["logBackupStartTs"])
    template = both.spec.log_backup_template
    assert template
    made = scheduled_log(both, template, start)
    assert [] == unexplained(items["Backup/log-both"], made)
    assert start == log_start_of(decode(items["Backup/log-both"], Backup).spec)


@pytest.mark.rule("backup-5")
def test_the_specs_that_v1_6_accepted_are_valid() -> None:
    schedules = {
        name: with_schedule_defaults(decode(item, BackupSchedule)) for name, item in recorded("BackupSchedule")
    }
    assert {} == {name: found for name, made in schedules.items() if (found := validate_backup_schedule(made))}
