"""`backup-manager backup`: a snapshot of a cluster (backup.md 7.4).

A second pod continues after the first. If BR has finished the backup, the pod completes it. An unfinished one is
continued by BR from its checkpoint, or repeated if BR is too old for checkpoints.
"""

from dataclasses import dataclass

import structlog

from apis.backup_defaulting import with_backup_defaults
from apis.backup_paths import is_at
from apis.backups import Backup
from apis.images import knows_checkpoints
from apis.times import stamp
from backup_manager import statuses
from backup_manager.backup_meta import BackupMeta, Unreadable, readable
from backup_manager.br import run_br
from backup_manager.br_arguments import NoBR, backup_arguments
from backup_manager.database import Login
from backup_manager.flags import NO_TLS, Tls
from backup_manager.gc_life_time import login_of, raised, restore_leftover
from backup_manager.jobs import Job, finished_meta, job_for, reporting
from backup_manager.outcomes import JobFailed, NotBuilt, Stopped, Unusable
from backup_manager.outside import Outside
from backup_manager.places import UnknownStorage, backup_path
from backup_manager.storage.checks import require_free, require_usable
from backup_manager.storage.deletion import Interrupted, Pace, delete_all
from backup_manager.storage.errors import StorageError
from backup_manager.storage.objects import Storage
from backup_manager.tools import ToolFailed
from backup_manager.verify import require_known_extent, verify_once
from kube.objects import condition_of
from kube.resources import BACKUPS

_log = structlog.get_logger(__name__)

_FAILED = "BackupDataToRemoteFailed"


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """The flags of `backup-manager backup` (backup.md 7.2)."""

    namespace: str
    name: str
    tikv_version: str = "4.0"
    mode: str = "snapshot"
    tls: Tls = NO_TLS


def run_backup(options: BackupOptions, outside: Outside) -> None:
    """Create the backup and record its outcome.

    Raises JobFailed, Stopped, NotBuilt, Unusable; RecordGone, ApiError, TransportError.
    """
    if options.mode != "snapshot":
        raise NotBuilt(f"backup --mode={options.mode}")
    job = job_for(outside, BACKUPS, options.namespace, options.name)
    backup = with_backup_defaults(job.read(Backup))
    status = job.record.read().get("status") or {}
    if statuses.holds(status, "Complete"):
        _log.info("the backup is complete already", name=options.name)
        verify_once(job, backup)
        return
    if backup.spec.br is None:
        raise Unusable(str(NoBR()))
    require_known_extent(outside.environ)
    is_restart = status.get("phase") != "Scheduled" or statuses.holds(status, statuses.RESTART)
    if is_restart:
        job.condition(statuses.RESTART)
    begun = backup.status.backup_path
    has_begun = is_at(begun, backup.spec)
    if begun and not has_begun:
        _log.warning("the spec names another place now; what an earlier pod has left stays where it is", left=begun)
    reporting(job, _Snapshot(options, job, backup, has_begun).make)
    verify_once(job, backup)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A backup to create; `has_begun`: an earlier pod found the place free, and recorded it."""

    options: BackupOptions
    job: Job
    backup: Backup
    has_begun: bool

    def make(self) -> None:
        """Create it. Raises JobFailed, Stopped; RecordGone, ApiError, TransportError."""
        clock, spec = self.job.outside.clock, self.backup.spec
        started = stamp(clock.wall())
        storage = self.job.storage(spec, "GetBackupRemotePathFailed")
        if meta := self._prepared(storage):
            _log.info("BR has finished this backup in an earlier pod", end_version=meta.end_version)
            restore_leftover(self.job.record, self._login(), self.job.outside)
            self._complete(meta, self._begun_at() or started)
            return
        with raised(self.job.record, spec.tikv_gc_life_time, self._login(), self.job.outside):
            self.job.condition("Running")
            self._run()
        self._complete(self.job.meta(storage, "GetBackupMetadataFailed"), started)

    def _login(self) -> Login | None:
        """The connection to TiDB, if the spec has one."""
        access = self.backup.spec.from_
        return login_of(access, self.job.outside, self.options.tls, self.backup.spec.br) if access else None

    def _prepared(self, storage: Storage) -> BackupMeta | None:
        """Prepare the place; return the meta of a backup that is already finished."""
        try:
            if meta := self.job.patiently(lambda: self._found(storage)):
                return meta
            self.job.condition("Prepare", backupPath=backup_path(self.backup.spec))
            if self.has_begun and not knows_checkpoints(self.options.tikv_version):
                delete_all(storage, Pace(), self.job.outside.clock, self.job.outside.stop, lambda _done: None)
        except (StorageError, Unreadable) as error:
            raise JobFailed(_FAILED, str(error)) from error
        except UnknownStorage as error:
            raise JobFailed("GetBackupRemotePathFailed", str(error)) from error
        except Interrupted as error:
            raise Stopped from error
        return None

    def _found(self, storage: Storage) -> BackupMeta | None:
        """The backup that BR has finished there; the first pod instead checks that the place is usable and free."""
        if self.has_begun:
            return finished_meta(storage)
        require_usable(storage)
        require_free(storage)
        return None

    def _run(self) -> None:
        arguments = backup_arguments(self.backup, cluster_tls=self.options.tls.cluster)
        try:
            run_br(arguments, self.job.record, self.job.outside)
        except ToolFailed as error:
            raise JobFailed(_FAILED, str(error)) from error

    def _begun_at(self) -> str:
        status = self.job.record.read().get("status") or {}
        begun: str = condition_of(status.get("conditions") or (), "Prepare").get("lastTransitionTime") or ""
        return begun

    def _complete(self, meta: BackupMeta, started: str) -> None:
        self.job.condition(
            "Complete",
            timeStarted=started,
            timeCompleted=stamp(self.job.outside.clock.wall()),
            backupSize=meta.size,
            backupSizeReadable=readable(meta.size),
            commitTs=str(meta.end_version),
        )
