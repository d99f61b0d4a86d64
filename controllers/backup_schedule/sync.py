"""One sync of a BackupSchedule, step by step (backup.md 5.1).

The log backup comes first, so that the first snapshot is a base of it. A failure of one step does not stop the others;
v1.6 makes no snapshots while the log backup is missing.
"""

from collections.abc import Callable
from functools import partial

from apis.backup_schedules import BackupSchedule
from apis.validation.backup_schedules import validate_backup_schedule
from controllers.backup_schedule import compactions, expiry, log_backup, snapshots
from controllers.backup_schedule.conditions import (
    ACTIVE,
    LAST_BACKUP_COMPLETE,
    LOG_BACKUP_RUNS,
    VALID,
    last_backup,
    new_wait,
    news,
    valid,
    with_conditions,
)
from controllers.backup_schedule.scheduling import Children, Scheduling
from controllers.conditions import ConditionValue
from controllers.job_owners.job_owner import JobOwner
from controllers.stages import EXPECTED
from kube.actions import Decision
from member.outcome import Done, Failed, Outcome

_LOOK_AGAIN = 60.0
"""The maximum seconds until the next sync: no timer fires when the wall clock is set."""


async def sync(ctx: JobOwner[BackupSchedule], children: Children) -> Outcome | None:
    """Take the next steps of a schedule. Raises ApiError, TransportError."""
    if ctx.owner.metadata.deletion_timestamp:
        return None  # Kubernetes deletes the objects that it owns
    schedule = Scheduling(ctx, children, validate_backup_schedule(ctx.model))
    conditions: dict[str, ConditionValue] = {VALID: valid("; ".join(map(str, schedule.problems)))}
    waits: list[float | None] = []

    async def save_log() -> None:
        if answer := await log_backup.sync(schedule):
            conditions[LOG_BACKUP_RUNS], wait = answer
            waits.append(wait)

    async def snapshot() -> None:
        conditions[ACTIVE], wait = await snapshots.sync(schedule)
        waits.append(wait)

    async def expire() -> None:
        waits.append(await expiry.sync(schedule))

    steps = (save_log, snapshot, partial(compactions.sync, schedule), expire)
    troubles = [trouble for step in steps if (trouble := await _trouble_of(step))]
    if (last := last_backup(schedule.backups)) is not None:
        conditions[LAST_BACKUP_COMPLETE] = last
    for kind, reason, message in news(ctx.status, conditions):
        await ctx.warn(kind, reason, message)
    if wait := new_wait(ctx.status, conditions):
        await ctx.note(*wait)
    await ctx.write(with_conditions(ctx.status, conditions, ctx.now))
    if troubles:
        return troubles[0]
    soonest = min((wait for wait in waits if wait is not None), default=None)
    return Done(retry_after=None if soonest is None else min(soonest, _LOOK_AGAIN))


async def _trouble_of(step: Callable[[], Decision[None]]) -> Failed | None:
    """Take a step; return the failure if a server refused something, else None."""
    try:
        await step()
    except EXPECTED as error:
        return Failed(type(error).__name__, str(error))
    return None
