"""The backup that is due: one for each time of the schedule, and never two at a time (backup.md 5.1).

The operator looks for a running backup in the cache first and, before it creates one, by a live read under a lock that
all schedules of a group share. The name of a Backup follows from the time when it is due, so that after a crash the
next process finds it.
"""

from collections.abc import Sequence
from datetime import datetime

from apis import cron
from apis.times import parse_time, stamp
from controllers.backup_schedule.conditions import GROUP_RUNS, LAST_BACKUP_RUNS
from controllers.backup_schedule.made import Made, facts_of, unfinished
from controllers.backup_schedule.scheduling import Answer, Scheduling
from controllers.conditions import INVALID, ConditionValue
from controllers.key_locks import RETRY_AFTER
from kube.errors import AlreadyExists, ApiError
from kube.objects import Object, whose
from kube.resources import BACKUP_SCHEDULES, BACKUPS
from member.backups.naming import GROUP_LABEL, scheduled_name
from member.backups.schedules import scheduled_backup

_FIELDS = ("metadata.name", "spec.schedule", "spec.backupTemplate")
_LOOK_AGAIN = 30.0
"""Seconds until a retry after a taken name or a refusal of the API server, which cause no event."""


async def sync(schedule: Scheduling) -> Answer:
    """Create the backup that is due. Raises ApiError, TransportError."""
    spec, now = schedule.ctx.model.spec, schedule.ctx.now
    if problems := schedule.blocks(*_FIELDS):
        return (False, INVALID, problems), None
    if spec.pause:
        return (False, "Paused", "spec.pause is true: no backups are made"), None
    times = times_of(schedule)
    due = times.latest(await _done_until(schedule), now)
    if due is None:
        return _next(times, now)
    if running := unfinished(_of_group(schedule, schedule.children.backups.list(schedule.ctx.namespace))):
        return _waits_for(schedule, due, running), None
    with schedule.ctx.runtime.key_locks.try_lock(BACKUP_SCHEDULES, _lock_of(schedule)) as mine:
        return await _make(schedule, times, due) if mine else (_waits(due, "another of its group"), RETRY_AFTER)


def times_of(schedule: Scheduling) -> cron.Schedule:
    """The times when the schedule is due. Raises BadSchedule."""
    ctx = schedule.ctx
    anchor = parse_time(ctx.owner.metadata.creation_timestamp or "") or ctx.now
    return cron.parse(ctx.model.spec.schedule, anchor, ctx.settings.time_zone)


async def _done_until(schedule: Scheduling) -> datetime:
    """The time up to which no backup is due any longer.

    A time in the future means that the clock was set back. It is replaced by now: otherwise nothing would be due until
    then.
    """
    ctx = schedule.ctx
    last = schedule.time("lastBackupTime")
    if last is not None and last > ctx.now:
        await schedule.note(lastBackupTime=stamp(ctx.now))
        return ctx.now
    created = parse_time(ctx.owner.metadata.creation_timestamp or "")
    return last or schedule.time("allBackupCleanTime") or created or ctx.now


def _next(times: cron.Schedule, now: datetime) -> Answer:
    following = times.next(now)
    if following is None:
        return (False, "NeverDue", "spec.schedule names no time to come; correct it"), None
    rest = (following - now).total_seconds()
    return (True, "Waiting", f"the next backup is due at {stamp(following)}"), rest


def _waits(due: datetime, whom: str, reason: str = GROUP_RUNS, why: str = "") -> ConditionValue:
    message = f"the backup due at {stamp(due)} waits until {whom} has ended"
    return True, reason, f"{message}; {why}" if why else message


def _waits_for(schedule: Scheduling, due: datetime, running: Made) -> ConditionValue:
    is_own = running.owner == schedule.ctx.owner.metadata.uid
    return _waits(due, f"Backup {running.name}", LAST_BACKUP_RUNS if is_own else GROUP_RUNS, running.waits)


async def _make(schedule: Scheduling, times: cron.Schedule, due: datetime) -> Answer:
    ctx = schedule.ctx
    live = schedule.live_backups()
    name = scheduled_name(ctx.name, due)
    there = next((obj for obj in live if obj.metadata.name == name), None)
    if there is not None and not ctx.controls(there):
        what = f"Backup {there.key} is not of this BackupSchedule: it is {whose(there)}"
        message = f"{what}; delete it, or the backup due then is left out"
        return (False, "NameTaken", message), _LOOK_AGAIN
    if there is None:
        if running := unfinished(_of_group(schedule, live)):
            return _waits_for(schedule, due, running), None
        try:
            await schedule.create(BACKUPS, scheduled_backup(ctx.model, due, schedule.others()))
        except AlreadyExists:
            return _waits(due, f"Backup {name}, made meanwhile,"), RETRY_AFTER
        except ApiError as error:
            return (False, "CreateFailed", f"Backup {name} could not be made: {error.message}"), _LOOK_AGAIN
    await schedule.note(lastBackup=name, lastBackupTime=stamp(due), allBackupCleanTime=None)
    return _next(times, ctx.now)


def _group(schedule: Scheduling) -> str:
    return schedule.ctx.owner.metadata.labels.get(GROUP_LABEL, "")


def _lock_of(schedule: Scheduling) -> str:
    """The lock key that the schedules of a group share; its blank keeps it apart from names of objects."""
    group = _group(schedule)
    return f"{schedule.ctx.namespace}/group {group}" if group else f"{schedule.ctx.owner.key} snapshots"


def _of_group(schedule: Scheduling, live: Sequence[Object]) -> list[Made]:
    """The Backups of this schedule and of all schedules in its group."""
    ctx, group = schedule.ctx, _group(schedule)
    owners = {ctx.owner.metadata.uid}
    if group:
        owners |= {obj.metadata.uid for obj in ctx.caches.owners.list(ctx.namespace, {GROUP_LABEL: group})}
    return [facts_of(obj) for obj in live if _owner(obj) in owners or _labelled(obj, group)]


def _owner(backup: Object) -> str:
    controller = backup.metadata.controller
    return controller.uid if controller else ""


def _labelled(backup: Object, group: str) -> bool:
    return bool(group) and backup.metadata.labels.get(GROUP_LABEL) == group
