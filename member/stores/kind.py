"""A kind of stores, as a value: TiKV's or TiFlash's."""

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
    """How many stores of a kind PD needs for the replicas that it keeps on them.

    `kept` says which replicas; `way_out` what else than stores may change.
    """

    stores: int
    kept: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """What differs between TiKV and TiFlash, where both are stores of PD.

    `name` is the component; `spec` and `status` find its parts of the cluster's; `period` are the seconds after which a
    loss is recorded. `ask` asks the server of a pod anything, to hear whether it serves; `leaders` how many regions it
    leads, where it leads any; `replicas` how many replicas of a region vote on stores of the kind, None where none do.
    `needs` says, from PD's answers, below how many stores of the kind replicas lack a place.
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
        """The component as people write it."""
        return component_type(self.name).title

    def placement(self, pd: PDReads) -> Placement:
        """What PD's configuration allows for the regions on stores of the kind."""
        return Placement(pd.config().low_space_ratio, self.replicas(pd) if self.replicas else None)

    def has(self, store: Store) -> bool:
        """Whether a store is of this kind, by its label (F31)."""
        return store.is_tiflash == (self.name == "tiflash")

    def status_in(self, ctx: ReconcileContext) -> StoresStatus:
        """Its part of the working copy of the status."""
        return self.status(ctx.status)
