"""The size that a store assumes for its disk (objects.md 4.3)."""

from collections.abc import Mapping

from apis.shared import Quantity
from ports import quantity

_GIB = 1024**3
_MIB = 1024**2


def capacity(limits: Mapping[str, Quantity]) -> str:
    """The storage limit in the notation of TiKV and TiFlash, whose GB and MB are binary; `0` means no limit."""
    limit = quantity.parse(limits.get("storage", 0))
    if limit != int(limit):
        return "0"
    size = int(limit)
    if size == 0:
        return "0"
    return f"{size // _GIB}GB" if size % _GIB == 0 else f"{size // _MIB}MB"
