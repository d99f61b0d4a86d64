"""`backup-manager import`: TiDB Lightning loads an archive of Dumpling into TiDB (backup.md 7.9).

    object → archive on the volume → directory beside it → Lightning → Complete → volume cleaned up

A second pod continues with the files of the first on the volume, including Lightning's checkpoint.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from apis import toml
from apis.backup_defaulting import with_restore_defaults
from apis.rclone_options import UnknownOption
from apis.restores import Restore
from apis.times import stamp
from backup_manager import archives, dumps, statuses, transfers
from backup_manager.archives import SUFFIX, BadArchive
from backup_manager.database import Login
from backup_manager.environment import write_for_us_alone
from backup_manager.flags import NO_TLS, Tls
from backup_manager.gc_life_time import login_of
from backup_manager.jobs import Job, job_for, reporting
from backup_manager.outcomes import JobFailed, Unusable
from backup_manager.outside import Outside
from backup_manager.places import Elsewhere, UnknownStorage, archive_at
from backup_manager.storage.errors import StorageError
from backup_manager.tool_arguments import lightning, lightning_arguments
from backup_manager.tools import ToolFailed, run_tool
from kube.resources import RESTORES

_log = structlog.get_logger(__name__)

_DOWNLOAD = "DownloadBackupDataFailed"
_UNPACK = "UnarchiveBackupDataFailed"
_LOAD = "LoaderBackupDataFailed"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The flags of `backup-manager import` (backup.md 7.2)."""

    namespace: str
    name: str
    backup_path: str
    tls: Tls = NO_TLS


def run_import(options: ImportOptions, outside: Outside) -> None:
    """Import the archive and record the outcome.

    Raises JobFailed, Stopped, Unusable; RecordGone, ApiError, TransportError.
    """
    job = job_for(outside, RESTORES, options.namespace, options.name)
    restore = with_restore_defaults(job.read(Restore))
    if restore.spec.br is not None or restore.spec.to is None:
        raise Unusable("an import needs spec.to, and no spec.br, which asks for a restore by BR")
    status = job.record.read().get("status") or {}
    login = login_of(restore.spec.to, outside, options.tls)
    started = str(status.get("timeStarted") or "") or stamp(outside.clock.wall())
    work = _Import(options, job, restore, login, started, is_first=not statuses.holds(status, "Running"))
    if statuses.holds(status, "Complete"):
        _log.info("the import is complete already", name=options.name)
        work.tidy_up()
        return
    reporting(job, work.make, may_be_followed=restore.spec.backoff_limit > 0)


@dataclass(frozen=True, slots=True)
class _Import:
    """An import to run; `is_first`: no pod has started it, so that no file on the volume belongs to it."""

    options: ImportOptions
    job: Job
    restore: Restore
    login: Login
    started: str
    is_first: bool

    def make(self) -> None:
        """Run it. Raises JobFailed, Stopped; RecordGone, ApiError, TransportError."""
        archive = self._archive()
        dump, checkpoint = _dump_of(archive), _checkpoint_of(archive)
        if self.is_first:
            self._on_volume(_DOWNLOAD, lambda: _remove_with(archive))
        self.job.condition("Running", timeStarted=self.started)
        if not dump.is_dir():
            if not archive.exists():
                self._download(archive)
            self._on_volume(_UNPACK, lambda: archives.unpack(archive, dump, self.job.outside.stop))
        commit_ts = self._commit_ts(dump)
        try:
            self._load(dump, checkpoint)
        except ToolFailed as error:
            self.tidy_up()
            raise JobFailed(_LOAD, str(error)) from error
        completed = stamp(self.job.outside.clock.wall())
        self.job.condition("Complete", commitTs=commit_ts, timeStarted=self.started, timeCompleted=completed)
        self.tidy_up()

    def tidy_up(self) -> None:
        """Free space on the volume, which other imports share; failures are logged."""
        try:
            _remove_with(self._archive())
        except (OSError, JobFailed) as error:
            _log.warning("the volume is not tidied up", cause=str(error))

    def _archive(self) -> Path:
        """The path of the archive on the volume."""
        path = self.options.backup_path.partition("://")[2].strip("/")
        try:
            return archives.below(self.job.outside.volume, path)
        except BadArchive as error:
            raise JobFailed(_DOWNLOAD, str(error)) from error

    def _download(self, archive: Path) -> None:
        spec = self.restore.spec
        try:
            place, name = archive_at(spec, self.options.backup_path)
            parts = transfers.parts_of(spec)
            storage = self.job.outside.open_storage(place, self.job.outside.environ, True)
            self.job.patiently(lambda: transfers.download(self.job, storage, name, archive, parts))
        except UnknownOption as error:
            raise JobFailed(_DOWNLOAD, f"spec.s3.options: {error}") from error
        except (UnknownStorage, Elsewhere, StorageError, OSError) as error:
            raise JobFailed(_DOWNLOAD, str(error)) from error

    def _commit_ts(self, dump: Path) -> str:
        try:
            return dumps.commit_ts(dump)
        except dumps.NoPosition as error:
            raise JobFailed("GetCommitTsFailed", str(error)) from error

    def _load(self, dump: Path, checkpoint: Path) -> None:
        """Run Lightning. Raises ToolFailed, Stopped."""
        spec = self.restore.spec
        with tempfile.TemporaryDirectory(prefix="lightning-") as directory:
            config = Path(directory, "lightning.toml")
            write_for_us_alone(config, lightning_config(self.login, checkpoint))
            command = [lightning(spec), *lightning_arguments(spec, self.login, dump, config)]
            run_tool("TiDB Lightning", command, self.job.outside)

    def _on_volume(self, reason: str, work: Callable[[], None]) -> None:
        try:
            work()
        except (OSError, BadArchive) as error:
            raise JobFailed(reason, str(error)) from error


def _dump_of(archive: Path) -> Path:
    """The directory of an extracted archive."""
    name = archive.name
    return archive.with_name(name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else f"{name}.d")


def _checkpoint_of(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.checkpoint")


def _remove_with(archive: Path) -> None:
    """Remove an archive and its extracted directory. Raises OSError."""
    for path in (archive, _dump_of(archive), _checkpoint_of(archive)):
        archives.remove(path)


def lightning_config(login: Login, checkpoint: Path) -> str:
    """Lightning's settings beside its arguments: the password, and the place of its checkpoint."""
    tidb = {"password": login.password}
    noted = {"enable": True, "driver": "file", "dsn": str(checkpoint)}
    return toml.dumps({"tidb": tidb, "checkpoint": noted})
