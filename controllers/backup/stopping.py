"""A log backup that is being deleted is stopped first: in the cluster it would go on without end (backup.md 3.9).

    its Jobs end → the task is gone, or Job `stop-<name>` stops it → its files, as those of any Backup (`cleaning`)

That there is nothing to stop is seen in the cluster. v1.6 goes on when the Job has failed, and removes files that are
still being written; and it stays for ever where the TidbCluster is gone.

In a namespace that is being deleted no Job can be made. The operator then removes the task from PD itself, where the
cluster is in another namespace: v1.6 leaves it, and no log backup can begin in that cluster any more.
"""

import structlog

from apis import backup_conditions
from apis.backups import Backup
from apis.log_backups import COMMANDS, STOP, STOPPED
from controllers.backup.kernel import Kernel
from controllers.backup.sharing import has_namesake
from controllers.job_deletion import JOB_GOING, job_going
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import cluster, give_up, job_of_others, make
from controllers.job_owners.starting import await_start
from dataplane.log_backups import LogTask
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS
from member.backups import jobs, pods
from member.backups.naming import log_job_name, stop_job_name
from member.outcome import Outcome, Waiting
from member.polling import seconds_since, time_left

log = structlog.get_logger(__name__)

_REASON = "StopLogBackupJobFailed"
_LOOK_AGAIN = 30.0
_SOON = 10.0
_PATIENCE = 300.0
"""Seconds for which a namespace that is being deleted is held up while PD does not answer."""
_PAUSE = 300.0
"""Seconds for which a stop that has failed rests before it is tried again."""


def job_names(name: str) -> list[str]:
    """The Jobs of all sub-commands; v1.6 forgets those that pause and resume."""
    return [log_job_name(name, command) for command in COMMANDS]


def sync(ctx: JobOwner[Backup], kernel: Kernel) -> Outcome | None:
    """Have a log backup stopped whose own Jobs have ended; None once it is.

    Raises RequeueError, ApiError, TransportError.
    """
    there = ctx.live_job(stop_job_name(ctx.name))
    ended = pods.finished(there.decode()) if there and ctx.controls(there) else ""
    if ctx.status.get("phase") == STOPPED or ended == "Complete":
        return None
    br = ctx.model.spec.br
    found = _cluster(ctx) and ctx.tidb_cluster(br.cluster_namespace, br.cluster) if br else None
    if found is None:
        return None
    if there is not None and ctx.controls(there) and (ended != "Failed" or there.metadata.deletion_timestamp):
        return await_start(ctx, there.metadata.name, is_made_again=True) or _stopping(ctx, _LOOK_AGAIN)
    if _is_unknown(ctx, kernel.ask(found, ctx.name)):
        return None
    if there is None:
        return _make(ctx)
    return _again(ctx, there)


def end_elsewhere(ctx: JobOwner[Backup], kernel: Kernel) -> Waiting | None:
    """End the task of a log backup whose namespace is being deleted, in a cluster of another namespace.

    None once nothing is left to do: it has ended, or its cluster tells of it in an event. Raises ApiError,
    TransportError, LeaseExpired.
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
    if task is not None and kernel.end(found, ctx.name):
        path = str(ctx.status.get("backupPath") or "")
        message = f"{whose} was ended: its task {ctx.name} was removed from PD; its files stay in {path}"
        ctx.runtime.recorder.event(found, NORMAL, "LogBackupEnded", message)
        return None
    if seconds_since(ctx.owner.metadata.deletion_timestamp or "", ctx.now) < _PATIENCE:
        message = f"waiting for PD of TidbCluster {found.key} to answer, from which task {ctx.name} is to be removed"
        return Waiting("LogTaskRemains", message, _SOON)
    message = (
        f"{whose} still runs here, since PD did not answer: it holds back garbage collection, and no other log backup "
        f"can begin; when PD answers, run `br log stop --task-name={ctx.name}`"
    )
    ctx.runtime.recorder.event(found, WARNING, "LogTaskRemains", message)
    log.warning("a log backup goes on without its Backup", task=ctx.name, cluster=found.key)
    return None


def _is_unknown(ctx: JobOwner[Backup], task: LogTask | None) -> bool:
    """Whether the cluster does not log for this Backup; a task of its name may be that of another namespace."""
    if task is not None and not task.exists:
        return True
    return not ctx.status.get("commitTs") and has_namesake(ctx)


def _cluster(ctx: JobOwner[Backup]) -> Object | None:
    """The cluster that logs, read live: where it is gone, so is the task."""
    br = ctx.model.spec.br
    if br is None:
        return None
    return ctx.runtime.client.find(TIDB_CLUSTERS, br.cluster, br.cluster_namespace)


def _stopping(ctx: JobOwner[Backup], seconds: float) -> Waiting:
    """The wait for the Job; its end is an event."""
    return Waiting("StoppingLogBackup", f"waiting for Job {stop_job_name(ctx.name)} to stop the log backup", seconds)


def _make(ctx: JobOwner[Backup]) -> Waiting:
    """Make the Job, and look at everything anew before anything else is done."""
    assert ctx.model.spec.br is not None  # there is a cluster
    tc = cluster(ctx, ctx.model.spec.br)

    def build() -> Json:
        secrets = ctx.secrets(pods.secret_names(ctx.model.spec, ctx.model.spec.from_, tc))
        return jobs.stop_job(ctx.model, tc, secrets, ctx.settings)

    make(ctx, build, _REASON)
    scheduled = backup_conditions.with_condition(ctx.status, status.SCHEDULED, ctx.now, command=STOP)
    ctx.write(scheduled)
    return _stopping(ctx, JOB_GOING)


def _again(ctx: JobOwner[Backup], job: Object) -> Waiting:
    """The Job has failed, or is another's: say so, and try again after a pause."""
    if not ctx.controls(job):
        give_up(ctx, _REASON, f"{job_of_others('Backup', job)}, and the log backup is stopped")
    failed = pods.condition_of_job(job.decode(), "Failed")
    where = f"TidbCluster {ctx.model.spec.br.cluster}" if ctx.model.spec.br else "the TidbCluster"
    message = (
        f"Job {job.key} has failed: {failed.get('message') or failed.get('reason')}; the files are kept until the log "
        f"backup is stopped: it is tried again, or run `br log stop --task-name={ctx.name}`, or delete {where}"
    )
    ctx.say(status.RETRY_FAILED, _REASON, message)
    if rest := time_left(str(failed.get("lastTransitionTime") or ""), _PAUSE, ctx.now):
        return Waiting(_REASON, message, min(rest, _LOOK_AGAIN))
    ctx.delete_job(job.metadata.name)
    return job_going(job.metadata.name)
