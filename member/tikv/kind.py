"""TiKV's stores (lifecycle.md 8.5, 9.3)."""

from dataplane.pd import PDReads
from member import api_clients
from member.context import ReconcileContext
from member.stores.kind import Needs, StoreKind


def _leaders(ctx: ReconcileContext, pod: str) -> int:
    return api_clients.tikv(ctx, pod).leader_count()


def _needs(pd: PDReads) -> Needs:
    replicas = pd.replicas()
    way_out = "lower max-replicas or the counts of placement rules in PD"
    return Needs(replicas, f"PD keeps {replicas} replicas of each region", way_out)


KIND = StoreKind(
    name="tikv",
    spec=lambda spec: spec.tikv,
    status=lambda status: status.tikv,
    period=lambda settings: settings.tikv_period,
    ask=lambda ctx, pod: api_clients.tikv(ctx, pod).status(),
    needs=_needs,
    leaders=_leaders,
    replicas=lambda pd: pd.replicas(),
)
