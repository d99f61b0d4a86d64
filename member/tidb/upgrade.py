"""How TiDB's pods are restarted: they close their connections themselves (lifecycle.md 7.6)."""

from apis import predicates
from member.context import ReconcileContext
from member.lifecycle.rolling import Rolling
from member.outcome import Waiting
from member.tidb.failover import ignored_pods
from member.tidb.smooth_upgrade import begin, finish


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    if predicates.in_phase(ctx.tc, "pd", "Upgrade", "Scale"):
        return Waiting("WaitingForPD", "PD is upgraded or scaled before TiDB's pods are restarted")
    if predicates.in_phase(ctx.tc, "tikv", "Upgrade", "Scale"):
        return Waiting("WaitingForTiKV", "TiKV is upgraded or scaled before TiDB's pods are restarted")
    return None


def _unmet_condition(ctx: ReconcileContext, pod: str) -> str:
    member = ctx.status.tidb.members.get(pod)
    return "" if member and member.health else "serves"


ROLLING = Rolling(_blocked, _unmet_condition, begin=begin, ignored_pods=ignored_pods, finish=finish)
