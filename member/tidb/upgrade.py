"""Rolling restarts of TiDB: servers close their connections themselves (lifecycle.md 7.6)."""

from kube.objects import Object
from member.context import ReconcileContext
from member.evidence import Spared, spared
from member.lifecycle.rolling import Rolling
from member.observed.pods import pods_of
from member.outcome import NotDone
from member.tidb import binlog, smooth_upgrade
from member.tidb.failover import ignored_pods


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    member = ctx.status.tidb.members.get(pod.metadata.name)
    return "" if member and member.health else "serves"


def _spare(ctx: ReconcileContext, name: str) -> Spared | NotDone:
    pod = next((each for each in pods_of(ctx, "tidb") if each.metadata.name == name), None)
    begun = smooth_upgrade.begin(ctx, pod) if pod else None
    return begun or spared(name, "it is not Ready, so no Service leads to it")


ROLLING = Rolling(
    unmet_condition=_unmet_condition,
    begin=binlog.refused_upgrade,
    prepare=smooth_upgrade.begin,
    spare=_spare,
    ignored_pods=ignored_pods,
    finish=smooth_upgrade.finish,
)
