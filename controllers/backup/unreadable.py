"""A log backup whose task cannot be read: reported soon, Failed after a grace period (LOG-1 … LOG-7).

The begin is the transition time of a condition, so that a restart of the operator does not delay the failure.
v1.7 has it in memory only, and reports nothing before the failure.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from apis import log_backups
from apis.backup_conditions import LOG_STATE_UNREADABLE, with_condition
from apis.backups import Backup
from apis.log_backups import FAILED, LogCondition
from apis.times import parse_time, stamp
from controllers.backup.kernel import Watched
from controllers.job_owners.job_owner import JobOwner
from kube.objects import condition_of
from ports import duration
from ports.foreign_text import shortened

GRACE = "tidb.pingcap.com/log-backup-state-query-failure-grace-period"
_GRACE = 168 * 3600.0
_UNREPORTED = 600.0
"""Seconds without an answer that cost no write; also the shortest time between two reports."""
_REASON = "LogBackupStateQueryFailed"


async def report(ctx: JobOwner[Backup], watched: Watched, cause: str) -> LogCondition | None:
    """Note a failed read, and report it if reads have failed for long; return the failure that is due, if any.

    One failed read never causes a failure, because the operator may have been away for most of the grace period.
    Raises RequeueError, ApiError, TransportError.
    """
    is_first = watched.unreadable_since is None
    since = watched.unreadable_since = _reported_since(ctx) or watched.unreadable_since or ctx.now
    grace, remark = grace_period(ctx.owner.metadata.annotations)
    lasted = (ctx.now - since).total_seconds()
    if is_first or lasted < min(_UNREPORTED, grace / 2):
        return None
    what = f"since {stamp(since)} the state of the log backup could not be read: {shortened(cause)}"
    unknown = "whether TiKV still saves the log is unknown"
    end = stamp(since + timedelta(seconds=grace))
    await _write_report(ctx, watched, since, f"{what}; {unknown}; the Backup becomes Failed at {end}{remark}")
    command = log_backups.due_command(ctx.model.spec, ctx.status)
    if lasted < grace or log_backups.entry(ctx.status, command).get("phase") == FAILED:
        return None
    message = f"{what}, for longer than {duration.go_text(grace)}; {unknown}; make PD reachable for the operator"
    return LogCondition(command, FAILED, _REASON, message)


async def end(ctx: JobOwner[Backup], watched: Watched) -> None:
    """Note a read that has succeeded. Raises RequeueError, ApiError, TransportError."""
    watched.unreadable_since = None
    if _reported_since(ctx):
        now = ctx.status
        await ctx.write(with_condition(now, LOG_STATE_UNREADABLE, ctx.now, "Readable", is_true=False, keeps_phase=True))


def grace_period(annotations: Mapping[str, str]) -> tuple[float, str]:
    """The seconds without an answer after which a log backup has failed, and a remark on an unusable annotation."""
    text = annotations.get(GRACE)
    if text is None:
        return _GRACE, ""
    try:
        found = duration.seconds(text)
    except ValueError:
        found = 0.0
    if found > 0:
        return found, ""
    return _GRACE, f" (annotation {GRACE}: {shortened(text)!r} is no positive duration such as 24h, so 168h apply)"


def _reported_since(ctx: JobOwner[Backup]) -> datetime | None:
    condition = condition_of(ctx.status.get("conditions") or (), LOG_STATE_UNREADABLE)
    return parse_time(str(condition.get("lastTransitionTime") or "")) if condition.get("status") == "True" else None


async def _write_report(ctx: JobOwner[Backup], watched: Watched, since: datetime, message: str) -> None:
    """Write the condition if its message has changed; a changing cause costs one write in ten minutes."""
    now, clock = ctx.status, ctx.runtime.clock.now()
    after = with_condition(now, LOG_STATE_UNREADABLE, since, _REASON, message, keeps_phase=True)
    is_new = _reported_since(ctx) is None
    if after == now or (not is_new and clock < watched.next_report):
        return
    watched.next_report = clock + _UNREPORTED
    await ctx.write(after)
    if is_new:
        await ctx.warn(LOG_STATE_UNREADABLE, _REASON, message)
