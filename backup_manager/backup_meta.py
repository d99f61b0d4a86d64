"""What `backupmeta` says, which BR writes last (backup.md 7.4, 7.7): a protobuf message, of which four fields count."""

from collections.abc import Iterator
from dataclasses import dataclass

NAME = "backupmeta"

_FILES, _START_VERSION, _END_VERSION, _BACKUP_SIZE = 4, 5, 6, 25
_FILE_SIZE = 11

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
"""Wire types of one length, in bytes."""
_LONGEST_VARINT = 10


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
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(content, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _varint(content, at)
            if at + length > len(content):
                raise Unreadable(f"{NAME} ends in the middle of field {number}")
            yield number, content[at : at + length]
            at += length
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise Unreadable(f"{NAME} is no protobuf message (wire type {wire})")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(content[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise Unreadable(f"{NAME} ends in the middle of a number")


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
