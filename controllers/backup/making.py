"""The Job of a snapshot or an export: its prerequisites, its creation, and its end (backup.md 3.5, 3.7)."""

from apis.backup_paths import backup_path, is_at
from apis.backups import Backup
from apis.images import knows_checkpoints
from apis.tidbcluster import TidbCluster
from apis.validation.backups import validate_backup
from controllers.backup import retry
from controllers.backup.sharing import user_of
from controllers.job_deletion import JOB_TERMINATING, job_terminating
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import (
    ensure_claim,
    no_longer_invalid,
    refuse,
    schedule,
    serving_cluster,
)
from controllers.job_owners.starting import await_start
from kube.actions import AddFinalizer
from kube.objects import Json
from kube.resources import BACKUPS
from member.backups import jobs, pods
from member.backups.naming import FINALIZER, backup_job_name
from member.outcome import NotDone, Outcome, Waiting


async def sync(ctx: JobOwner[Backup]) -> Outcome | None:
    """Take the next step of a Backup that is not being deleted. Raises ApiError, TransportError."""
    now = ctx.status
    if status.ended(now):
        await _protect(ctx)  # the policy may have changed
        return None
    name = backup_job_name(ctx.name)
    job = ctx.cached_job(name)
    if job is not None and pods.finished(body := job.decode()) == "Failed" and not job.metadata.deletion_timestamp:
        return await _failed(ctx, body)
    if retry.is_retrying(now):
        return await _try_again(ctx)
    if retry.is_recorded(now):
        return await _failed(ctx, None)
    return await _go_on(ctx, name)


async def _go_on(ctx: JobOwner[Backup], name: str) -> Outcome | None:
    """Follow the Job, which has not failed, or create it."""
    now = ctx.status
    if (done := ctx.complete_job(name)) is not None:
        return ctx.await_result(done) or await _ended_silently(ctx, name)
    if any(status.holds(now, kind) for kind in (status.SCHEDULED, status.RUNNING, status.PREPARE)):
        return await ctx.look_for(name) or await await_start(ctx, name)
    return await _make(ctx)


async def _ended_silently(ctx: JobOwner[Backup], name: str) -> Outcome | None:
    """Write Failed, because another client has replaced the status: without commitTs the backup is not usable."""
    message = (
        f"Job {name} has ended well, and another client has removed the result of its pod from the status; the "
        f"files are in {backup_path(ctx.model.spec)}, and stay"
    )
    await ctx.say(status.FAILED, "StatusReplaced", message)
    return None


async def _failed(ctx: JobOwner[Backup], job: Json | None) -> Outcome | None:
    """Handle a Job that failed without a report of its pod: it crashed or was evicted. `job` is None if it is gone."""
    now, policy = ctx.status, ctx.model.spec.backoff_retry_policy
    if problems := validate_backup(ctx.model):
        await refuse(ctx, problems)
        return None
    if retry.is_retrying(now):
        return await _try_again(ctx)
    if job is not None and not retry.is_recorded(now):
        live = ctx.live_job(job["metadata"]["name"])
        if live is None or live.metadata.uid != job["metadata"]["uid"]:
            message = f"waiting for the operator's cache to show that Job {job['metadata']['name']} has been replaced"
            return Waiting("CacheOutdated", message, JOB_TERMINATING)
        await ctx.write(retry.with_record(now, job, policy, ctx.now))
        now = ctx.status
    decision = retry.decided(now, policy, ctx.now)
    if isinstance(decision, Waiting):
        return decision
    await ctx.report_trouble(now, decision)
    await ctx.write(decision)
    return await _try_again(ctx) if retry.is_retrying(decision) else None


async def _try_again(ctx: JobOwner[Backup]) -> Outcome | None:
    """Delete the failed Job and its pods, and then create the next one."""
    if not retry.has_gone(ctx.status):
        if not await ctx.delete_job(backup_job_name(ctx.name)):
            return job_terminating(backup_job_name(ctx.name))
        await ctx.write(retry.with_restart(ctx.status, ctx.now))
    return await _make(ctx)


async def _make(ctx: JobOwner[Backup]) -> Outcome | None:
    if problems := validate_backup(ctx.model):
        await refuse(ctx, problems)
        return None
    br = ctx.model.spec.br
    tc = await serving_cluster(ctx, br, ctx.model.spec, ctx.model.spec.from_) if br else None
    if isinstance(tc, NotDone):
        return tc
    if tc is not None and (problems := validate_backup(ctx.model, pods.tikv_version(tc))):
        await refuse(ctx, problems)
        return None
    await no_longer_invalid(ctx)
    if tc is not None and (user := _user_of_removed_files(ctx, tc)):
        message = (
            f"BR before v6.5.1 begins anew by removing all that is below {ctx.status['backupPath']}, and {user} needs "
            "some of it; make another Backup, with a prefix of its own"
        )
        await ctx.say(status.FAILED, "FilesInUse", message)
        return None
    name = backup_job_name(ctx.name)
    return await schedule(ctx, name, lambda: _built(ctx, tc), "CreateBackupJobFailed", lambda: _protect(ctx))


async def _protect(ctx: JobOwner[Backup]) -> None:
    """Add the finalizer, unless the policy retains the files."""
    if ctx.model.spec.clean_policy != "Retain":
        ctx.became(await AddFinalizer(BACKUPS, ctx.owner, FINALIZER))


def _user_of_removed_files(ctx: JobOwner[Backup], tc: TidbCluster) -> str:
    """A user of files that the next pod removes before BR starts again; empty if there is none, or it removes nothing.

    The first pod found the directory empty, but other Backups may have written there since.
    """
    path = str(ctx.status.get("backupPath") or "")
    removes = is_at(path, ctx.model.spec) and not knows_checkpoints(pods.tikv_version(tc))
    return user_of(ctx, path) if removes and ctx.live_job(backup_job_name(ctx.name)) is None else ""


async def _built(ctx: JobOwner[Backup], tc: TidbCluster | None) -> Json:
    """The Job; for an export, its claim is created too. Raises BadJob, ApiError, TransportError."""
    spec = ctx.model.spec
    secrets = ctx.secrets(pods.secret_names(spec, spec.from_, tc))
    if tc is not None:
        return jobs.snapshot_job(ctx.model, tc, secrets, ctx.settings)
    job = jobs.export_job(ctx.model, secrets, ctx.settings)
    await ensure_claim(ctx, jobs.export_claim(ctx.model))
    return job
