"""Removal of old backups, old compactions, and the part of the log that no backup needs (backup.md 5.3).

The cache only shows that there may be something to remove. The operator then reads the schedule live, since the user
may keep more by now, decides on a live list, reads each Backup once more, and deletes exactly the version that it read.
"""

import functools
from collections.abc import Callable, Sequence
from datetime import timedelta

from apis.backup_paths import backup_path
from apis.backups import Backup
from apis.tso import of_time
from controllers.backup_schedule import log_backup, retention
from controllers.backup_schedule.made import Made, facts_of, timestamp
from controllers.backup_schedule.retention import Expired, Log
from controllers.backup_schedule.scheduling import Scheduling
from controllers.job_owners.files import everything, reads
from kube.actions import Apply, Emit
from kube.deletion import Destroyer
from kube.events import NORMAL
from kube.objects import Json, Object
from kube.resources import BACKUPS, COMPACT_BACKUPS, RESTORES, Resource
from member.actions import Delete
from member.evidence import shown_by
from ports import duration

_FIELD = "spec.maxReservedTime"
_ENDED = ("Complete", "Failed")
_LOOK_AGAIN = 60.0
"""Seconds until the operator checks again if a Restore still reads the log, or if the cache is current."""


async def sync(schedule: Scheduling) -> float | None:
    """Remove what has expired; return the seconds until the next check, None if there is none.

    Raises Conflict, other ApiErrors, TransportError.
    """
    if schedule.blocks(_FIELD):
        return None
    old = _old_compactions(schedule)
    expired = _expired(schedule, schedule.backups)
    if (old or expired.backups) and not schedule.ctx.is_confirmed():
        return _LOOK_AGAIN
    for compaction in old:
        await _delete(schedule, COMPACT_BACKUPS, compaction.metadata.name, _has_ended)
    if not expired.backups and not expired.log_until:
        return None
    if expired.backups:
        expired = _expired(schedule, schedule.mine(schedule.live_backups()))
        for backup in expired.backups:
            await _delete(schedule, BACKUPS, backup.name, functools.partial(_is_still, backup))
    return await _truncate(schedule, expired.log_until)


def _expired(schedule: Scheduling, backups: Sequence[Made]) -> Expired:
    spec = schedule.ctx.model.spec
    if reserved := spec.max_reserved_time:
        age = timedelta(seconds=duration.seconds(reserved))
        return retention.by_age(backups, age, schedule.ctx.now, _log(schedule))
    if spec.max_backups is not None and spec.max_backups > 0:
        return retention.by_number(backups, spec.max_backups, _log(schedule))
    return Expired()


def _log(schedule: Scheduling) -> Log | None:
    there = log_backup.cached(schedule)
    backup = log_backup.model_of(there) if there else None
    if backup is None:
        return None
    return Log(timestamp(backup.status.commit_ts), log_backup.checkpoint(schedule, backup))


def _is_still(known: Made, there: Object) -> bool:
    """True if a Backup is unchanged since the decision about it."""
    backup = facts_of(there)
    return (backup.uid, backup.end, backup.is_good) == (known.uid, known.end, known.is_good)


async def _delete(schedule: Scheduling, resource: Resource, name: str, still: Callable[[Object], bool]) -> None:
    """Delete an object of this schedule if, read live, it is `still` what was decided on."""
    ctx = schedule.ctx
    seen = Destroyer(ctx.runtime.client).observe(resource, name, ctx.namespace)
    if seen is None or seen.object.metadata.deletion_timestamp or not ctx.controls(seen.object):
        return
    if still(seen.object):
        await Delete(seen, shown_by(seen, f"BackupSchedule {ctx.owner.key} keeps it no longer"))
        what = f"delete {resource.kind} {ctx.namespace}/{name} for backupSchedule/{ctx.name} successful"
        await Emit(seen.object, NORMAL, "SuccessfulDelete", what)


async def _truncate(schedule: Scheduling, until: int) -> float | None:
    """Truncate the log backup before `until`, as far as it is compacted and no Restore reads it."""
    there = log_backup.cached(schedule)
    backup = log_backup.model_of(there) if there else None
    if there is None or backup is None or there.metadata.deletion_timestamp:
        return None
    until = _compacted(schedule, until)
    if until <= max(timestamp(backup.spec.log_truncate_until), timestamp(backup.status.log_success_truncate_until)):
        return None
    if _is_read(schedule, backup) or not schedule.ctx.is_confirmed():
        return _LOOK_AGAIN
    wanted = {
        "metadata": {
            "name": there.metadata.name,
            "namespace": there.metadata.namespace,
            "ownerReferences": there.decode()["metadata"]["ownerReferences"],
        },
        "spec": {"logTruncateUntil": str(until)},
    }
    await Apply(BACKUPS, wanted, there)
    what = f"truncate log backup {there.key} until {until} for backupSchedule/{schedule.ctx.name} successful"
    await Emit(there, NORMAL, "SuccessfulTruncate", what)
    return None


def _compacted(schedule: Scheduling, until: int) -> int:
    """`until`, limited to the compacted part of the log if the spec requests compactions."""
    if schedule.ctx.model.spec.compact_backup_template is None:
        return until
    progress = schedule.time("lastCompactProgress")
    return min(until, of_time(progress)) if progress else 0


def _is_read(schedule: Scheduling, backup: Backup) -> bool:
    """True if an unfinished Restore reads the log."""
    path = backup_path(backup.spec)
    return any(reads(obj, path, backup.spec) for obj in everything(schedule.ctx, RESTORES))


def _old_compactions(schedule: Scheduling) -> Sequence[Object]:
    """Old, ended CompactBackups, which are deleted without their files; the last one stays, as it has the progress."""
    spec, ctx = schedule.ctx.model.spec, schedule.ctx
    found = [obj for obj in schedule.children.compactions.list(ctx.namespace) if ctx.controls(obj)]
    found = [obj for obj in found if _has_ended(obj) and obj.metadata.name != ctx.status.get("lastCompact")]
    ended = sorted(found, key=lambda each: each.metadata.creation_timestamp or "")
    if reserved := spec.max_reserved_time:
        limit = retention.earlier(of_time(ctx.now), timedelta(seconds=duration.seconds(reserved)))
        return [obj for obj in ended if 0 < timestamp(_tree(obj, "spec").get("endTs") or "") < limit]
    if spec.max_backups is not None and spec.max_backups > 0:
        return ended[: -spec.max_backups]
    return []


def _has_ended(compaction: Object) -> bool:
    is_going = compaction.metadata.deletion_timestamp is not None
    return not is_going and _tree(compaction, "status").get("state") in _ENDED


def _tree(of: Object, part: str) -> Json:
    found = of.decode().get(part)
    return found if isinstance(found, dict) else {}
