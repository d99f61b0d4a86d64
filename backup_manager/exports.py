"""`backup-manager export`: a dump by Dumpling, archived and uploaded to object storage (backup.md 7.9).

    free name → dump on the volume → archive beside it → object → Complete → volume cleaned up

A second pod continues with the files of the first on the volume; the name of the archive stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup
from apis.rclone_options import UnknownOption
from apis.times import stamp
from backup_manager import archives, dumps, statuses, transfers
from backup_manager.archives import SUFFIX, BadArchive
from backup_manager.backup_meta import readable
from backup_manager.database import Login
from backup_manager.flags import NO_TLS, Tls
from backup_manager.gc_life_time import login_of, raised, restore_leftover
from backup_manager.jobs import Job, job_for, reporting
from backup_manager.outcomes import JobFailed, Stopped, Unusable
from backup_manager.outside import Outside
from backup_manager.places import UnknownStorage, location_of
from backup_manager.storage.checks import require_usable
from backup_manager.storage.errors import StorageError
from backup_manager.storage.location import Kind
from backup_manager.storage.objects import Storage
from backup_manager.storage.parts import Parts
from backup_manager.tool_arguments import dumpling, dumpling_arguments
from backup_manager.tools import ToolFailed, run_tool
from kube.objects import condition_of
from kube.resources import BACKUPS

_log = structlog.get_logger(__name__)

_KINDS = (Kind.S3, Kind.GCS)
_REMOTE = "BackupDataToRemoteFailed"

VARIABLE = "MYSQL_PWD"
ALLOWED = "DUMPLING_PASSWORD_IN_ARGUMENTS"
"""The variable (spec.env) by which a user allows the argument for an older Dumpling."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The flags of `backup-manager export` (backup.md 7.2); the bucket is also in the spec."""

    namespace: str
    name: str
    storage_type: str
    tls: Tls = NO_TLS


def run_export(options: ExportOptions, outside: Outside) -> None:
    """Create the export and record its outcome.

    Raises JobFailed, Stopped, Unusable; RecordGone, ApiError, TransportError.
    """
    job = job_for(outside, BACKUPS, options.namespace, options.name)
    backup = with_backup_defaults(job.read(Backup))
    if backup.spec.br is not None or backup.spec.from_ is None:
        raise Unusable("an export needs spec.from, and no spec.br, which asks for a backup by BR")
    login = login_of(backup.spec.from_, outside, options.tls)
    export = _Export(options, job, backup, login)
    if statuses.holds(job.record.read().get("status") or {}, "Complete"):
        _log.info("the export is complete already", name=options.name)
        export.tidy_up(backup.status.backup_path)
        return
    reporting(job, export.make)


@dataclass(frozen=True, slots=True)
class _Export:
    """An export to create."""

    options: ExportOptions
    job: Job
    backup: Backup
    login: Login

    def make(self) -> None:
        """Create it. Raises JobFailed, Stopped; RecordGone, ApiError, TransportError."""
        started = stamp(self.job.outside.clock.wall())
        storage, parts = self._storage()
        name = self._name_given() or self._free_name(storage)
        path = f"{storage.location.kind.value}://{storage.location.path}/{name}"
        dump = self._dump_directory(storage, name)
        if dumps.is_finished(dump):
            _log.info("the dump was finished by an earlier pod", directory=str(dump))
            restore_leftover(self.job.record, self.login, self.job.outside)
            started = self._begun_at() or started
        else:
            self._dump(path, dump)
        archive = self._archived(dump)
        commit_ts, size = self._commit_ts(dump), archives.size_of(archive)
        self._upload(archive, storage, name, parts)
        self.job.condition(
            "Complete",
            timeStarted=started,
            timeCompleted=stamp(self.job.outside.clock.wall()),
            backupSize=size,
            backupSizeReadable=readable(size),
            commitTs=commit_ts,
        )
        self.tidy_up(path)

    def tidy_up(self, path: str) -> None:
        """Free space on the volume, which other exports share, once `path` is complete; failures are logged."""
        try:
            archive = archives.below(self.job.outside.volume, path.partition("://")[2])
            for each in (archive, archive.with_name(archive.name.removesuffix(SUFFIX))):
                archives.remove(each)
        except (OSError, BadArchive) as error:
            _log.warning("the volume is not tidied up", cause=str(error))

    def _storage(self) -> tuple[Storage, Parts]:
        """The storage of the archive. Raises JobFailed."""
        spec = self.backup.spec
        try:
            location = location_of(spec)
            parts = transfers.parts_of(spec)
        except UnknownStorage as error:
            raise JobFailed("UnsupportedStorageType", str(error)) from error
        except UnknownOption as error:
            raise JobFailed(_REMOTE, f"spec.s3.options: {error}") from error
        if location.kind not in _KINDS or self.options.storage_type != location.kind.value:
            why = f"{location.field}, and --storageType={self.options.storage_type}: an export goes to s3 or gcs"
            raise JobFailed("UnsupportedStorageType", why)
        return self.job.storage(spec, _REMOTE), parts

    def _name_given(self) -> str:
        """The archive name that an earlier pod has chosen."""
        return self.backup.status.backup_path.rpartition("/")[2]

    def _free_name(self, storage: Storage) -> str:
        """A new archive name, after checking that the storage is writable and has no such archive."""
        outside = self.job.outside
        self.job.condition("Prepare")
        try:
            self.job.patiently(lambda: require_usable(storage))
            while True:
                name = f"backup-{stamp(outside.clock.wall())}{SUFFIX}"
                if self.job.patiently(lambda name=name: storage.size(name)) is None:  # type: ignore[misc]
                    return name
                if outside.stop.wait(outside.clock, 1.0):
                    raise Stopped
        except StorageError as error:
            raise JobFailed(_REMOTE, str(error)) from error

    def _dump_directory(self, storage: Storage, name: str) -> Path:
        try:
            return archives.below(self.job.outside.volume, f"{storage.location.path}/{name.removesuffix(SUFFIX)}")
        except BadArchive as error:
            raise JobFailed("DumpTidbClusterFailed", str(error)) from error

    def _dump(self, path: str, directory: Path) -> None:
        """Run Dumpling into an empty directory; an unfinished dump of an earlier pod is repeated."""
        outside, spec = self.job.outside, self.backup.spec
        with raised(self.job.record, spec.tikv_gc_life_time, self.login, outside):
            self.job.condition("Running", backupPath=path)
            try:
                archives.remove(directory)
                archives.remove(directory.with_name(directory.name + SUFFIX))
                directory.mkdir(parents=True)
                words = [dumpling(spec), *dumpling_arguments(spec, self.login, directory)]
                command, environ = with_password(words, self.login, outside)
                run_tool("Dumpling", command, outside, environ=environ)
            except (ToolFailed, OSError) as error:
                raise JobFailed("DumpTidbClusterFailed", str(error)) from error

    def _commit_ts(self, dump: Path) -> str:
        try:
            return dumps.commit_ts(dump)
        except dumps.NoPosition as error:
            raise JobFailed("GetCommitTsFailed", str(error)) from error

    def _archived(self, dump: Path) -> Path:
        archive = dump.with_name(dump.name + SUFFIX)
        if not archive.exists():
            try:
                archives.pack(dump, archive, self.job.outside.stop)
            except OSError as error:
                raise JobFailed("ArchiveBackupDataFailed", str(error)) from error
        return archive

    def _upload(self, archive: Path, storage: Storage, name: str, parts: Parts) -> None:
        try:
            self.job.patiently(lambda: transfers.upload(self.job, archive, storage, name, parts))
        except (StorageError, OSError) as error:
            raise JobFailed(_REMOTE, str(error)) from error

    def _begun_at(self) -> str:
        status = self.job.record.read().get("status") or {}
        begun: str = condition_of(status.get("conditions") or (), "Prepare").get("lastTransitionTime") or ""
        return begun


def with_password(command: Sequence[str], login: Login, outside: Outside) -> tuple[Sequence[str], Mapping[str, str]]:
    """The command and environment with which Dumpling can log in (backup.md 7.9). Raises ToolFailed, Stopped.

    In the environment, process lists do not show the password. Dumpling reads `MYSQL_PWD` since pingcap/tidb#70907 and
    mentions it in its help; an older one accepts a password only as an argument, as v1.6 always passes it.
    """
    environ = outside.environ
    if not login.password:
        return command, environ
    if _reads_variable(command[0], outside):
        return command, {**environ, VARIABLE: login.password}
    if environ.get(ALLOWED) == "true":
        return [*command, f"--password={login.password}"], environ
    raise ToolFailed(
        "this Dumpling takes a password as an argument alone, where every process of the pod can read it: use one that "
        f"reads {VARIABLE} (spec.toolImage), a user who logs in by a certificate (spec.from.tlsClientSecretName), or "
        f"allow it by the variable {ALLOWED}=true in spec.env"
    )


def _reads_variable(program: str, outside: Outside) -> bool:
    help_: list[str] = []
    run_tool("Dumpling", [program, "--help"], outside, help_.append)
    return any(VARIABLE in line for line in help_)
