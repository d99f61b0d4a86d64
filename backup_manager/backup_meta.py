"""`backupmeta`, which BR writes last (backup.md 7.4, 7.7): a protobuf message, of which few fields are needed.

It lists the files of the backup or, in its second version, files that list them, at any depth.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ports import protobuf

NAME = "backupmeta"

_FILES, _START_VERSION, _END_VERSION, _BACKUP_SIZE = 4, 5, 6, 25
_INDEXES = (13, 14, 15, 16)
"""Fields of the second version: files that list data files, schemas, ranges, definitions."""
_INDEX_FILES, _DATA_FILES = 1, 2
_FILE_NAME, _FILE_SHA256, _FILE_SIZE = 1, 2, 11


class Unreadable(Exception):
    """Raised for bytes that are not a `backupmeta`."""


@dataclass(frozen=True, slots=True)
class BackupMeta:
    """Versions are TSOs, `size` is in bytes."""

    start_version: int
    end_version: int
    size: int


def read_meta(content: bytes) -> BackupMeta:
    """Parse the message. Raises Unreadable, also without an end version, because then nothing was saved."""
    found = _read(content)
    if found.end_version == 0:
        raise Unreadable(f"{NAME} has no end version; it is incomplete or encrypted")
    return found


def read_log_meta(content: bytes) -> BackupMeta:
    """Parse the message of a log backup, which has a start but no end. Raises Unreadable."""
    found = _read(content)
    if found.start_version == 0:
        raise Unreadable(f"{NAME} has no start version; it does not belong to a log backup")
    return found


def _read(content: bytes) -> BackupMeta:
    numbers = {_START_VERSION: 0, _END_VERSION: 0, _BACKUP_SIZE: 0}
    of_files = 0
    for number, value in _fields(content):
        if isinstance(value, int):
            numbers[number] = value
        elif number == _FILES:
            of_files += sum(size for inner, size in _fields(value) if inner == _FILE_SIZE and isinstance(size, int))
    size = numbers[_BACKUP_SIZE] or len(content) + of_files
    return BackupMeta(numbers[_START_VERSION], numbers[_END_VERSION], size)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the backup needs; `size` is 0 and `sha256` empty if BR did not record them."""

    name: str
    size: int
    sha256: bytes


def named_files(content: bytes, read: Callable[[NamedFile], bytes]) -> Iterator[NamedFile]:
    """All files that `backupmeta` lists; `read` returns those that list further ones. Raises Unreadable."""
    for number, value in _fields(content):
        if isinstance(value, int):
            continue
        if number == _FILES:
            yield _named(value)
        elif number in _INDEXES:
            yield from _indexed(value, read)


def _indexed(index: bytes, read: Callable[[NamedFile], bytes]) -> Iterator[NamedFile]:
    for number, value in _fields(index):
        if number == _DATA_FILES and isinstance(value, bytes):
            yield _named(value)
        elif number == _INDEX_FILES and isinstance(value, bytes):
            file = _named(value)
            yield file
            yield from _indexed(read(file), read)


def _named(content: bytes) -> NamedFile:
    found = dict(_fields(content))
    name, size, sha256 = (found.get(number) for number in (_FILE_NAME, _FILE_SIZE, _FILE_SHA256))
    if not isinstance(name, bytes) or not name:
        raise Unreadable(f"{NAME} has a file without a name")
    return NamedFile(
        name.decode("utf-8", "replace"),
        size if isinstance(size, int) else 0,
        sha256 if isinstance(sha256, bytes) else b"",
    )


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, with their numbers. Raises Unreadable."""
    try:
        yield from protobuf.fields(content)
    except protobuf.NoMessage as error:
        raise Unreadable(f"{NAME}: {error}") from error


def readable(size: int) -> str:
    """A size in v1.6's form: SI units, base 1000, e.g. `8.2 MB` and `82 MB`."""
    if size < 10:
        return f"{size} B"
    exponent = 0
    scaled = float(size)
    while scaled >= 1000 and exponent < len(_UNITS) - 1:
        scaled /= 1000
        exponent += 1
    value = int(scaled * 10 + 0.5) / 10
    return f"{value:.1f} {_UNITS[exponent]}" if value < 10 else f"{value:.0f} {_UNITS[exponent]}"


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
