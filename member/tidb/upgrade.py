"""How TiDB's pods are restarted: they close their connections themselves (lifecycle.md 7.6)."""

from kube.objects import Json, Object
from member.context import ReconcileContext
from member.lifecycle.rolling import Rolling
from member.outcome import NotDone
from member.tidb import binlog, smooth_upgrade
from member.tidb.failover import ignored_pods


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    member = ctx.status.tidb.members.get(pod.metadata.name)
    return "" if member and member.health else "serves"


def _begin(ctx: ReconcileContext, body: Json, desired: Json) -> NotDone | None:
    return binlog.refused_upgrade(ctx, body, desired) or smooth_upgrade.begin(ctx, body, desired)


ROLLING = Rolling(
    unmet_condition=_unmet_condition, begin=_begin, ignored_pods=ignored_pods, finish=smooth_upgrade.finish
)
