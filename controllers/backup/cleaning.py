"""Deletion of a Backup: its files are removed according to `cleanPolicy`, then its finalizer (backup.md 3.9).

    Jobs of the Backup end → no other Backup or Restore needs the files → Job `clean-<name>` → Clean → no finalizer

A log backup is stopped first (`stopping`).

Only that Job removes files. The operator creates it only after live reads show that the Backup still asks for it, and
that no other object uses the directory.
"""

import structlog

from apis.backups import Backup
from controllers.backup import stopping
from controllers.backup.kernel import Kernel
from controllers.backup.sharing import user_of
from controllers.job_deletion import job_terminating
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import job_of_others, make
from controllers.job_owners.starting import await_start
from kube.actions import RemoveFinalizer
from kube.errors import Forbidden
from kube.objects import Json, Object, condition_of
from kube.resources import BACKUPS, NAMESPACES
from member.backups import jobs, pods
from member.backups.environment import secret_names
from member.backups.naming import FINALIZER, backup_job_name, clean_job_name
from member.outcome import NotDone, Outcome, Waiting
from member.polling import time_left

log = structlog.get_logger(__name__)

_LOOK_AGAIN = 30.0
"""Seconds until the operator checks again if another object still needs the files."""
_PAUSE = 300.0
"""Seconds before a failed cleaning is retried; v1.6 never retries."""


async def sync(ctx: JobOwner[Backup], kernel: Kernel) -> Outcome | None:
    """Take the next step of deleting a Backup. Raises ApiError, TransportError."""
    if FINALIZER not in ctx.owner.metadata.finalizers:
        return None
    if wait := ctx.outdated():
        # by now the user may keep the files, or have another log backup of this name
        return wait
    if ctx.model.spec.backup_mode == "log":
        return await _sync_log(ctx, kernel)
    wait = None if _is_done(ctx) else await _await_end(ctx, [backup_job_name(ctx.name)])
    return wait or await _finish(ctx)


async def _sync_log(ctx: JobOwner[Backup], kernel: Kernel) -> Outcome | None:
    if wait := await _await_end(ctx, stopping.job_names(ctx.name)):
        return wait
    if _namespace_goes(ctx):
        if wait := await stopping.end_elsewhere(ctx, kernel):
            return wait
        await _let_go(ctx, str(ctx.status.get("backupPath") or ""))
        return None
    return await stopping.sync(ctx, kernel) or await _finish(ctx)


async def _finish(ctx: JobOwner[Backup]) -> Outcome | None:
    if not _is_done(ctx):
        return await _clean_up(ctx)
    ctx.became(await RemoveFinalizer(BACKUPS, ctx.owner, FINALIZER))
    return None


def _is_done(ctx: JobOwner[Backup]) -> bool:
    """True if the files are removed, or are to be kept."""
    return _retains(ctx) or status.holds(ctx.status, status.CLEAN)


async def _clean_up(ctx: JobOwner[Backup]) -> Outcome | None:
    there = ctx.live_job(clean_job_name(ctx.name))
    if there is not None:
        return await _look_after(ctx, there)
    path = str(ctx.status.get("backupPath") or "")
    if not path:
        await ctx.say(status.CLEAN)
        return await _finish(ctx)
    if _namespace_goes(ctx):
        await _let_go(ctx, path)
        return None
    if user := user_of(ctx, path) or await _announced(ctx, path):
        message = f"{path} is kept, since {user} needs it; the files are removed when that one is gone"
        await ctx.say(status.CLEAN_FAILED, "FilesInUse", message)
        return Waiting("FilesInUse", message, _LOOK_AGAIN)
    return await _clean(ctx)


async def _announced(ctx: JobOwner[Backup], path: str) -> str:
    """Announce the removal in the status, for Restores to see (`files.being_removed`); return any new user."""
    if condition_of(ctx.status.get("conditions") or (), status.CLEAN):
        return ""
    await ctx.say(status.CLEAN, is_true=False)
    return user_of(ctx, path)


def _retains(ctx: JobOwner[Backup]) -> bool:
    """True if the policy keeps the files; the user may have changed it since the finalizer was added.

    A log backup counts as failed only if it never began: what it saved before a failure can be restored.
    """
    policy, is_log = ctx.model.spec.clean_policy, ctx.model.spec.backup_mode == "log"
    failed = not ctx.status.get("commitTs") if is_log else status.holds(ctx.status, status.FAILED)
    return policy == "Retain" or (policy == "OnFailure" and not failed)


async def _await_end(ctx: JobOwner[Backup], names: list[str]) -> Waiting | None:
    """Delete the Jobs of the Backup that still write; return the wait for them, None when all have ended."""
    running = [name for name in names if not await _has_ended(ctx, name)]
    return job_terminating(", ".join(running)) if running else None


async def _has_ended(ctx: JobOwner[Backup], name: str) -> bool:
    live = ctx.live_job(name)
    if live is None or not ctx.controls(live):
        return True
    if pods.finished(live.decode()) and not live.metadata.deletion_timestamp:
        return True
    return await ctx.delete_job(name)


async def _look_after(ctx: JobOwner[Backup], job: Object) -> Outcome | None:
    """Follow the cleaning Job. A failed one is deleted after a pause, and another one follows."""
    if job.metadata.deletion_timestamp:
        return job_terminating(job.metadata.name)
    if not ctx.controls(job):
        message = f"{job_of_others('Backup', job)}, and the files are removed"
        await ctx.say(status.CLEAN_FAILED, "ForeignJob", message)
        return Waiting("ForeignJob", message, _LOOK_AGAIN)
    body = job.decode()
    if pods.finished(body) == "Complete":
        return await _ended_without_a_word(ctx, body)
    if pods.finished(body) != "Failed":
        return await await_start(ctx, job.metadata.name, status.CLEAN, is_recreated=True)
    failed = pods.condition_of_job(body, "Failed")
    if not _is_explained(ctx):
        message = f"Job {job.key} has failed: {failed.get('message') or failed.get('reason')}; look at its pods' logs"
        await ctx.say(status.CLEAN_FAILED, "CleanBackupDataFailed", message)
    if rest := time_left(str(failed.get("lastTransitionTime") or ""), _PAUSE, ctx.now):
        return Waiting("RetryPending", f"Job {job.key} has failed; the next one follows in a while", rest)
    await ctx.delete_job(job.metadata.name)
    return job_terminating(job.metadata.name)


async def _ended_without_a_word(ctx: JobOwner[Backup], job: Json) -> Outcome | None:
    """Handle a Complete Job whose pod has not written Clean: wait for the result, then recreate the Job."""
    if wait := ctx.await_result(job):
        return wait
    name = job["metadata"]["name"]
    message = f"Job {name} has ended without saying that the files are gone; the operator recreates it"
    await ctx.say(status.CLEAN_FAILED, "CleanBackupDataFailed", message)
    await ctx.delete_job(name)
    return job_terminating(name)


def _is_explained(ctx: JobOwner[Backup]) -> bool:
    """True if the pod itself has written why it failed."""
    condition = condition_of(ctx.status.get("conditions") or (), status.CLEAN_FAILED)
    return condition.get("status") == "True" and ctx.status.get("phase") == status.CLEAN_FAILED


async def _clean(ctx: JobOwner[Backup]) -> NotDone | None:
    async def build() -> Json:
        return jobs.clean_job(ctx.model, ctx.secrets(secret_names(ctx.model.spec, None)), ctx.settings)

    if lacking := await make(ctx, build, "CreateCleanJobFailed"):
        return lacking
    await ctx.say(status.CLEAN, is_true=False)
    return None


def _namespace_goes(ctx: JobOwner[Backup]) -> bool:
    """True if the namespace is being deleted; False if the operator may not read it."""
    try:
        found = ctx.runtime.client.find(NAMESPACES, ctx.namespace)
    except Forbidden:
        return False
    return found is not None and found.metadata.deletion_timestamp is not None


async def _let_go(ctx: JobOwner[Backup], path: str) -> None:
    """Remove the finalizer, because no Job can be created in a namespace that is being deleted; v1.6 waits forever."""
    log.warning("the namespace is being deleted, so that no Job can remove the files: remove them yourself", path=path)
    ctx.became(await RemoveFinalizer(BACKUPS, ctx.owner, FINALIZER))
