"""The room on the remaining stores for the data of the leaving stores (lifecycle.md 8.5).

PD accepts the removal of a store whose data fits nowhere. The store then stays Offline, and the others fill up until PD
moves no more regions to them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dataplane.pd import DISCONNECTED, OFFLINE, UP, Space, Store

_MEBIBYTE = 2**20
_GIBIBYTE = 2**30

_FEW_REGIONS = 100
_ROOM_FOR_FEW = 8 * _GIBIBYTE
"""A store with few regions is low on space only if less than this is free, regardless of the size of its disk."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What PD's configuration allows: the part of a disk that it fills, and the number of replicas per region.

    `replicas` is None if regions have different numbers of replicas.
    """

    low_space_ratio: float
    replicas: int | None = None

    @property
    def kept_free(self) -> Fraction:
        """The part of a disk that PD keeps free."""
        return 1 - Fraction(str(self.low_space_ratio))


def shortage(leaving: Sequence[Store], staying: Sequence[Store], placement: Placement) -> str:
    """What the remaining stores lack; empty if the data may fit, or if PD does not report the necessary figures.

    The estimate is optimistic: data that PD distributes unevenly, or that grows meanwhile, may still not fit.
    """
    takers = [store for store in staying if store.state_name in (UP, DISCONNECTED)]
    data = [_to_move(store) for store in leaving]
    disks = [store.space for store in takers]
    if not takers or None in data or None in disks:
        return ""
    held = sum(filter(None, data))
    stored = held + sum(space.used for space in disks if space)
    copy = stored if placement.replicas is None else math.ceil(stored / placement.replicas)
    free = sum(_room(store, space, copy, placement) for store, space in zip(takers, disks, strict=True) if space)
    if held <= free:
        return ""
    return (
        f"{_shown(held)} of data would have to move, but the stores that stay have room for {_shown(free)}: PD gives "
        f"no store two replicas of a region, and none to a store with less than {float(placement.kept_free):.0%} of "
        f"its disk free (low-space-ratio {placement.low_space_ratio})"
    )


def _to_move(store: Store) -> int | None:
    """Bytes that have to leave a store; None if unknown. The used space of a disk falls later than the region size."""
    if store.space is None:
        return None
    if store.state_name != OFFLINE or store.region_size is None:
        return store.space.used
    return min(store.space.used, store.region_size * _MEBIBYTE)


def _room(store: Store, space: Space, copy: int, placement: Placement) -> int:
    """Bytes that PD may still move to a store, which never holds more than one `copy` of all data."""
    kept_free = int(space.capacity * placement.kept_free)
    if store.region_count < _FEW_REGIONS:
        kept_free = min(kept_free, _ROOM_FOR_FEW)
    return max(min(space.available - kept_free, copy - space.used), 0)


def _shown(count: int) -> str:
    unit, name = (_GIBIBYTE, "GiB") if count >= _GIBIBYTE else (_MEBIBYTE, "MiB")
    return f"{count / unit:.1f} {name}"
