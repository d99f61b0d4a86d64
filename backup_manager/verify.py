"""Verification of a backup's files: the condition Verified, after a backup and by `backup-manager verify`.

It means that every file that `backupmeta` lists is in the storage with the size that BR recorded and, on request, with
its checksum. Only a restore proves that the files make a cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from apis.backup_conditions import FILES_DIFFER, VERIFIED
from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup
from backup_manager import statuses
from backup_manager.backup_meta import Unreadable, readable
from backup_manager.jobs import Job, job_for
from backup_manager.outcomes import JobFailed, Stopped, Unusable
from backup_manager.outside import Outside
from backup_manager.places import Elsewhere, UnknownStorage, location_at
from backup_manager.storage.errors import ObjectMissing, StorageError
from backup_manager.stored_files import Compared, compare
from kube.objects import condition_of
from kube.resources import BACKUPS

_log = structlog.get_logger(__name__)

EXTENT = "BACKUP_MANAGER_VERIFY"
"""The variable (spec.env) with the extent of the verification after a backup."""
SIZES, CHECKSUMS, NOTHING = "sizes", "checksums", "nothing"

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The flags of `backup-manager verify`."""

    namespace: str
    name: str
    checksums: bool = False


def run_verify(options: VerifyOptions, outside: Outside) -> None:
    """Verify the files of a Complete Backup, and record the result.

    Raises JobFailed if they differ; Unusable, Stopped; RecordGone, ApiError, TransportError.
    """
    job = job_for(outside, BACKUPS, options.namespace, options.name)
    backup = with_backup_defaults(job.read(Backup))
    if backup.spec.br is None or backup.spec.backup_mode != "snapshot":
        raise Unusable(
            "only a snapshot by BR names its files; an export is one archive, whose size is compared at once"
        )
    if not statuses.holds(job.record.read().get("status") or {}, "Complete"):
        raise Unusable(f"Backup {options.namespace}/{options.name} is not Complete; there is nothing to look at yet")
    found = _verify(job, backup, checksums=options.checksums)
    if not found.is_true:
        raise JobFailed(found.reason, found.message)


def require_known_extent(environ: Mapping[str, str]) -> None:
    """Raise Unusable for an unknown value of the variable."""
    extent = environ.get(EXTENT) or SIZES
    if extent not in (SIZES, CHECKSUMS, NOTHING):
        raise Unusable(f"{EXTENT}={extent} in spec.env must be {SIZES}, {CHECKSUMS} or {NOTHING}")


def verify_once(job: Job, backup: Backup) -> None:
    """After a backup: verify its files once. The backup stays Complete, whatever the result.

    A signal ends it. Raises RecordGone, ApiError, TransportError.
    """
    extent = job.outside.environ.get(EXTENT) or SIZES
    conditions = (job.record.read().get("status") or {}).get("conditions") or ()
    if extent == NOTHING or condition_of(conditions, VERIFIED):
        return
    try:
        _verify(job, backup, checksums=extent == CHECKSUMS)
    except Stopped:
        _log.warning("ended by a signal before all files were looked at; `backup-manager verify` does it again")


@dataclass(frozen=True, slots=True)
class _Found:
    is_true: bool
    reason: str
    message: str


def _verify(job: Job, backup: Backup, *, checksums: bool) -> _Found:
    """Write the condition. Raises Stopped; RecordGone, ApiError, TransportError."""
    try:
        place = location_at(backup.spec, job.read(Backup).status.backup_path)
        storage = job.outside.open_storage(place, job.outside.environ, True)
        found = _described(
            job.patiently(lambda: compare(storage, job.outside.stop, checksums=checksums)), checksums=checksums
        )
    except ObjectMissing as error:
        found = _Found(is_true=False, reason=FILES_DIFFER, message=str(error))
    except (StorageError, UnknownStorage, Elsewhere, Unreadable) as error:
        found = _Found(is_true=False, reason="NotVerified", message=str(error))
    _log.info("verified", is_true=found.is_true, reason=found.reason, message=found.message)
    job.condition(VERIFIED, found.reason, found.message, is_true=found.is_true)
    return found


def _described(compared: Compared, *, checksums: bool) -> _Found:
    if compared.wrong:
        shown = "; ".join(compared.wrong[:_SHOWN])
        rest = f"; and {compared.wrong_files - _SHOWN} more" if compared.wrong_files > _SHOWN else ""
        return _Found(
            is_true=False,
            reason=FILES_DIFFER,
            message=f"of {compared.files} files: {shown}{rest}",
        )
    also = f"; {compared.checksums} checksums are right" if checksums else ""
    message = f"all files are there with their sizes: {compared.files}, together {readable(compared.bytes)}{also}"
    return _Found(is_true=True, reason="FilesFound", message=message)
