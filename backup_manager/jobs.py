"""The common part of backup, restore and clean: the object of the job, and writes of its conditions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from apis.decoding import InvalidField, decode
from apis.shared import Model
from apis.storage_providers import StorageProvider
from backup_manager import statuses
from backup_manager.backup_meta import NAME, BackupMeta, Unreadable, read_log_meta, read_meta
from backup_manager.br_log import ProgressLine
from backup_manager.outcomes import JobFailed, Stopped, Unusable
from backup_manager.outside import Outside
from backup_manager.places import UnknownStorage, location_of
from backup_manager.records import Record
from backup_manager.statuses import Condition
from backup_manager.storage.errors import ObjectMissing, StorageError
from backup_manager.storage.objects import Storage
from kube.objects import Json
from kube.resources import Resource

_log = structlog.get_logger(__name__)

_M = TypeVar("_M", bound=Model)
_T = TypeVar("_T")

_TRIES = 6
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """The object of a job, and the job's access to the outside."""

    record: Record
    outside: Outside

    def read(self, model: type[_M]) -> _M:
        """The current object. Raises Unusable; RecordGone, ApiError, TransportError."""
        try:
            return decode(self.record.read(), model)
        except InvalidField as error:
            raise Unusable(str(error)) from error

    def condition(
        self, type_: str, reason: str = "", message: str = "", *, is_true: bool = True, **fields: object
    ) -> None:
        """Write a condition with its fields. Raises RecordGone, ApiError, TransportError."""
        condition = Condition(type_, reason, self.outside.secrets.cut_from(message), is_true)
        now = self.outside.clock.wall()

        def changed(status: Json) -> Json:
            return statuses.with_condition(statuses.with_fields(status, fields), condition, now)

        self.record.change_status(changed)

    def progress(self, step: str, percent: float) -> None:
        """Write the progress of a step; failures are logged."""
        line, now = ProgressLine(step, percent), self.outside.clock.wall()
        self.record.try_status(lambda status: statuses.with_progress(status, line, now))

    def storage(self, of: StorageProvider, reason: str, *, bulk: bool = True) -> Storage:
        """A client of the storage in a spec. Raises JobFailed with this reason."""
        try:
            return self.outside.open_storage(location_of(of), self.outside.environ, bulk)
        except (UnknownStorage, StorageError) as error:
            raise JobFailed(reason, str(error)) from error

    def meta(self, storage: Storage, reason: str) -> BackupMeta:
        """The parsed `backupmeta`. Raises JobFailed with this reason; Stopped."""
        return self._meta(storage, reason, read_meta)

    def log_meta(self, storage: Storage, reason: str) -> BackupMeta:
        """The parsed `backupmeta` of a log backup. Raises like `meta`."""
        return self._meta(storage, reason, read_log_meta)

    def _meta(self, storage: Storage, reason: str, read: Callable[[bytes], BackupMeta]) -> BackupMeta:
        try:
            return self.patiently(lambda: read(storage.read(NAME)))
        except Unreadable as error:
            raise JobFailed(reason, f"{storage.location}: {error}") from error
        except StorageError as error:
            raise JobFailed(reason, str(error)) from error

    def patiently(self, work: Callable[[], _T]) -> _T:
        """Run `work` on storage; up to six times with growing pauses if an error may pass.

        Raises StorageError, Stopped, and the exceptions of `work`.
        """
        pause = 1.0
        for _ in range(_TRIES - 1):
            try:
                return work()
            except StorageError as error:
                if not error.may_pass:
                    raise
                _log.info("asking the storage again", cause=str(error), seconds=pause)
            if self.outside.stop.wait(self.outside.clock, pause):
                raise Stopped
            pause = min(pause * 2, _LONGEST_PAUSE)
        return work()


def job_for(outside: Outside, resource: Resource, namespace: str, name: str) -> Job:
    """A job for the object with this name."""
    return Job(Record(outside.client, outside.clock, resource, namespace, name), outside)


def finished_meta(storage: Storage) -> BackupMeta | None:
    """The parsed `backupmeta` if it exists: BR writes it last. Raises StorageError, Unreadable."""
    try:
        return read_meta(storage.read(NAME))
    except ObjectMissing:
        return None


def reporting(job: Job, work: Callable[[], None], *, may_be_followed: bool = False) -> None:
    """Run the work; if it fails, write the condition and raise JobFailed.

    If another pod of the Job `may_be_followed`, a failure is not yet Failed: that condition would release the files
    that the next pod reads. The operator writes Failed once the Job has failed.
    """
    try:
        work()
    except JobFailed as error:
        is_last = not may_be_followed or error.condition != "Failed"
        job.condition(error.condition if is_last else "RetryFailed", error.reason, error.message)
        raise
