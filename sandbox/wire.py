"""Protobuf's wire format: numbered fields, each an integer or bytes."""

from collections.abc import Iterable, Iterator
from typing import Any


class Malformed(ValueError):
    """Raised when bytes are no protobuf object of a known kind; the message says why."""


def fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values in the order of the wire: integers, or bytes for everything with a length."""
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        match tag & 7:
            case 0:
                value, position = _varint(raw, position)
                yield tag >> 3, value
            case 1 | 5 as wire:
                position += 8 if wire == 1 else 4
            case 2:
                size, position = _varint(raw, position)
                if position + size > len(raw):
                    raise Malformed("unexpected EOF")
                yield tag >> 3, raw[position : position + size]
                position += size
            case wire:
                raise Malformed(f"unknown wire type {wire}")


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(raw):
        byte = raw[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise Malformed("unexpected EOF")


def message(fields_: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A message with these fields, in this order."""
    return b"".join(_field(number, value) for number, value in fields_)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    return _number(number << 3 | 2) + _number(len(value)) + value


def _number(value: int) -> bytes:
    """A number of any size, seven bits a byte."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
