"""TiKV and TiFlash as kinds of stores of PD (lifecycle.md 8.5, 8.6, 9.3), and the room on their stores.

PD accepts the removal of a store whose data fits nowhere. The store then stays Offline, and the others fill up until PD
moves no more regions to them. `shortage` finds that before the removal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from apis.component_specs import TiFlashSpec, TiKVSpec
from apis.component_statuses import StoresStatus
from apis.components import component_type
from apis.tidbcluster import TidbClusterSpec, TidbClusterStatus
from dataplane.pd import DISCONNECTED, OFFLINE, UP, PDReads, Space, Store
from member import api_clients
from member.context import FailoverSettings, ReconcileContext

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
    space = store.space
    if space is None:
        return None
    if store.state_name != OFFLINE or store.region_size is None:
        return space.used
    return min(space.used, store.region_size * _MEBIBYTE)


def _room(store: Store, space: Space, copy: int, placement: Placement) -> int:
    """Bytes that PD may still move to a store, which never holds more than one `copy` of all data."""
    kept_free = int(space.capacity * placement.kept_free)
    if store.region_count < _FEW_REGIONS:
        kept_free = min(kept_free, _ROOM_FOR_FEW)
    return max(min(space.available - kept_free, copy - space.used), 0)


def _shown(count: int) -> str:
    unit, name = (_GIBIBYTE, "GiB") if count >= _GIBIBYTE else (_MEBIBYTE, "MiB")
    return f"{count / unit:.1f} {name}"


StoreSpec: TypeAlias = TiKVSpec | TiFlashSpec


@dataclass(frozen=True, slots=True)
class Needs:
    """The number of stores of a kind that PD needs for the replicas on them.

    `kept` describes these replicas, `way_out` what to change other than the number of stores.
    """

    stores: int
    kept: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """The differences between TiKV and TiFlash as stores of PD.

    `name` is the component; `spec` and `status` return its sections; `period` is the delay in seconds before a loss is
    recorded. `ask` sends a request to the server of a pod to find out if it serves. `leaders` returns the number of
    regions that it leads, None if the kind leads none. `replicas` returns the number of voting replicas per region,
    None if none vote. `needs` computes, from PD's answers, the number of stores below which replicas lack a place.
    """

    name: str
    spec: Callable[[TidbClusterSpec], StoreSpec | None]
    status: Callable[[TidbClusterStatus], StoresStatus]
    period: Callable[[FailoverSettings], float]
    ask: Callable[[ReconcileContext, str], object]
    needs: Callable[[PDReads], Needs]
    leaders: Callable[[ReconcileContext, str], int] | None = None
    replicas: Callable[[PDReads], int] | None = None

    @property
    def title(self) -> str:
        """The display name of the component, e.g. "TiKV"."""
        return component_type(self.name).title

    def placement(self, pd: PDReads) -> Placement:
        """What PD's configuration allows for the regions on stores of this kind."""
        return Placement(pd.config().low_space_ratio, self.replicas(pd) if self.replicas else None)

    def has(self, store: Store) -> bool:
        """True if a store is of this kind, by its label (F31)."""
        return store.is_tiflash == (self.name == "tiflash")

    def status_in(self, ctx: ReconcileContext) -> StoresStatus:
        """The section of this kind in the working copy of the status."""
        return self.status(ctx.status)


def _leaders_of_tikv(ctx: ReconcileContext, pod: str) -> int:
    return api_clients.tikv(ctx, pod).leader_count()


def _needs_of_tikv(pd: PDReads) -> Needs:
    replicas = pd.replicas()
    way_out = "lower max-replicas or the counts of placement rules in PD"
    return Needs(replicas, f"PD keeps {replicas} replicas of each region", way_out)


TIKV_STORES = StoreKind(
    name="tikv",
    spec=lambda spec: spec.tikv,
    status=lambda status: status.tikv,
    period=lambda settings: settings.tikv_period,
    ask=lambda ctx, pod: api_clients.tikv(ctx, pod).status(),
    needs=_needs_of_tikv,
    leaders=_leaders_of_tikv,
    replicas=lambda pd: pd.replicas(),
)


def _status_of_tiflash(ctx: ReconcileContext, pod: str) -> str:
    return api_clients.tiflash(ctx, pod).store_status()


def _needs_of_tiflash(pd: PDReads) -> Needs:
    """The replicas of the table with the most: PD puts no two replicas of a table on one store."""
    most = max(pd.tiflash_rules(), key=lambda rule: (rule.count, rule.id), default=None)
    if most is None:
        return Needs(0, "", "")
    kept = f"the placement rule {most.id} of group {most.group_id} keeps {most.count} replicas of a table on them"
    return Needs(most.count, kept, "lower the replicas of that table with ALTER TABLE ... SET TIFLASH REPLICA")


TIFLASH_STORES = StoreKind(
    name="tiflash",
    spec=lambda spec: spec.tiflash,
    status=lambda status: status.tiflash,
    period=lambda settings: settings.tiflash_period,
    ask=_status_of_tiflash,
    needs=_needs_of_tiflash,
)
