"""TiFlash's stores: learners of the tables with TiFlash replicas (lifecycle.md 8.6, 9.3)."""

from dataplane.pd import PDReads
from member import api_clients
from member.context import ReconcileContext
from member.stores.kind import Needs, StoreKind


def _status(ctx: ReconcileContext, pod: str) -> str:
    return api_clients.tiflash(ctx, pod).store_status()


def _needs(pd: PDReads) -> Needs:
    """The replicas of the table with the most: PD puts no two replicas of a table on one store."""
    most = max(pd.tiflash_rules(), key=lambda rule: (rule.count, rule.id), default=None)
    if most is None:
        return Needs(0, "", "")
    kept = f"the placement rule {most.id} of group {most.group_id} keeps {most.count} replicas of a table on them"
    return Needs(most.count, kept, "lower the replicas of that table with ALTER TABLE ... SET TIFLASH REPLICA")


KIND = StoreKind(
    name="tiflash",
    spec=lambda spec: spec.tiflash,
    status=lambda status: status.tiflash,
    period=lambda settings: settings.tiflash_period,
    ask=_status,
    needs=_needs,
)
