"""Log backups: one Job for each sub-command that is due, and the progress that PD's etcd shows (backup.md 3.8).

Each sync reads the task in the cluster, if it is time to, and then starts the Job of the next sub-command. It accepts
an existing or ended Job of the Backup, whichever process created it.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from apis import log_backups, tso
from apis.backup_shared import BRConfig
from apis.backups import Backup
from apis.log_backups import COMPLETE, RUNNING, START, STOP, STOPPED, TRUNCATE, LogCondition
from apis.tidbcluster import TidbCluster
from apis.times import stamp
from apis.validation.backups import validate_backup
from controllers.backup import kernel_sync, unreadable
from controllers.backup.kernel import AGAIN, Kernel, Unreadable
from controllers.backup.sharing import log_backup_named, reader_of
from controllers.job_deletion import job_terminating
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import cluster, give_up, refuse, schedule, serving_cluster
from controllers.job_owners.starting import await_start
from kube.actions import AddFinalizer
from kube.objects import Json, Object, condition_of
from kube.resources import BACKUPS
from member.backups import jobs, pods
from member.backups.naming import FINALIZER, log_job_name
from member.outcome import Done, NotDone, Outcome, Waiting, in_time_for
from member.polling import time_left
from ports.foreign_text import shortened

_ACTIVE = (status.SCHEDULED, status.PREPARE, RUNNING)
_LOOK_AGAIN = 30.0
"""Seconds until the operator checks again if another object still reads the log."""
_CRASHED = "AlreadyFailed"
"""The reason of a failed Job whose pod has not reported the failure."""
_PAUSE = 300.0
"""Seconds before such a Job is recreated."""


async def sync(ctx: JobOwner[Backup], kernel: Kernel) -> Outcome | None:
    """Take the next step of a log backup that is not being deleted. Raises ApiError, TransportError."""
    _speak_for(ctx, log_backups.due(ctx.model.spec, ctx.status))
    if problems := validate_backup(ctx.model):
        await refuse(ctx, problems)
        return None
    if status.holds(ctx.status, status.INVALID):
        await ctx.write(status.with_condition(ctx.status, status.INVALID, ctx.now, "Corrected", is_true=False))
    if log_backups.is_in_sync(log_backups.due(ctx.model.spec, ctx.status), ctx.status) and _phase(ctx) == STOPPED:
        return None
    br = ctx.model.spec.br
    assert br is not None  # validation requires it
    tc = await cluster(ctx, br)
    if isinstance(tc, NotDone):
        return tc
    next_look = Done(retry_after=await _look(ctx, kernel))
    _speak_for(ctx, command := log_backups.due(ctx.model.spec, ctx.status))
    outcome = None if log_backups.is_in_sync(command, ctx.status) else await _carry_out(ctx, command, kernel)
    return in_time_for(outcome, next_look) if outcome else next_look


@dataclass(frozen=True, slots=True)
class _OfCommand:
    """A `WithCondition` that adds conditions to the status of a sub-command, together with `fields`."""

    command: str
    fields: Mapping[str, object]

    def __call__(
        self, status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
    ) -> Json:
        """See `WithCondition`; conditions of sub-commands are never False."""
        assert is_true
        return log_backups.with_command(status, LogCondition(self.command, kind, reason, message), now, self.fields)


def _speak_for(ctx: JobOwner[Backup], command: str) -> None:
    until = {"logTruncatingUntil": ctx.model.spec.log_truncate_until} if command == TRUNCATE else {}
    ctx.with_condition = _OfCommand(command, until)


def _phase(ctx: JobOwner[Backup]) -> str:
    return str(ctx.status.get("phase") or "")


# the state of the task in the cluster


async def _look(ctx: JobOwner[Backup], kernel: Kernel) -> float | None:
    """Write the checkpoint and other findings into the status; return the seconds until the next read, if any."""
    now, key, br = ctx.status, ctx.owner.key, ctx.model.spec.br
    if br is None or not now.get("commitTs") or _phase(ctx) == STOPPED:
        return None
    found = ctx.tidb_cluster(br.cluster_namespace, br.cluster)
    if not isinstance(found, Object):
        return None
    stood = (log_backups.due_command(ctx.model.spec, now), _phase(ctx))
    task = kernel.look(key, found, ctx.name, stood)
    if task is None:
        return kernel.rest(key)
    watched = kernel.watched(key)
    if isinstance(task, Unreadable):
        if condition := await unreadable.report(ctx, watched, task.cause):
            _speak_for(ctx, condition.command)
            await ctx.say(condition.kind, condition.reason, condition.message)
        return kernel.rest(key)
    await unreadable.end(ctx, watched)
    if task.checkpoint and str(task.checkpoint) != now.get("logCheckpointTs"):
        await ctx.write(now | {"logCheckpointTs": str(task.checkpoint), "timeSynced": stamp(ctx.now)})
    if task.paused is None:
        return kernel.rest(key)
    seen = kernel_sync.finding(ctx.model.spec, ctx.status, ctx.name, task)
    if seen is not None and (seen.is_certain or seen.condition == watched.suspected):
        await _write_finding(ctx, seen.condition)
        seen = None
    watched.suspected = seen.condition if seen else None
    if seen:
        watched.next_look = ctx.runtime.clock.now() + AGAIN
    return kernel.rest(key)


async def _write_finding(ctx: JobOwner[Backup], condition: LogCondition) -> None:
    _speak_for(ctx, condition.command)
    if ctx.with_condition(ctx.status, condition.kind, ctx.now, condition.reason, condition.message) == ctx.status:
        return
    await ctx.say(condition.kind, condition.reason, condition.message)
    await ctx.write(ctx.status | {"timeSynced": stamp(ctx.now)})


# the sub-commands that the spec requests


async def _carry_out(ctx: JobOwner[Backup], command: str, kernel: Kernel) -> Outcome | None:
    """Run a sub-command by its Job; a failed one is retried when its Job has been deleted."""
    spec, now = ctx.model.spec, ctx.status
    if command == STOP and not now.get("commitTs"):
        return await give_up(
            ctx, "NotStarted", "a log backup that has not begun can't be stopped; remove spec.logStop, or delete it"
        )
    if command == TRUNCATE and _is_truncated(spec.log_truncate_until, now):
        await _say_truncated(ctx)
        return None
    entry = log_backups.entry(now, command, spec.log_truncate_until)
    name = log_job_name(ctx.name, command)
    if entry.get("phase") in (*_ACTIVE, status.FAILED):
        if (job := ctx.cached_job(name)) is not None:
            return await _look_after(ctx, job, entry)
        if not ctx.has_lost(name):
            return None
        if wait := await ctx.await_pods(name):
            return wait
    wait = await _await_reader(ctx) if command == TRUNCATE else None
    return wait or await _make(ctx, command, kernel)


async def _await_reader(ctx: JobOwner[Backup]) -> Waiting | None:
    """The wait for a reader of the part of the log that the truncation removes. Raises ApiError, TransportError."""
    reader = reader_of(ctx, str(ctx.status.get("backupPath") or ""), tso.parse(ctx.model.spec.log_truncate_until))
    if not reader:
        return None
    message = f"the log is not truncated while {reader} reads it; it is when that one has ended"
    await ctx.say(status.RETRY_FAILED, "FilesInUse", message)
    return Waiting("FilesInUse", message, _LOOK_AGAIN)


def _is_truncated(until: str, now: Json) -> bool:
    """True if the log begins after `until` already."""
    reached = max(tso.parse(str(now.get(each) or "")) for each in ("commitTs", "logSuccessTruncateUntil"))
    return tso.parse(until) <= reached


async def _say_truncated(ctx: JobOwner[Backup]) -> None:
    at = stamp(ctx.now)
    fields = {"timeStarted": at, "timeCompleted": at, "logTruncatingUntil": ctx.model.spec.log_truncate_until}
    condition = LogCondition(TRUNCATE, COMPLETE, message="the log does not reach back so far")
    await ctx.write(log_backups.with_command(ctx.status, condition, ctx.now, fields))


async def _look_after(ctx: JobOwner[Backup], job: Object, entry: Json) -> Outcome | None:
    """Follow the Job. If it has ended without a report from its pod, it has crashed and is recreated after a pause."""
    body, name = job.decode(), job.metadata.name
    ended = pods.finished(body)
    reason = condition_of(entry.get("conditions") or (), status.FAILED).get("reason")
    if job.metadata.deletion_timestamp or (entry["phase"] == status.FAILED and reason != _CRASHED):
        return None
    if not ended:
        return await await_start(ctx, name, command=entry["command"], is_recreated=True)
    condition = pods.condition_of_job(body, ended)
    since = str(condition.get("lastTransitionTime") or "")
    if entry["phase"] == status.FAILED:
        if rest := time_left(since, _PAUSE, ctx.now):
            return Waiting("RetryPending", f"Job {name} has failed; the next one follows in a while", rest)
        await ctx.delete_job(name)
        return job_terminating(name)
    if ended == status.COMPLETE and (wait := ctx.await_result(body)):
        return wait
    why = condition.get("reason") if ended == status.FAILED else "its pod has not said how it ended"
    message = f"Job {name} has failed: {why}; the operator recreates it in a while, and at once when you delete it"
    await ctx.say(status.FAILED, _CRASHED, message)
    return Waiting("RetryPending", message, _PAUSE)


async def _make(ctx: JobOwner[Backup], command: str, kernel: Kernel) -> Outcome | None:
    name, br = log_job_name(ctx.name, command), ctx.model.spec.br
    there = ctx.live_job(name)
    if there is not None and ctx.controls(there):
        if pods.finished(there.decode()):
            await ctx.delete_job(name)
            return job_terminating(name)
        if not _does(there, jobs.log_arguments(ctx.model, command)):
            return None  # it truncates until another moment; its end causes an event
    assert br is not None
    tc = await serving_cluster(ctx, br, ctx.model.spec)
    if isinstance(tc, NotDone):
        return tc
    if problems := validate_backup(ctx.model, pods.tikv_version(tc)):
        await refuse(ctx, problems)
        return None
    if command == START and (wait := _await_others(ctx, kernel, br)):
        return wait
    return await schedule(
        ctx, name, lambda: _built(ctx, tc, command), "CreateBackupJobFailed", lambda: _keep_until_stopped(ctx)
    )


async def _keep_until_stopped(ctx: JobOwner[Backup]) -> None:
    ctx.became(await AddFinalizer(BACKUPS, ctx.owner, FINALIZER))


def _await_others(ctx: JobOwner[Backup], kernel: Kernel, br: BRConfig) -> Waiting | None:
    """The wait for another task in the cluster, which runs only one at a time: BR would fail without a way out.

    A task of this name is the Backup's own if an earlier Job may have begun it. Raises ApiError, TransportError.
    """
    found = ctx.tidb_cluster(br.cluster_namespace, br.cluster)
    if isinstance(found, Waiting):
        return found
    names = (kernel.names(found) if found is not None else None) or []
    has_begun = bool(log_backups.entry(ctx.status, START))
    other = next((name for name in names if name != ctx.name or not has_begun), None)
    if other is None:
        return None
    owner = log_backup_named(ctx, other)
    whose = (
        f"of Backup {owner}; delete or stop that Backup"
        if owner
        else (
            "which no Backup here owns: its Backup is gone, or it was begun by hand; stop it with "
            f"`br log stop --task-name={shlex.quote(shortened(other))}`"
        )
    )
    where = f"TidbCluster {br.cluster_namespace}/{br.cluster}"
    message = f"waiting for {where} to be free: it runs the log backup {shortened(other)}, {whose}"
    return Waiting("OtherLogBackup", message, _LOOK_AGAIN)


def _does(job: Object, arguments: list[str]) -> bool:
    """True if a running Job has all of these arguments."""
    given = job.decode()["spec"]["template"]["spec"]["containers"][0].get("args") or ()
    return set(arguments) <= set(given)


async def _built(ctx: JobOwner[Backup], tc: TidbCluster, command: str) -> Json:
    """The Job. Raises BadJob, ApiError, TransportError."""
    secrets = ctx.secrets(pods.secret_names(ctx.model.spec, ctx.model.spec.from_, tc))
    return jobs.log_job(ctx.model, tc, secrets, ctx.settings, command)
