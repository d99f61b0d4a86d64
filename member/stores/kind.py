"""A kind of stores, as a value: TiKV or TiFlash."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from apis.component_specs import TiFlashSpec, TiKVSpec
from apis.component_statuses import StoresStatus
from apis.components import component_type
from apis.tidbcluster import TidbClusterSpec, TidbClusterStatus
from dataplane.pd import PDReads, Store
from member.context import FailoverSettings, ReconcileContext
from member.stores.room import Placement

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
