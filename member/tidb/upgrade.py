"""How TiDB's pods are restarted: they close their connections themselves (lifecycle.md 7.6)."""

from kube.objects import Object
from member.context import ReconcileContext
from member.lifecycle.rolling import Rolling
from member.tidb.failover import ignored_pods
from member.tidb.smooth_upgrade import begin, finish


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    member = ctx.status.tidb.members.get(pod.metadata.name)
    return "" if member and member.health else "serves"


ROLLING = Rolling(unmet_condition=_unmet_condition, begin=begin, ignored_pods=ignored_pods, finish=finish)
