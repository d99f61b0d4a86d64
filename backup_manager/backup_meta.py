"""What `backupmeta` says, which BR writes last (backup.md 7.4, 7.7): a protobuf message, of which four fields count."""

from collections.abc import Iterator
from dataclasses import dataclass

from ports import protobuf

NAME = "backupmeta"

_FILES, _START_VERSION, _END_VERSION, _BACKUP_SIZE = 4, 5, 6, 25
_FILE_SIZE = 11


class Unreadable(Exception):
    """Raised for bytes that are no `backupmeta`."""


@dataclass(frozen=True, slots=True)
class BackupMeta:
    """Versions are TSOs, `size` is in bytes."""

    start_version: int
    end_version: int
    size: int


def read_meta(content: bytes) -> BackupMeta:
    """What the message says. Raises Unreadable, also for one without an end version: nothing was saved by it."""
    numbers = {_START_VERSION: 0, _END_VERSION: 0, _BACKUP_SIZE: 0}
    of_files = 0
    for number, value in _fields(content):
        if isinstance(value, int):
            numbers[number] = value
        elif number == _FILES:
            of_files += sum(size for inner, size in _fields(value) if inner == _FILE_SIZE and isinstance(size, int))
    if numbers[_END_VERSION] == 0:
        raise Unreadable(f"{NAME} has no end version; it is incomplete or encrypted")
    size = numbers[_BACKUP_SIZE] or len(content) + of_files
    return BackupMeta(numbers[_START_VERSION], numbers[_END_VERSION], size)


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, with their numbers. Raises Unreadable."""
    try:
        yield from protobuf.fields(content)
    except protobuf.NoMessage as error:
        raise Unreadable(f"{NAME}: {error}") from error


def readable(size: int) -> str:
    """A size as v1.6 shows it: SI units, base 1000, such as `8.2 MB` and `82 MB`."""
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
