"""`backup-manager clean`: deletes the files of a deleted Backup (backup.md 7.8)."""

from dataclasses import dataclass

import structlog

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup, CleanOption
from backup_manager import statuses
from backup_manager.archives import SUFFIX
from backup_manager.jobs import Job, job_for, reporting
from backup_manager.outcomes import JobFailed, NotBuilt, Stopped
from backup_manager.outside import Outside
from backup_manager.places import Elsewhere, UnknownStorage, archive_at, location_at
from backup_manager.storage.deletion import Deleted, Interrupted, Pace, delete_all
from backup_manager.storage.errors import StorageError
from backup_manager.storage.location import Kind
from kube.resources import BACKUPS
from ports.clock import Clock

_log = structlog.get_logger(__name__)

_FAILED = "CleanBackupDataFailed"
_REPORTED_EVERY = 5.0
_SINGLE_AT_ONCE = 10
"""The number of concurrent requests of the library per call, if each object is a request."""


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """The flags of `backup-manager clean` (backup.md 7.2)."""

    namespace: str
    name: str


def run_clean(options: CleanOptions, outside: Outside) -> None:
    """Delete the files and record the outcome.

    Raises JobFailed, Stopped, NotBuilt; RecordGone, ApiError, TransportError.
    """
    job = job_for(outside, BACKUPS, options.namespace, options.name)
    backup = with_backup_defaults(job.read(Backup))
    if statuses.holds(job.record.read().get("status") or {}, "Clean"):
        _log.info("the backup is clean already", name=options.name)
        return
    if backup.spec.backup_mode == "volume-snapshot":
        raise NotBuilt("clean of a volume snapshot")
    reporting(job, lambda: _clean(job, backup))


def _clean(job: Job, backup: Backup) -> None:
    if not backup.status.backup_path:
        raise JobFailed("BackupPathIsEmpty", "status.backupPath is empty: there is nothing that could be deleted")
    try:
        if backup.spec.br is None:
            _delete_export(job, backup)
        else:
            _delete_files(job, backup)
    except Elsewhere as error:
        message = f"{error}, and the files are where status.backupPath says: name that storage in the spec again"
        raise JobFailed(_FAILED, message, "CleanFailed") from error
    except (StorageError, UnknownStorage) as error:
        raise JobFailed(_FAILED, str(error), "CleanFailed") from error
    except Interrupted as error:
        raise Stopped from error
    job.condition("Clean")


def _delete_files(job: Job, backup: Backup) -> None:
    option = backup.spec.clean_option or CleanOption()
    location = location_at(backup.spec, backup.status.backup_path)
    bulk = location.kind is not Kind.S3 or not option.disable_batch_concurrency
    storage = job.outside.open_storage(location, job.outside.environ, bulk)
    progress = _Progress(job.outside.clock)
    is_batched = location.kind is Kind.S3 and bulk
    done = delete_all(storage, pace_of(option, is_batched=is_batched), job.outside.clock, job.outside.stop, progress)
    _log.info("deleted", objects=done.objects, bytes=done.bytes, storage=str(location))


def pace_of(option: CleanOption, *, is_batched: bool) -> Pace:
    """The pace of the options: concurrent batches, or the number of calls with equally many concurrent objects."""
    single = max(option.routine_concurrency // _SINGLE_AT_ONCE, 1)
    return Pace(
        page=option.page_size,
        at_once=option.batch_concurrency if is_batched else single,
        rounds=option.retry_count,
        pause_on_failure=option.backoff_enabled,
    )


def _delete_export(job: Job, backup: Backup) -> None:
    """Delete Dumpling's archive, and the rest of an upload that v1.6 left unfinished."""
    place, name = archive_at(backup.spec, backup.status.backup_path)
    if not name.endswith(SUFFIX):
        raise Elsewhere(f"status.backupPath {backup.status.backup_path!r} is no archive in {place.field}")
    storage = job.outside.open_storage(place, job.outside.environ, True)
    storage.delete([name, f"{name}.tmp"])
    _log.info("deleted", objects=name, storage=str(storage.location))


class _Progress:
    """Logs progress at intervals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()

    def __call__(self, done: Deleted) -> None:
        """Log the number of deleted objects."""
        now = self._clock.now()
        if now - self._last >= _REPORTED_EVERY:
            self._last = now
            _log.info("deleting", objects=done.objects, bytes=done.bytes)
