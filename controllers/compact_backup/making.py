"""The Job of a compaction: its creation, its progress and its end (backup.md 6).

Kubernetes restarts failed pods up to `maxRetryTimes`. The operator retries the creation of the Job, and recreates a Job
that the user deletes.
"""

from collections.abc import Sequence

from apis import log_backups, tso
from apis.backups import Backup
from apis.compact_backups import SHARDED, CompactBackup
from apis.problem import Problem
from apis.validation.backups import validate_compact
from controllers.backup.chains import bounds, decisive, logs_at, shown, until_reached
from controllers.compact_backup import status
from controllers.job_deletion import JOB_TERMINATING, job_terminating
from controllers.job_owners.files import BEING_REMOVED, being_removed, everything, readable
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import cluster, job_of_others, with_lacking_access
from controllers.job_owners.starting import LOOK_AGAIN, REASON, what_keeps_it
from controllers.job_owners.status import COMPLETE, FAILED, INVALID, PREPARE, RETRY_FAILED, SCHEDULED
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, Object
from kube.resources import BACKUPS, JOBS
from kube.server_version import server_version
from member.backups import pods
from member.backups.environment import BadJob, secret_names
from member.backups.jobs import compaction_job
from member.outcome import Done, NotDone, Outcome, Wait, Waiting
from member.polling import time_left

_SHARDS_SINCE = (1, 29)
"""The Kubernetes version whose Jobs retry each index by itself (CMP-6)."""
_LOG_AGAIN = 10.0
"""Seconds until the operator checks the progress of a log again, which causes no event."""


async def sync(ctx: JobOwner[CompactBackup]) -> Outcome | None:
    """Take the next step of a CompactBackup. Raises ApiError, TransportError."""
    if ctx.owner.metadata.deletion_timestamp or ctx.status.get("state") in status.ENDED:
        return None
    job = ctx.cached_job(ctx.name) or ctx.live_job(ctx.name)
    if job is not None:
        return await _look_after(ctx, job)
    if problems := validate_compact(ctx.model):
        await ctx.say(INVALID, "InvalidSpec", "; ".join(map(str, problems)))
        return None
    if not ctx.status.get("state"):
        await ctx.say(SCHEDULED)
    if await _is_given_up(ctx):
        return None
    if rest := status.due_in(ctx.status, ctx.now):
        return Waiting("RetryPending", status.last_failure(ctx.status), rest)
    return await _begin(ctx)


async def _begin(ctx: JobOwner[CompactBackup]) -> Outcome | None:
    """Create the Job once the log has the span."""
    backups = everything(ctx, BACKUPS)
    lacking = obstacle(ctx.model, list(readable(backups)))
    if isinstance(lacking, Problem):
        await ctx.say(INVALID, "InvalidSpec", str(lacking))
        return None
    if isinstance(lacking, Wait):
        return Waiting("WaitingForLog", with_lacking_access(ctx, lacking.what, ctx.model.spec, None), _LOG_AGAIN)
    if wait := await ctx.await_pods(ctx.name):
        return wait
    return None if await _is_too_much_for_kubernetes(ctx) else await _make(ctx, backups)


async def _is_too_much_for_kubernetes(ctx: JobOwner[CompactBackup]) -> bool:
    """True if this Kubernetes cannot run shards; then Failed is written into the status (CMP-6)."""
    if ctx.model.spec.mode != SHARDED or (version := server_version(ctx.runtime.client)) >= _SHARDS_SINCE:
        return False
    needed, found = (".".join(map(str, each)) for each in (_SHARDS_SINCE, version))
    message = f'spec.mode: "{SHARDED}": needs Kubernetes {needed}, and this is {found}; remove the mode'
    await ctx.say(FAILED, "KubernetesTooOld", message)
    return True


async def _is_given_up(ctx: JobOwner[CompactBackup]) -> bool:
    """True if there are no retries left; then Failed is written into the status."""
    most = ctx.model.spec.max_retry_times
    if not status.is_given_up(ctx.status, most):
        return False
    await ctx.say(FAILED, "AlreadyFailed", f"tried again {most} times: {status.last_failure(ctx.status)}")
    return True


async def _look_after(ctx: JobOwner[CompactBackup], job: Object) -> Outcome | None:
    """Follow the Job. Its pods report the progress, unless they all failed or none has started."""
    if job.metadata.deletion_timestamp:
        return job_terminating(ctx.name)
    if not ctx.controls(job):
        return await _tried(ctx, f"{job_of_others('CompactBackup', job)}, or rename the CompactBackup")
    body = job.decode()
    await ctx.write(status.with_indexes(ctx.status, body))
    if ended := pods.finished(body):
        return await _ended(ctx, body, ended)
    if ctx.status.get("state") in (None, "", SCHEDULED, PREPARE):
        # if the state is not PREPARE, a process crashed right after it created the Job
        is_late = not time_left(job.metadata.creation_timestamp or "", LOOK_AGAIN, ctx.now)
        trouble = what_keeps_it(ctx, ctx.name) if is_late else ""
        await ctx.say(PREPARE, message=trouble)
        return Waiting(REASON, trouble, LOOK_AGAIN) if trouble else Done(retry_after=LOOK_AGAIN)
    return None


async def _ended(ctx: JobOwner[CompactBackup], job: Json, ended: str) -> Outcome | None:
    """Write the end of the Job. No pod reports it for all shards, and another client may have replaced the status."""
    is_sharded = ctx.model.spec.mode == SHARDED
    if ended == COMPLETE:
        wait = None if is_sharded else ctx.await_result(job)
        if wait is None:
            await ctx.write(status.with_state(ctx.status, COMPLETE, ctx.now))
        return wait
    why = pods.condition_of_job(job, FAILED).get("reason") or ""
    last = str(ctx.status.get("message") or "") if is_sharded else status.last_failure(ctx.status)
    shards = f"; failed shards, from 0: {ctx.status.get('failedIndexes')}" if ctx.status.get("failedIndexes") else ""
    await ctx.say(FAILED, "AlreadyFailed", f"Job {ctx.name} has failed: {why}{shards}" + (f"; {last}" if last else ""))
    return None


async def _make(ctx: JobOwner[CompactBackup], backups: Sequence[Object]) -> Outcome | None:
    try:
        job = await _built(ctx, backups)
        if isinstance(job, NotDone):
            return job
        if wait := ctx.outdated():
            return wait
        await ctx.create(JOBS, job)
    except AlreadyExists:
        message = f"waiting for the operator's cache to show Job {ctx.name}, which exists already"
        return Waiting("CacheOutdated", message, JOB_TERMINATING)
    except BadJob as error:
        return await _tried(ctx, f"{error.reason}: {error}")
    except ApiError as error:
        return await _tried(ctx, f"Job {ctx.name} could not be made: {error.message}")
    await ctx.say(PREPARE)
    return None


async def _tried(ctx: JobOwner[CompactBackup], why: str) -> Outcome | None:
    """Record a failure; return the wait for the next try, None if there are no retries left."""
    if await _is_given_up(ctx):
        return None
    if rest := status.due_in(ctx.status, ctx.now):
        return Waiting("RetryPending", why, rest)
    await ctx.warn(RETRY_FAILED, "CreateCompactJobFailed", why)
    await ctx.write(status.with_retry(ctx.status, ctx.now, why))
    return Waiting("RetryPending", why, status.due_in(ctx.status, ctx.now) or JOB_TERMINATING)


async def _built(ctx: JobOwner[CompactBackup], backups: Sequence[Object]) -> Json | NotDone:
    """The Job, or the wait for its cluster. Raises BadJob, ApiError, TransportError."""
    spec = ctx.model.spec
    if spec.br is None:
        raise BadJob("InvalidSpec", "spec.br is required; name the TidbCluster in spec.br.cluster")
    if going := being_removed(backups, [spec]):
        raise BadJob(BEING_REMOVED, f"{going} is being deleted with the files to compact; delete this one, too")
    tc = await cluster(ctx, spec.br)
    if isinstance(tc, NotDone):
        return tc
    return compaction_job(ctx.model, tc, ctx.secrets(secret_names(spec, None)), ctx.settings)


def obstacle(compact: CompactBackup, backups: Sequence[Backup]) -> Problem | Wait | None:
    """The problem if the log will never have any part of the span, or the wait until it has the whole span (6).

    tikv-ctl compacts what it finds and reports success, also for a part of the log that is not written yet.

    None if a log has the span, as far as its Backup reports, or the Backup that wrote it is unknown. The spec must be
    valid, and all objects must have their defaults.
    """
    logs = (backup for backup in logs_at(backups, compact.spec) if bounds(backup)[0])
    return decisive([_missing(compact, backup) for backup in logs])


def _missing(compact: CompactBackup, log: Backup) -> Problem | Wait | None:
    spec, phase, of = compact.spec, log.status.phase, f"the log of Backup {log.metadata.namespace}/{log.metadata.name}"
    start, end = tso.parse(spec.start_ts), tso.parse(spec.end_ts) if spec.end_ts else None
    begins, reached = bounds(log)
    if end is not None and end < begins:
        return Problem("spec.endTs", spec.end_ts, f"is before {of} begins, at {shown(begins)}; use a later one")
    if phase == log_backups.STOPPED:
        if start <= reached:
            return None
        return Problem("spec.startTs", spec.start_ts, f"is after {of} ends, at {shown(reached)}; use an earlier one")
    field, least = ("spec.startTs", start) if end is None else ("spec.endTs", end)
    return None if least <= reached else until_reached(log, field, least)
