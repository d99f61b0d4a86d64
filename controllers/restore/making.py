"""The Job of a restore or an import, and of the prune after a failure (backup.md 4.3, 4.4).

Scheduled → Running → Complete, or Failed → (prune: afterFailed) PruneScheduled → PruneRunning → PruneComplete
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from apis.backup_shared import BRConfig
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from apis.validation.backups import validate_restore
from controllers.job_owners import status
from controllers.job_owners.files import BEING_REMOVED, being_removed, everything, readable
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import (
    built,
    cluster,
    ensure_claim,
    give_up,
    no_longer_invalid,
    own_job,
    refuse,
    schedule,
    serving_cluster,
    with_lacking_access,
)
from controllers.job_owners.starting import await_start
from controllers.restore import log_range
from controllers.restore.point_in_time import wait_for_gc_off
from kube.actions import Decision
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, Object, condition_of
from kube.resources import BACKUPS, JOBS
from member.backups import jobs, pods
from member.backups.environment import BadJob
from member.backups.jobs import job_names
from member.backups.naming import prune_job_name, restore_job_name
from member.observed.restores import JOB_FAILED
from member.outcome import Failed, NotDone, Outcome, Wait, Waiting

Build: TypeAlias = Callable[[TidbCluster | None], Decision[Json]]
"""Builds the Job for a cluster; see `prerequisites.Build`."""
Start: TypeAlias = Callable[[TidbCluster | None], Decision[NotDone | None]]
"""Creates the Job, and writes that into the status."""

_LOOK_AGAIN = 10.0


async def sync(ctx: JobOwner[Restore]) -> Outcome | None:
    """Take the next step of a Restore. Raises ApiError, TransportError."""
    now = ctx.status
    if ctx.owner.metadata.deletion_timestamp or status.holds(now, status.COMPLETE):
        return None
    if status.holds(now, status.FAILED):
        return await after_failure(ctx)
    name = restore_job_name(ctx.name)
    job = ctx.cached_job(name)
    if job is not None and pods.finished(body := job.decode()) == "Failed":
        await ctx.say(status.FAILED, "AlreadyFailed", f"Job {name} has failed: {_why(now, body)}")
        return await after_failure(ctx)
    if (done := ctx.complete_job(name)) is not None:
        return ctx.await_result(done) or await ended_silently(ctx, name)
    if status.holds(now, status.SCHEDULED) or status.holds(now, status.RUNNING):
        return await ctx.look_for(name) or await await_start(ctx, name)
    build = partial(_built, ctx)
    return await make(ctx, name, build, lambda tc: schedule(ctx, name, lambda: build(tc), JOB_FAILED))


async def ended_silently(ctx: JobOwner[Restore], name: str) -> Outcome | None:
    """Write Complete, because another client has replaced the status. In v1.6, TiKV keeps its garbage forever then."""
    message = f"Job {name} has ended well; another client has removed the result of its pod from the status"
    await ctx.say(status.COMPLETE, "StatusReplaced", message)
    return None


def _why(now: Json, job: Json) -> str:
    """The reason why a Job has failed, and the message of its last pod, if any."""
    condition = condition_of(now.get("conditions") or (), status.RETRY_FAILED)
    reason = str(pods.condition_of_job(job, "Failed").get("reason") or "")
    return "; ".join(
        filter(None, (reason, str(condition.get("message") or "") if condition.get("status") == "True" else ""))
    )


async def make(ctx: JobOwner[Restore], name: str, build: Build, start: Start) -> Outcome | None:
    """`start` the Job `name` from `build` if the files to restore are there and the cluster serves.

    Raises ApiError, TransportError.
    """
    if problems := validate_restore(ctx.model):
        await refuse(ctx, problems)
        return None
    tc = await cluster(ctx, ctx.model.spec.br) if ctx.model.spec.br else None
    if isinstance(tc, NotDone):
        return tc
    ready = await _ready(ctx, tc, everything(ctx, BACKUPS))
    if ready is None or isinstance(ready, NotDone):
        return ready
    wait = None
    if ctx.model.spec.restore_mode == "pitr" and ready.tc is not None:
        wait = await _prepare_tikv(ctx, name, build, ready.tc)
    return wait or await start(ready.tc)


@dataclass(frozen=True, slots=True)
class _Ready:
    """The cluster to restore into, which serves; None for an import."""

    tc: TidbCluster | None


async def _ready(
    ctx: JobOwner[Restore], known: TidbCluster | None, backups: Sequence[Object]
) -> _Ready | NotDone | None:
    """The cluster once the files are there and it serves, None for a spec that it cannot obey.

    `backups` are all Backups, read live.
    """
    spec, is_to_point = ctx.model.spec, ctx.model.spec.restore_mode == "pitr"
    log = log_range.obstacles(ctx.model, list(readable(backups))) if is_to_point else []
    too_old = validate_restore(ctx.model, pods.tikv_version(known)) if known is not None else []
    if problems := too_old or (() if isinstance(log, Wait) else log):
        await refuse(ctx, problems)
        return None
    await no_longer_invalid(ctx)
    tc = await serving_cluster(ctx, spec.br, spec, spec.to) if spec.br else None
    if isinstance(tc, NotDone):
        return tc
    if wait := await _await_files(ctx, backups, log if isinstance(log, Wait) else None):
        return wait
    return _Ready(tc)


async def _await_files(ctx: JobOwner[Restore], backups: Sequence[Object], log: Wait | None) -> NotDone | None:
    """The wait for the log to be written, or the failure if the files are being removed."""
    spec = ctx.model.spec
    if going := being_removed(backups, (spec, spec.pitr_full_backup_storage_provider)):
        message = f"{going} is being deleted with the files to restore; restore another one, and delete this Restore"
        return await give_up(ctx, BEING_REMOVED, message)
    if log is None:
        return None
    return Waiting("WaitingForLog", with_lacking_access(ctx, log.what, spec, spec.to), _LOOK_AGAIN)


async def _prepare_tikv(ctx: JobOwner[Restore], job: str, build: Build, tc: TidbCluster) -> NotDone | None:
    """The wait for TiKV to restart without garbage collection, after checking that the Job can be created.

    Raises ApiError, TransportError.
    """
    for lacking in (await own_job(ctx, job, "JobNameTaken"), await built(ctx, lambda: build(tc))):
        if isinstance(lacking, Failed):
            return lacking
    return await wait_for_gc_off(ctx, tc)


async def _built(ctx: JobOwner[Restore], tc: TidbCluster | None) -> Json:
    """The Job; for an import, its claim is created too. Raises BadJob, ApiError, TransportError."""
    spec = ctx.model.spec
    secrets = ctx.secrets(pods.secret_names(spec, spec.to, tc))
    if tc is not None:
        return jobs.restore_job(ctx.model, tc, secrets, ctx.settings)
    job = jobs.import_job(ctx.model, secrets, ctx.settings)
    await ensure_claim(ctx, jobs.import_claim(ctx.model))
    return job


async def after_failure(ctx: JobOwner[Restore]) -> Outcome | None:
    """Remove the remains of a failed restore from the cluster, if the spec requests it."""
    now, br = ctx.status, ctx.model.spec.br
    if br is None or ctx.model.spec.prune != "afterFailed" or ctx.model.spec.restore_mode == "volume-snapshot":
        return None
    if status.holds(now, status.PRUNE_COMPLETE) or status.holds(now, status.PRUNE_FAILED):
        return None
    if not _has_ended(ctx):
        return None  # the end of the Job causes an event
    there = ctx.live_job(prune_job_name(ctx.name))
    return await _look_after(ctx, there.decode()) if there is not None else await _begin_prune(ctx, br)


async def _begin_prune(ctx: JobOwner[Restore], br: BRConfig) -> Outcome | None:
    if wait := await ctx.await_pods(prune_job_name(ctx.name)):
        return wait
    if not status.holds(ctx.status, status.PRUNE_SCHEDULED):
        await ctx.say(status.PRUNE_SCHEDULED, "RestoreFailedPruneScheduled")
    tc = await cluster(ctx, br)
    if isinstance(tc, NotDone):
        return tc
    if wait := ctx.outdated():
        return wait
    await _make_prune(ctx, tc)
    return None


def _has_ended(ctx: JobOwner[Restore]) -> bool:
    """True if no pod restores and none will follow a failed one (`backoffLimit`). v1.6 prunes during the restore."""
    found = [ctx.live_job(name) for name in job_names(ctx.model)]
    return all(job is None or not ctx.controls(job) or pods.finished(job.decode()) for job in found)


async def _make_prune(ctx: JobOwner[Restore], tc: TidbCluster) -> None:
    spec = ctx.model.spec
    try:
        job = jobs.prune_job(ctx.model, tc, ctx.secrets(pods.secret_names(spec, spec.to, tc)), ctx.settings)
        await ctx.create(JOBS, job)
    except BadJob as error:
        await ctx.say(status.PRUNE_FAILED, error.reason, str(error))
    except AlreadyExists:
        return  # created by another process: its events enqueue the Restore
    except ApiError as error:
        message = f"Job {prune_job_name(ctx.name)} could not be made: {error.message}"
        await ctx.say(status.PRUNE_FAILED, "CreateJobFailed", message)


async def _look_after(ctx: JobOwner[Restore], job: Json) -> Outcome | None:
    """Follow the pruning Job, and report a failure that its pod has not reported; v1.6 ignores failures."""
    name = job["metadata"]["name"]
    if pods.finished(job) == "Failed":
        why = pods.condition_of_job(job, "Failed").get("reason") or ""
        await ctx.say(status.PRUNE_FAILED, "AlreadyFailed", f"Job {name} has failed: {why}")
        return None
    return await await_start(ctx, name, status.PRUNE_SCHEDULED, is_recreated=True)
