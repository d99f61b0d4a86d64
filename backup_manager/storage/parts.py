"""The parts in which a large object is written and read: each is a request with its own retries."""

from dataclasses import dataclass

MIB = 1 << 20

_USUAL = 16 * MIB
_AT_ONCE = 4
_MOST = 9_000
"""The maximum number of parts of an object: services accept 10,000, and the exact size is not always known before."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The size of a part in bytes, and the number of concurrent ones; all of these are in memory."""

    size: int = _USUAL
    at_once: int = _AT_ONCE


def parts_for(total: int, wanted: Parts | None = None) -> Parts:
    """The parts of an object of the given size; the requested ones, unless they would be too many."""
    wanted = wanted or Parts()
    return Parts(max(wanted.size, -(-total // _MOST)), wanted.at_once)
