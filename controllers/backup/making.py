"""The Job of a snapshot or an export: what must hold before it is made, and what becomes of it (backup.md 3.5, 3.7)."""

from apis import quantity
from apis.backups import Backup
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster
from apis.validation.backups import validate_backup
from controllers.backup import retry
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, Object, condition_of
from kube.resources import BACKUPS, JOBS, PERSISTENT_VOLUME_CLAIMS
from member.backups import jobs, pods
from member.backups.environment import BadJob, secret_names
from member.backups.naming import FINALIZER, backup_job_name

_LOOK_AGAIN = 10.0
"""Seconds until what no event tells of is looked at again: a cluster that is not there, or not Ready."""
_JOB_GOING = 2.0
"""Seconds until a Job that is being deleted is looked at again."""


def sync(ctx: JobOwner[Backup]) -> Result | None:
    """Bring a Backup that is not being deleted a step on. Raises RequeueError, ApiError, TransportError."""
    now = ctx.status
    if status.holds(now, status.COMPLETE) or status.holds(now, status.FAILED):
        return None
    job = ctx.cached_job(backup_job_name(ctx.name))
    if job is not None and pods.finished(body := job.decode()) == "Failed" and not job.metadata.deletion_timestamp:
        return _failed(ctx, body)
    if retry.is_retrying(now):
        return _try_again(ctx)
    if any(status.holds(now, kind) for kind in (status.SCHEDULED, status.RUNNING, status.PREPARE)):
        return None
    return _make(ctx)


def keeps_files_in_order(backup: Backup) -> bool:
    """Whether the files are removed with the Backup, under some condition at least: then it must not just go."""
    return backup.spec.backup_mode == "log" or backup.spec.clean_policy in ("Delete", "OnFailure")


def _failed(ctx: JobOwner[Backup], job: Json) -> Result | None:
    """The Job has failed, and its pod has not said why: it crashed, or was evicted."""
    now, policy = ctx.status, ctx.model.spec.backoff_retry_policy
    if problems := validate_backup(ctx.model):
        return _refuse(ctx, problems)
    if retry.is_retrying(now):
        return _try_again(ctx)
    if not retry.is_recorded(now):
        live = ctx.live_job(job["metadata"]["name"])
        if live is None or live.metadata.uid != job["metadata"]["uid"]:
            return Result(requeue_after=_JOB_GOING)  # the cache still shows the one before
        ctx.write(retry.with_record(now, job, policy, ctx.now))
        now = ctx.status
    decision = retry.decided(now, policy, ctx.now)
    if isinstance(decision, retry.Wait):
        return Result(requeue_after=decision.seconds)
    ctx.tell(now, decision)
    ctx.write(decision)
    return _try_again(ctx) if retry.is_retrying(decision) else None


def _try_again(ctx: JobOwner[Backup]) -> Result | None:
    """Have the failed Job go, pods and all, and only then make the next."""
    if not retry.has_gone(ctx.status):
        if not ctx.delete_job(backup_job_name(ctx.name)):
            return Result(requeue_after=_JOB_GOING)
        ctx.write(retry.with_restart(ctx.status, ctx.now))
    return _make(ctx)


def _make(ctx: JobOwner[Backup]) -> Result | None:
    if problems := validate_backup(ctx.model) or _not_yet(ctx.model):
        return _refuse(ctx, problems)
    tc = _cluster(ctx)
    if tc is not None and (problems := validate_backup(ctx.model, pods.tikv_version(tc))):
        return _refuse(ctx, problems)
    if status.holds(ctx.status, status.INVALID):
        ctx.say(status.INVALID, "Corrected", "the spec is valid now", is_true=False)
    if keeps_files_in_order(ctx.model):
        ctx.became(ctx.runtime.applier.add_finalizer(BACKUPS, ctx.owner, FINALIZER))
    there = ctx.live_job(backup_job_name(ctx.name))
    if there is not None:
        return _found(ctx, there)
    _create(ctx, _built(ctx, tc))
    ctx.say(status.SCHEDULED)
    return None


def _not_yet(backup: Backup) -> list[Problem]:
    """What this version does not do."""
    if backup.spec.backup_mode == "log":
        message = "is not offered yet; use snapshot, or keep log backups with TiDB Operator v1.6"
        return [Problem("spec.backupMode", "log", message)]
    return []


def _refuse(ctx: JobOwner[Backup], problems: list[Problem]) -> Result | None:
    """Only an edit of the spec helps, and that is an event."""
    ctx.say(status.INVALID, "InvalidSpec", "; ".join(map(str, problems)))
    return None


def _cluster(ctx: JobOwner[Backup]) -> TidbCluster | None:
    """The TidbCluster to back up, once it is Ready; None for an export. Raises RequeueError."""
    br = ctx.model.spec.br
    if br is None:
        return None
    found = ctx.caches.tidb_clusters.get(br.cluster_namespace, br.cluster)
    where = f"{br.cluster_namespace}/{br.cluster}"
    if found is None:
        text = f"failed to fetch tidbcluster {where}"
        message = f"{text}: there is none; correct spec.br.cluster and spec.br.clusterNamespace, or create it"
        ctx.say(status.RETRY_FAILED, text, message)
        raise RequeueError(message, _LOOK_AGAIN)
    body = found.decode()
    if condition_of((body.get("status") or {}).get("conditions") or (), "Ready").get("status") != "True":
        raise RequeueError(f"waiting for TidbCluster {where} to be ready", _LOOK_AGAIN)
    try:
        return with_defaults(decode(body, TidbCluster))
    except InvalidField as error:
        raise RequeueError(f"waiting for TidbCluster {where} to be valid: {error}", _LOOK_AGAIN) from error


def _found(ctx: JobOwner[Backup], job: Object) -> Result | None:
    """What has the name of our Job already; v1.6 calls its own one that its cache lacks a failure."""
    if job.metadata.deletion_timestamp:
        return Result(requeue_after=_JOB_GOING)
    if ctx.controls(job):
        ctx.say(status.SCHEDULED)
        return None
    _give_up(ctx, "CreateBackupJobFailed", f"Job {job.key} is not this Backup's; delete it, or rename the Backup")
    return None


def _built(ctx: JobOwner[Backup], tc: TidbCluster | None) -> Json:
    """The Job; for an export with the claim that it needs. Raises RequeueError."""
    spec = ctx.model.spec
    secrets = ctx.secrets(secret_names(spec, spec.from_))
    try:
        if tc is not None:
            return jobs.snapshot_job(ctx.model, tc, secrets, ctx.settings)
        job = jobs.export_job(ctx.model, secrets, ctx.settings)
        _ensure_claim(ctx)
    except BadJob as error:
        _give_up(ctx, error.reason, str(error))
    return job


def _ensure_claim(ctx: JobOwner[Backup]) -> None:
    """Make the claim of an export, or see that the one that is there is large enough. Raises BadJob."""
    desired = jobs.export_claim(ctx.model)
    name, size = desired["metadata"]["name"], ctx.model.spec.storage_size
    there = ctx.runtime.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
    if there is None:
        try:
            ctx.create(PERSISTENT_VOLUME_CLAIMS, desired)
        except AlreadyExists as error:
            raise BadJob("CreatePVCFailed", f"claim {name} was made by another at the same time") from error
        except ApiError as error:
            raise BadJob("CreatePVCFailed", f"claim {name} could not be made: {error.message}") from error
        return
    has = there.decode()["spec"]["resources"]["requests"]["storage"]
    if quantity.parse(has) < quantity.parse(size):
        message = f"spec.storageSize: {size}: claim {name} of earlier exports has {has}; delete it, or ask for less"
        raise BadJob("PVCStorageSizeTooSmall", message)


def _create(ctx: JobOwner[Backup], job: Json) -> None:
    try:
        ctx.create(JOBS, job)
    except AlreadyExists as error:
        raise RequeueError(f"Job {job['metadata']['name']} was made meanwhile", _JOB_GOING) from error
    except ApiError as error:
        message = f"Job {job['metadata']['name']} could not be made: {error.message}"
        _give_up(ctx, "CreateBackupJobFailed", message)


def _give_up(ctx: JobOwner[Backup], reason: str, message: str) -> None:
    """Say what is in the way, and try again with growing pauses. Raises RequeueError."""
    ctx.say(status.RETRY_FAILED, reason, message)
    raise RequeueError(message)
