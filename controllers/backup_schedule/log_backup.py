"""The log backup beside the snapshots (backup.md 5.1).

Its prefix contains the time when it began, by which compactions find its files. The status therefore follows from the
Backup alone, whichever process created it and whatever the status said before.
"""

import structlog

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup
from apis.decoding import decode
from apis.problem import InvalidField
from apis.times import stamp
from apis.tso import time_of
from controllers.backup_schedule.made import timestamp
from controllers.backup_schedule.scheduling import Answer, Scheduling
from controllers.conditions import INVALID, ConditionValue
from kube.actions import Emit
from kube.errors import ApiError
from kube.events import WARNING
from kube.objects import Object, whose
from kube.resources import BACKUPS
from member.backups.naming import scheduled_log_name
from member.backups.schedules import log_begins, log_start_of, scheduled_log

log = structlog.get_logger(__name__)

_FIELD = "spec.logBackupTemplate"
_LOOK_AGAIN = 30.0
"""Seconds until a retry of something that causes no event."""
_NEW = "New"
_SAVES_NOT = ("Failed", "Invalid", "RetryFailed", "Paused", "Stopped")


async def sync(schedule: Scheduling) -> Answer | None:
    """Create the log backup if it is missing; return its state, None if the spec has none. Raises ApiError, …"""
    ctx = schedule.ctx
    template = ctx.model.spec.log_backup_template
    known = cached(schedule)
    if template is None:
        return _after_removal(known) if ctx.status.get("logBackup") else None
    if problems := schedule.blocks("metadata.name", _FIELD):
        return (False, INVALID, problems), None
    if known is None and ctx.model.spec.pause:
        return (False, "Paused", "spec.pause is true: no log backup is begun"), None
    # only a live read proves that there is none
    there = known or ctx.runtime.client.find(BACKUPS, scheduled_log_name(ctx.name), ctx.namespace)
    if there is None:
        await _report_if_lost(schedule)
        try:
            begins = log_begins(ctx.model, ctx.now, schedule.others())
            there = await schedule.create(BACKUPS, scheduled_log(ctx.model, template, begins))
        except ApiError as error:
            message = f"Backup {scheduled_log_name(ctx.name)} could not be made: {error.message}"
            return (False, "CreateFailed", message), _LOOK_AGAIN
    if not ctx.controls(there):
        what = f"Backup {there.key} is not of this BackupSchedule: it is {whose(there)}"
        message = f"{what}; delete it, or stop it and rename the schedule"
        return (False, "NameTaken", message), _LOOK_AGAIN
    await _note(schedule, there)
    return _stands(there), None


def _after_removal(there: Object | None) -> Answer:
    """The state after the template was removed: the log backup runs until the user deletes it, as in v1.6."""
    if there is None:
        return (False, "NotWanted", f"{_FIELD} is absent, and the log backup is gone"), None
    return _stands(there), None


def _stands(there: Object) -> ConditionValue:
    """The value of LogBackupRuns; the Backup itself shows its checkpoint."""
    if there.metadata.deletion_timestamp:
        return (
            False,
            "Deleted",
            f"Backup {there.metadata.name} is being deleted; its conditions say what that waits for",
        )
    phase = str((there.decode().get("status") or {}).get("phase") or _NEW)
    return phase not in _SAVES_NOT, phase, f"see Backup {there.metadata.name}"


def cached(schedule: Scheduling) -> Object | None:
    """The cached log backup of this schedule; None if it does not exist or has another owner."""
    ctx = schedule.ctx
    found = schedule.children.backups.get(ctx.namespace, scheduled_log_name(ctx.name))
    return found if found is not None and ctx.controls(found) else None


def model_of(log_backup: Object) -> Backup | None:
    """The log backup with its defaults; None if it cannot be decoded."""
    try:
        return with_backup_defaults(decode(log_backup.decode(), Backup))
    except InvalidField:
        return None


def checkpoint(schedule: Scheduling, backup: Backup) -> int:
    """The TSO up to which the log is saved; 0 if it is unknown or belongs to an earlier log."""
    found, start = timestamp(backup.status.log_checkpoint_ts), schedule.time("logBackupStartTs")
    return found if found and start and time_of(found) >= start else 0


async def _report_if_lost(schedule: Scheduling) -> None:
    """Warn if the log backup was deleted. In v1.6 that also stops the snapshots."""
    name = schedule.ctx.status.get("logBackup")
    if not name:
        return
    message = f"Backup {name} was deleted and is recreated; points in time can be restored from the next snapshot on"
    log.warning("the log backup was deleted, making another one", name=name)
    await Emit(schedule.ctx.owner, WARNING, "LogBackupDeleted", message)


async def _note(schedule: Scheduling, there: Object) -> None:
    backup = model_of(there)
    start = log_start_of(backup.spec) if backup else None
    if start is None:
        # an older version of v1.6 created it without the time, or the user changed the prefix
        time = schedule.time("logBackupStartTs")
        saved = timestamp(backup.status.log_checkpoint_ts) if backup else 0
        start = time or (time_of(saved) if saved else None)
    fields = {"logBackup": there.metadata.name, "logBackupStartTs": stamp(start) if start else None}
    now = schedule.ctx.status
    if any(now.get(key) != value for key, value in fields.items()):
        await schedule.note(**fields)
