"""Transfers of files between a volume and object storage, in parts, with progress in the status (backup.md 7.9)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from apis import rclone_options
from apis.storage_providers import StorageProvider
from backup_manager.jobs import Job
from backup_manager.outcomes import Stopped
from backup_manager.storage.errors import ObjectMissing, StorageError
from backup_manager.storage.objects import Storage
from backup_manager.storage.parts import Parts, parts_for

_STEP = 5.0
"""Percent between two writes of the status."""
_READ = 1 << 20


def parts_of(storage: StorageProvider) -> Parts:
    """The parts that a spec requests. Raises UnknownOption."""
    usual, wanted = Parts(), rclone_options.parse(storage.s3.options if storage.s3 else ())
    return Parts(wanted.part_size or usual.size, wanted.parts_at_once or usual.at_once)


def upload(job: Job, file: Path, storage: Storage, key: str, parts: Parts) -> None:
    """Upload a whole file. Raises StorageError, OSError, Stopped."""
    total = file.stat().st_size
    storage.upload(key, _reporting(job, "Upload", total, _read(file)), parts_for(total, parts))
    if (there := storage.size(key)) != total:
        raise StorageError(f"write {key} to", storage.location, f"{there or 0} bytes of {total} are there")


def download(job: Job, storage: Storage, key: str, file: Path, parts: Parts) -> None:
    """Download an object to a volume; the file gets its name once it is complete. Raises StorageError, OSError,
    Stopped.
    """
    total = storage.size(key)
    if total is None:
        raise ObjectMissing(f"read {key} in", storage.location, "it is not there; correct the path of the archive")
    part = file.with_name(f"{file.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as target:
        for chunk in _reporting(job, "Download", total, storage.download(key, parts_for(total, parts))):
            target.write(chunk)
    part.replace(file)


def _read(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(_READ):
            yield chunk


def _reporting(job: Job, step: str, total: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pass chunks on and report the progress. Raises Stopped."""
    done, reported = 0, 0.0
    for chunk in chunks:
        if job.outside.stop.is_set():
            raise Stopped
        yield chunk
        done += len(chunk)
        percent = round(100 * done / total, 1)
        if percent - reported >= _STEP or done == total:
            reported = percent
            job.progress(step, percent)
