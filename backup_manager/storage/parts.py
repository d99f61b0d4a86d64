"""In which pieces a large object is written and read: each is a request, which is tried again by itself."""

from dataclasses import dataclass

MIB = 1 << 20

_USUAL = 16 * MIB
_AT_ONCE = 4
_MOST = 9_000
"""Pieces of one object: services take 10,000, and the last is not always known before."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The size of a piece in bytes, and how many are under way; all of these are in memory."""

    size: int = _USUAL
    at_once: int = _AT_ONCE


def parts_for(total: int, wanted: Parts | None = None) -> Parts:
    """The pieces of an object of a size; those that are wanted, unless they would be too many for any service."""
    wanted = wanted or Parts()
    return Parts(max(wanted.size, -(-total // _MOST)), wanted.at_once)
