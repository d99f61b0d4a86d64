"""Comparison of the files that `backupmeta` lists with the storage."""

import hashlib
from dataclasses import dataclass, field

from backup_manager.backup_meta import NAME, NamedFile, Unreadable, named_files
from backup_manager.outcomes import Stopped
from backup_manager.storage.objects import Storage
from backup_manager.storage.parts import Parts
from ports.stopping import Stop

_KEPT = 10


@dataclass(slots=True)
class Compared:
    """The compared files, their bytes, the number with a correct checksum, and the first differences in words."""

    files: int = 0
    bytes: int = 0
    checksums: int = 0
    wrong_files: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Record a difference."""
        self.wrong_files += 1
        if len(self.wrong) < _KEPT:
            self.wrong.append(what)


def compare(storage: Storage, stop: Stop, *, checksums: bool) -> Compared:
    """Check that each file exists with its size and, with `checksums`, with the content that BR wrote.

    Files that list other files are always read whole. Memory grows by a hundred bytes per file. Raises StorageError,
    Unreadable, Stopped.
    """
    there = {stored.key: stored.size for page in storage.pages() for stored in page}
    found = Compared()

    def read(file: NamedFile) -> bytes:
        content = storage.read(file.name)
        if file.sha256 and hashlib.sha256(content).digest() != file.sha256:
            raise Unreadable(f"{file.name}, which names other files, is not what BR wrote, or is encrypted")
        return content

    for file in named_files(storage.read(NAME), read):
        if stop.is_set():
            raise Stopped
        found.files += 1
        size = there.get(file.name)
        if size is None:
            found.note(f"{file.name} is missing")
        elif file.size and size != file.size:
            found.note(f"{file.name} has {size} bytes instead of {file.size}")
        else:
            found.bytes += size
            if checksums and file.sha256:
                _check(storage, file, found, stop)
    return found


def _check(storage: Storage, file: NamedFile, found: Compared, stop: Stop) -> None:
    digest = hashlib.sha256()
    for part in storage.download(file.name, Parts()):
        if stop.is_set():
            raise Stopped
        digest.update(part)
    if digest.digest() == file.sha256:
        found.checksums += 1
    else:
        found.note(f"{file.name} has another checksum")
