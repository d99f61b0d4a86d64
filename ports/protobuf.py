"""Minimal reading and writing of protobuf fields, without message definitions."""

from collections.abc import Iterable, Iterator

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
"""The lengths of fixed-length wire types in bytes."""
_LONGEST_VARINT = 10


class NoMessage(Exception):
    """Raised for bytes that are not a protobuf message."""


def fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message with their numbers, except fields of fixed length. Raises NoMessage."""
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
                raise NoMessage(f"it ends in the middle of field {number}")
            yield number, content[at : at + length]
            at += length
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise NoMessage(f"it is no protobuf message (wire type {wire})")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(content[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise NoMessage("it ends in the middle of a number")


def message(content: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A message with the given fields, in this order."""
    return b"".join(_field(number, value) for number, value in content)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _encoded(number << 3 | _VARINT) + _encoded(value)
    return _encoded(number << 3 | _BYTES) + _encoded(len(value)) + value


def _encoded(value: int) -> bytes:
    """A varint: seven bits per byte."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
