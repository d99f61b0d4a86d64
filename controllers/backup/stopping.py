"""The stop of a log backup that is being deleted: its task would run in the cluster forever (backup.md 3.9).

    its Jobs end → the task is gone, or Job `stop-<name>` stops it → its files are removed (`cleaning`)

The operator reads from the cluster whether it has a task to stop. v1.6 continues after a failure of the Job and removes
files that are still being written, and it waits forever if the TidbCluster is gone.

No Job can be created in a namespace that is being deleted. If the cluster is in another namespace, the operator then
removes the task from PD itself. v1.6 leaves the task, and that cluster can never begin a log backup again.
"""

import structlog

from apis import backup_conditions
from apis.backups import Backup
from apis.log_backups import COMMANDS, STOP, STOPPED
from controllers.backup.kernel import Kernel
from controllers.backup.sharing import has_namesake
from controllers.job_deletion import JOB_TERMINATING, job_terminating
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import cluster, give_up, job_of_others, make
from controllers.job_owners.starting import await_start
from dataplane.log_backups import LogTask
from kube.actions import Emit
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS
from member.backups import jobs, pods
from member.backups.naming import log_job_name, stop_job_name
from member.outcome import NotDone, Outcome, Waiting
from member.polling import seconds_since, time_left

log = structlog.get_logger(__name__)

_REASON = "StopLogBackupJobFailed"
_LOOK_AGAIN = 30.0
_SOON = 10.0
_PATIENCE = 300.0
"""Seconds for which the deletion of a namespace waits for PD to answer."""
_PAUSE = 300.0
"""Seconds before a failed stop is retried."""


def job_names(name: str) -> list[str]:
    """The names of the Jobs of all sub-commands; v1.6 omits pause and resume."""
    return [log_job_name(name, command) for command in COMMANDS]


async def sync(ctx: JobOwner[Backup], kernel: Kernel) -> Outcome | None:
    """Stop a log backup whose own Jobs have ended; None when it is stopped.

    Raises ApiError, TransportError.
    """
    there = ctx.live_job(stop_job_name(ctx.name))
    ended = pods.finished(there.decode()) if there and ctx.controls(there) else ""
    if ctx.status.get("phase") == STOPPED or ended == "Complete":
        return None
    br = ctx.model.spec.br
    found = _cluster(ctx) and ctx.tidb_cluster(br.cluster_namespace, br.cluster) if br else None
    if not isinstance(found, Object):
        return found
    if there is not None and ctx.controls(there) and (ended != "Failed" or there.metadata.deletion_timestamp):
        return await await_start(ctx, there.metadata.name, is_recreated=True) or _stopping(ctx, _LOOK_AGAIN)
    if _is_unknown(ctx, kernel.ask(found, ctx.name)):
        return None
    if there is None:
        return await _make(ctx)
    return await _again(ctx, there)


async def end_elsewhere(ctx: JobOwner[Backup], kernel: Kernel) -> Waiting | None:
    """End the task of a log backup whose namespace is being deleted, in a cluster of another namespace.

    None if nothing is left to do: the task has ended, or an event of the cluster reports that it remains. Raises
    ApiError, TransportError, LeaseExpired.
    """
    found = None if ctx.status.get("phase") == STOPPED else _cluster(ctx)
    if found is None or found.metadata.namespace == ctx.namespace:
        return None
    if not ctx.may_refer(found, found.metadata.namespace):
        log.warning("a log backup of a cluster that does not consent is left to itself", cluster=found.key)
        return None
    task = kernel.ask(found, ctx.name)
    if task is not None and _is_unknown(ctx, task):
        return None
    whose = f"log backup {ctx.owner.key}, whose namespace is being deleted,"
    if task is not None and await kernel.end(found, ctx.name):
        path = str(ctx.status.get("backupPath") or "")
        message = f"{whose} was ended: its task {ctx.name} was removed from PD; its files stay in {path}"
        await Emit(found, NORMAL, "LogBackupEnded", message)
        return None
    if seconds_since(ctx.owner.metadata.deletion_timestamp or "", ctx.now) < _PATIENCE:
        message = f"waiting for PD of TidbCluster {found.key} to answer, from which task {ctx.name} is to be removed"
        return Waiting("LogTaskRemains", message, _SOON)
    message = (
        f"{whose} still runs here, since PD did not answer: it holds back garbage collection, and no other log backup "
        f"can begin; when PD answers, run `br log stop --task-name={ctx.name}`"
    )
    await Emit(found, WARNING, "LogTaskRemains", message)
    log.warning("a log backup continues without its Backup", task=ctx.name, cluster=found.key)
    return None


def _is_unknown(ctx: JobOwner[Backup], task: LogTask | None) -> bool:
    """True if the cluster has no task of this Backup; a task of its name may belong to another namespace."""
    if task is not None and not task.exists:
        return True
    return not ctx.status.get("commitTs") and has_namesake(ctx)


def _cluster(ctx: JobOwner[Backup]) -> Object | None:
    """The cluster of the log backup, read live; None if it is gone, and the task with it."""
    br = ctx.model.spec.br
    if br is None:
        return None
    return ctx.runtime.client.find(TIDB_CLUSTERS, br.cluster, br.cluster_namespace)


def _stopping(ctx: JobOwner[Backup], seconds: float) -> Waiting:
    """The wait for the Job, whose end causes an event."""
    return Waiting("StoppingLogBackup", f"waiting for Job {stop_job_name(ctx.name)} to stop the log backup", seconds)


async def _make(ctx: JobOwner[Backup]) -> NotDone:
    """Create the Job; the next sync reads everything again before the next step."""
    assert ctx.model.spec.br is not None  # the caller has found its cluster
    tc = await cluster(ctx, ctx.model.spec.br)
    if isinstance(tc, NotDone):
        return tc

    async def build() -> Json:
        secrets = ctx.secrets(pods.secret_names(ctx.model.spec, ctx.model.spec.from_, tc))
        return jobs.stop_job(ctx.model, tc, secrets, ctx.settings)

    if lacking := await make(ctx, build, _REASON):
        return lacking
    scheduled = backup_conditions.with_condition(ctx.status, status.SCHEDULED, ctx.now, command=STOP)
    await ctx.write(scheduled)
    return _stopping(ctx, JOB_TERMINATING)


async def _again(ctx: JobOwner[Backup], job: Object) -> NotDone:
    """Report a Job that failed or has another owner, and retry after a pause."""
    if not ctx.controls(job):
        return await give_up(ctx, _REASON, f"{job_of_others('Backup', job)}, and the log backup is stopped")
    failed = pods.condition_of_job(job.decode(), "Failed")
    where = f"TidbCluster {ctx.model.spec.br.cluster}" if ctx.model.spec.br else "the TidbCluster"
    message = (
        f"Job {job.key} has failed: {failed.get('message') or failed.get('reason')}; the files are kept until the log "
        f"backup is stopped: it is tried again, or run `br log stop --task-name={ctx.name}`, or delete {where}"
    )
    await ctx.say(status.RETRY_FAILED, _REASON, message)
    if rest := time_left(str(failed.get("lastTransitionTime") or ""), _PAUSE, ctx.now):
        return Waiting(_REASON, message, min(rest, _LOOK_AGAIN))
    await ctx.delete_job(job.metadata.name)
    return job_terminating(job.metadata.name)
