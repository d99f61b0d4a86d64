"""A restore to a point in time in two steps, so that a compaction of the log runs beside the first (RPL-1 … RPL-16).

    "" → SnapshotRestore ──(snapshot restored, compaction settled)──▶ LogRestore → Running → Complete, or Failed

Each step has a Job, which the operator watches; v1.7 sees its end at the next resync.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import structs

from apis.backup_defaulting import with_compact_defaults
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.problem import InvalidField
from apis.restores import Restore
from apis.storage_providers import StorageProvider
from apis.tidbcluster import TidbCluster
from apis.times import stamp
from apis.validation.backups import validate_restore
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.prerequisites import refuse, schedule
from controllers.job_owners.starting import await_start
from controllers.restore import making
from kube.actions import Emit
from kube.events import NORMAL
from kube.objects import Json, Object
from kube.resources import COMPACT_BACKUPS
from member.backups import jobs, pods
from member.backups.naming import LOG_RESTORE, SNAPSHOT_RESTORE, step_job_name
from member.observed.restores import JOB_FAILED
from member.outcome import Done, Outcome, Waiting, in_time_for
from member.polling import time_left
from ports import duration


@dataclass(frozen=True, slots=True)
class _Step:
    """`name` is in `status.replicationStep`, in labels and in the name of the Job; `phase` is its condition."""

    name: str
    phase: str
    reason: str
    started: str
    failed: str


_SNAPSHOT = _Step(
    SNAPSHOT_RESTORE,
    status.SNAPSHOT_RESTORE,
    "SnapshotRestoreStarted",
    "SnapshotRestoreStarted",
    "SnapshotRestoreFailed",
)
_LOG = _Step(LOG_RESTORE, status.LOG_RESTORE, "GatePassed", "LogRestoreStarted", "LogRestoreFailed")
_STEPS: Mapping[str, _Step] = {each.name: each for each in (_SNAPSHOT, _LOG)}

_NOT_FOUND = "CompactBackupNotFound"


async def sync(ctx: JobOwner[Restore]) -> Outcome | None:
    """Take the next step of a Restore with `spec.replicationConfig`. Raises ApiError, TransportError."""
    if ctx.owner.metadata.deletion_timestamp or status.holds(ctx.status, status.COMPLETE):
        return None
    if status.holds(ctx.status, status.FAILED):
        return await making.after_failure(ctx)
    has_begun = bool(ctx.status.get("replicationStep"))  # Invalid would end the protection from garbage collection
    if not has_begun and (problems := validate_restore(ctx.model)):
        await refuse(ctx, problems)
        return None
    compaction = await _await_compaction(ctx)
    outcome = await _go_on(ctx, compaction)
    if compaction is None:
        return outcome
    is_quiet = outcome is None or isinstance(outcome, Done)
    if is_quiet and compaction.reason == _NOT_FOUND:
        return in_time_for(compaction, outcome or Done())
    return in_time_for(outcome or Done(), compaction)


async def _go_on(ctx: JobOwner[Restore], compaction: Waiting | None) -> Outcome | None:
    """Begin or follow the present step; `compaction` is the wait for the CompactBackup."""
    step = _STEPS.get(str(ctx.status.get("replicationStep") or ""))
    if step is None:
        return await _make(ctx, _SNAPSHOT)
    if step is _SNAPSHOT and status.holds(ctx.status, status.SNAPSHOT_RESTORED):
        return compaction or await _make(ctx, _LOG)
    name = step_job_name(ctx.name, step.name)
    job = ctx.cached_job(name)
    if job is not None and pods.finished(body := job.decode()) == status.FAILED:
        await ctx.say(status.FAILED, step.failed, f"Job {name} has failed: {_why(body)}")
        return await making.after_failure(ctx)
    if (done := ctx.complete_job(name)) is not None:
        if step is _LOG:
            return ctx.await_result(done) or await making.ended_silently(ctx, name)
        await ctx.say(status.SNAPSHOT_RESTORED, "JobComplete")
        return compaction or await _make(ctx, _LOG)
    return await ctx.look_for(name) or await await_start(ctx, name, step.phase)


def _why(job: Json) -> str:
    condition = pods.condition_of_job(job, status.FAILED)
    return ": ".join(filter(None, (str(condition.get("reason") or ""), str(condition.get("message") or ""))))


async def _make(ctx: JobOwner[Restore], step: _Step) -> Outcome | None:
    """Create the Job of a step once everything that it needs is there, and note the step."""
    name = step_job_name(ctx.name, step.name)

    async def build(tc: TidbCluster | None) -> Json:
        assert tc is not None  # validation requires spec.br
        secrets = ctx.secrets(pods.secret_names(ctx.model.spec, ctx.model.spec.to, tc))
        return jobs.step_job(ctx.model, tc, secrets, ctx.settings, step.name)

    return await making.make(
        ctx, name, build, lambda tc: schedule(ctx, name, lambda: build(tc), JOB_FAILED, record=lambda: _note(ctx, step))
    )


async def _note(ctx: JobOwner[Restore], step: _Step) -> None:
    now = status.with_condition(ctx.status, step.phase, ctx.now, step.reason) | {"replicationStep": step.name}
    await ctx.write({"timeStarted": stamp(ctx.now)} | now)
    await Emit(ctx.owner, NORMAL, step.started, f"Job {step_job_name(ctx.name, step.name)} was created")


# the compaction beside the first step


async def _await_compaction(ctx: JobOwner[Restore]) -> Waiting | None:
    """The wait for the CompactBackup; None once it is settled, which a condition keeps. Raises ApiError, …"""
    config = ctx.model.spec.replication_config
    if config is None or status.holds(ctx.status, status.COMPACT_SETTLED):
        return None
    name = config.compact_backup_name
    found = ctx.runtime.client.find(COMPACT_BACKUPS, name, ctx.namespace) if name else None
    if found is None:
        return await _await_creation(ctx, name, config.wait_timeout)
    state, where = str((found.decode().get("status") or {}).get("state") or ""), f"CompactBackup {found.key}"
    if difference := _difference(ctx.model, found):
        await _settle(ctx, "CompactBackupMismatch", f"{where} compacts another log: {difference} differs")
    elif state == status.COMPLETE:
        await _settle(ctx, "AllShardsComplete", f"{where} is Complete")
    elif state == status.FAILED:
        why = (found.decode().get("status") or {}).get("message") or ""
        await _settle(ctx, "ShardsPartialFailed", f"{where} has failed, and BR uses what it has compacted: {why}")
    else:
        message = f"waiting for {where} to end, after which the log is restored; its state is {state or 'not set yet'}"
        return Waiting("WaitingForCompaction", message)
    return None


async def _await_creation(ctx: JobOwner[Restore], name: str, timeout: str | None) -> Waiting | None:
    where = f"CompactBackup {ctx.namespace}/{name}"
    seconds = 0.0
    with contextlib.suppress(ValueError):  # an edit after the begin
        seconds = duration.seconds(timeout or "0")
    rest = time_left(ctx.owner.metadata.creation_timestamp or "", seconds, ctx.now) if seconds > 0 else 0.0
    if seconds > 0 and not rest:
        await _settle(ctx, "CompactBackupWaitTimeout", f"{where} was not created within {timeout}")
        return None
    until = f"; after {timeout} the log is restored without it" if rest else ""
    message = f"waiting for {where}, which spec.replicationConfig names and which does not exist; create it{until}"
    return Waiting(_NOT_FOUND, message, rest or None)


async def _settle(ctx: JobOwner[Restore], reason: str, message: str) -> None:
    await ctx.say(status.COMPACT_SETTLED, reason, message)


def _difference(restore: Restore, compaction: Object) -> str:
    """The field in which a CompactBackup works on another cluster or storage; empty if it does not (RPL-8)."""
    try:
        other = with_compact_defaults(decode(compaction.decode(), CompactBackup)).spec
    except InvalidField as error:
        return str(error)
    own = restore.spec
    clusters = [(each.br.cluster_namespace, each.br.cluster) if each.br else None for each in (own, other)]
    if clusters[0] != clusters[1]:
        return "spec.br"
    places = [_place(each) for each in (own, other)]
    return next((key for key in places[0] | places[1] if places[0].get(key) != places[1].get(key)), "")


_PLACE: Mapping[str, tuple[str, ...]] = {
    "s3": ("provider", "endpoint", "region", "bucket", "prefix", "path"),
    "gcs": ("project_id", "location", "bucket", "prefix", "path"),
    "azblob": ("storage_account", "container", "prefix", "path"),
    "local": ("prefix", "volume"),
}
"""The fields that name a place; Secrets, classes and encryption may differ."""


def _place(storage: StorageProvider) -> dict[str, object]:
    return {
        f"spec.{name}.{field}": value
        for name, provider in storage.providers.items()
        for field, value in structs.asdict(provider).items()
        if field in _PLACE[name]
    }
