"""The check that the log of a point-in-time restore covers the moments that it needs (backup.md 4.4). Pure.

The status of the log's Backup has its range. BR checks the range too, but in its Job, after TiKV was restarted for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from apis import log_backups, tso
from apis.backups import Backup
from apis.problem import Problem
from apis.restores import Restore
from controllers.backup.chains import bounds, decisive, is_complete, is_from, logs_at, moment, shown, until_reached
from member.outcome import Wait


@dataclass(frozen=True, slots=True)
class _Needed:
    """A moment that a Restore needs, as a TSO; `what` begins the sentence about it."""

    field: str
    value: str
    at: int
    what: str

    def problem(self, why: str) -> Problem:
        return Problem(self.field, self.value, f"{self.what} {shown(self.at)}, {why}")


def obstacles(restore: Restore, backups: Sequence[Backup]) -> list[Problem] | Wait:
    """The moments that the log will never have, or the wait for a log that has not reached one yet.

    Empty if the log has all moments, or the Backup that wrote it is unknown. All objects must have their defaults.
    """
    needed = _needed(restore, backups)
    logs = (backup for backup in logs_at(backups, restore.spec) if moment(backup.status.commit_ts))
    return decisive([_missing(log, needed) for log in logs]) or []


def _missing(log: Backup, needed: Sequence[_Needed]) -> list[Problem] | Wait | None:
    name = f"Backup {log.metadata.namespace}/{log.metadata.name}"
    begins, ends = bounds(log)
    early = f"before the log of {name} begins, at {shown(begins)}; use a later one"
    if problems := [each.problem(early) for each in needed if each.at < begins]:
        return problems
    late = [each for each in needed if 0 < ends < each.at]
    if not late:
        return None
    if log.status.phase == log_backups.STOPPED:
        return [each.problem(f"after the log of {name} ends, at {shown(ends)}; use an earlier one") for each in late]
    last = max(late, key=lambda each: each.at)
    return until_reached(log, last.field, last.at)


def _needed(restore: Restore, backups: Sequence[Backup]) -> list[_Needed]:
    spec, snapshot = restore.spec, _snapshot(restore, backups)
    asked = [
        _Needed("spec.pitrRestoredTs", spec.pitr_restored_ts, tso.parse(spec.pitr_restored_ts), "is"),
        _Needed("spec.logRestoreStartTs", spec.log_restore_start_ts, tso.parse(spec.log_restore_start_ts), "is"),
    ]
    if snapshot is not None:
        path, at = snapshot.status.backup_path, moment(snapshot.status.commit_ts)
        asked.append(_Needed("spec.pitrFullBackupStorageProvider", path, at, "has the data of"))
    return [needed for needed in asked if needed.at]


def _snapshot(restore: Restore, backups: Sequence[Backup]) -> Backup | None:
    """The Backup of the snapshot below the log: the newest one at that place."""
    below = restore.spec.pitr_full_backup_storage_provider
    there = [backup for backup in backups if backup.spec.backup_mode == "snapshot" and is_complete(backup)]
    return max((backup for backup in there if is_from(backup, below)), key=_taken, default=None)


def _taken(snapshot: Backup) -> int:
    return moment(snapshot.status.commit_ts)
