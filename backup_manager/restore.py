"""`backup-manager restore`: restores a backup into a cluster, or undoes a failed restore (backup.md 7.7)."""

from dataclasses import dataclass

import structlog

from apis import tso
from apis.backup_defaulting import with_restore_defaults
from apis.restores import Restore
from apis.times import stamp
from backup_manager import statuses
from backup_manager.backup_meta import NAME
from backup_manager.br import UsageShown, run_br
from backup_manager.br_arguments import NoBR, PointInTime, abort_arguments, restore_arguments
from backup_manager.flags import NO_TLS, Tls
from backup_manager.gc_life_time import login_of, raised
from backup_manager.jobs import Job, job_for, reporting
from backup_manager.outcomes import JobFailed, NotBuilt, Unusable
from backup_manager.outside import Outside
from backup_manager.places import UnknownStorage
from backup_manager.storage.errors import StorageError
from backup_manager.storage.objects import Storage
from backup_manager.tools import ToolFailed
from kube.resources import RESTORES

_log = structlog.get_logger(__name__)

_FAILED = "RestoreDataFromRemoteFailed"
_PRUNE_FAILED = "PruneFailed"


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """The flags of `backup-manager restore` (backup.md 7.2)."""

    namespace: str
    name: str
    tikv_version: str = "4.0"
    mode: str = "snapshot"
    restored_ts: str = "0"
    tls: Tls = NO_TLS
    abort: bool = False
    phase: str = "0"

    @property
    def point(self) -> PointInTime | None:
        """The target moment of a restore from the log of changes."""
        return PointInTime(self.restored_ts or "0", self.phase) if self.mode == "pitr" else None

    @property
    def is_first_step(self) -> bool:
        """True for the snapshot of a replication restore, about which the operator writes the conditions (RPL-13)."""
        return self.mode == "pitr" and self.phase == "1"


def run_restore(options: RestoreOptions, outside: Outside) -> None:
    """Restore or abort, and record the outcome.

    Raises JobFailed, Stopped, NotBuilt, Unusable; RecordGone, ApiError, TransportError.
    """
    if options.mode not in ("snapshot", "pitr"):
        raise NotBuilt(f"restore --mode={options.mode}")
    job = job_for(outside, RESTORES, options.namespace, options.name)
    restore = with_restore_defaults(job.read(Restore))
    status = job.record.read().get("status") or {}
    if restore.spec.br is None:
        raise Unusable(str(NoBR()))
    if options.abort:
        reporting(job, lambda: _abort(options, job, restore))
        return
    if statuses.holds(status, "Complete"):
        _log.info("the restore is complete already", name=options.name)
        return
    started = str(status.get("timeStarted") or "")
    if options.is_first_step:
        _restore(options, job, restore, started)
        return
    reporting(job, lambda: _restore(options, job, restore, started), may_be_followed=restore.spec.backoff_limit > 0)


def _restore(options: RestoreOptions, job: Job, restore: Restore, started: str) -> None:
    spec, outside = restore.spec, job.outside
    started = started or stamp(outside.clock.wall())
    if not options.is_first_step:
        job.condition("Running")
    storage = job.storage(spec, _FAILED)
    _require_backup(job, storage)
    login = login_of(spec.to, outside, options.tls, spec.br) if spec.to else None
    with raised(job.record, spec.tikv_gc_life_time, login, outside):
        try:
            arguments = restore_arguments(restore, options.point, cluster_tls=options.tls.cluster)
            run_br(arguments, job.record, outside)
        except (ToolFailed, UnknownStorage) as error:
            raise JobFailed(_FAILED, str(error)) from error
    if options.is_first_step:
        return
    commit_ts = _restored_to(options, job, storage)
    completed = stamp(outside.clock.wall())
    job.condition("Complete", commitTs=commit_ts, timeStarted=started, timeCompleted=completed)


def _require_backup(job: Job, storage: Storage) -> None:
    """Check that the backup exists before touching the cluster. Raises JobFailed, Stopped."""
    try:
        if job.patiently(lambda: storage.size(NAME)) is None:
            why = f"there is no {NAME} in {storage.location} ({storage.location.provider}): correct bucket and prefix"
            raise JobFailed(_FAILED, why)
    except StorageError as error:
        raise JobFailed(_FAILED, str(error)) from error


def _restored_to(options: RestoreOptions, job: Job, storage: Storage) -> str:
    """The TSO of the restored data; for a restore to a named point in time, that point.

    The metadata of a log backup has no end. Raises JobFailed, Stopped.
    """
    point = options.point
    if point is None:
        return str(job.meta(storage, "GetCommitTsFailed").end_version)
    named = tso.parse(point.restored_ts)
    return str(named or job.log_meta(storage, "GetCommitTsFailed").end_version)


def _abort(options: RestoreOptions, job: Job, restore: Restore) -> None:
    job.condition("PruneRunning", "PruneJobStarted")
    try:
        arguments = abort_arguments(restore, options.point, cluster_tls=options.tls.cluster)
    except UnknownStorage as error:
        raise JobFailed("ConstructArgsFailed", str(error), _PRUNE_FAILED) from error
    usage = UsageShown()
    try:
        run_br(arguments, job.record, job.outside, usage.look_at)
    except ToolFailed as error:
        reason = "CommandNotFound" if usage.is_true else "BRAbortFailed"
        raise JobFailed(reason, str(error), _PRUNE_FAILED) from error
    if usage.is_true:
        why = "this BR knows no `abort restore`; use one that does (spec.toolImage)"
        raise JobFailed("CommandNotFound", why, _PRUNE_FAILED)
    job.condition("PruneComplete", "PruneJobComplete")
