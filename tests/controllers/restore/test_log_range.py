"""The check that a log covers the moments of a Restore (backup.md 4.4), in every order of the moments."""

from itertools import product
from typing import Any

import pytest

from apis.backups import Backup
from apis.restores import Restore
from controllers.restore.log_range import obstacles
from member.outcome import Wait
from tests.apis.backups import S3, backup, by_br, restore

_BEGINS, _ENDS = 200, 400
_MOMENTS = (100, _BEGINS, 300, _ENDS, 500)
_SNAPSHOTS = S3 | {"prefix": "snapshot"}


def log(phase: str = "Running", *, s3: Any = None, begins: int = _BEGINS, **status: str) -> Backup:
    written = {"backupPath": "s3://lab/full", "commitTs": str(begins), "logCheckpointTs": str(_ENDS), "phase": phase}
    return backup(by_br(backupMode="log", s3=s3 or S3), status=written | status, name="log")


def snapshot(at: int, kind: str = "Complete") -> Backup:
    said = [{"type": kind, "status": "True"}]
    status = {"backupPath": "s3://lab/snapshot", "commitTs": str(at), "conditions": said}
    return backup(by_br(s3=_SNAPSHOTS), status=status, name=f"at-{at}")


def to(until: str = "", start: str = "") -> Restore:
    """A Restore from a snapshot that a Backup has made, or from a moment."""
    if start:
        return restore(by_br(restoreMode="pitr", pitrRestoredTs=until, logRestoreStartTs=start))
    below = {"s3": _SNAPSHOTS}
    return restore(by_br(restoreMode="pitr", pitrRestoredTs=until, pitrFullBackupStorageProvider=below))


def verdict(found: Any) -> str:
    return "wait" if isinstance(found, Wait) else "refused" if found else "covered"


@pytest.mark.parametrize(
    ("until", "start", "phase"), list(product(_MOMENTS, _MOMENTS, ("Running", "Paused", "Stopped")))
)
@pytest.mark.rule("backup-4.4")
def test_each_moment_must_be_in_the_log(until: int, start: int, phase: str) -> None:
    late = "refused" if phase == "Stopped" else "wait"
    expected = "refused" if min(until, start) < _BEGINS else late if max(until, start) > _ENDS else "covered"
    assert expected == verdict(obstacles(to(str(until), str(start)), [log(phase)]))
    assert expected == verdict(obstacles(to(str(until)), [log(phase), snapshot(start)]))


@pytest.mark.rule("backup-4.4")
def test_all_missing_moments_are_named() -> None:
    found = obstacles(to("100", "150"), [log()])
    assert isinstance(found, list)
    assert ["spec.pitrRestoredTs", "spec.logRestoreStartTs"] == [each.field for each in found]
    assert all("before the log of Backup ns/log begins" in each.message for each in found)


@pytest.mark.rule("backup-4.4")
def test_a_log_begins_where_it_was_truncated() -> None:
    assert "refused" == verdict(obstacles(to("250", "250"), [log(logSuccessTruncateUntil="300")]))


@pytest.mark.rule("backup-4.4")
def test_the_latest_moment_is_in_every_log() -> None:
    assert "covered" == verdict(obstacles(to(start="300"), [log("Stopped")]))


@pytest.mark.parametrize(
    "other",
    [
        log(s3=S3 | {"endpoint": "http://elsewhere"}),
        log(backupPath="s3://lab/other"),
        log(commitTs=""),
        snapshot(500),
    ],
)
@pytest.mark.rule("backup-4.4")
def test_a_log_without_its_backup_has_an_unknown_range(other: Backup) -> None:
    assert "covered" == verdict(obstacles(to("100", "100"), [other]))


@pytest.mark.rule("backup-4.4")
def test_one_of_several_logs_at_a_place_is_enough() -> None:
    assert "covered" == verdict(obstacles(to("150", "150"), [log(), log(begins=100)]))


@pytest.mark.rule("backup-4.4")
def test_a_snapshot_that_failed_is_none() -> None:
    assert "covered" == verdict(obstacles(to("300"), [log(), snapshot(100, "Failed")]))
