"""How TiDB's pods are restarted: they close their connections themselves (lifecycle.md 7.6)."""

from apis import predicates
from member.outcome import Waiting
from member.rolling import Rolling
from member.round import Round
from member.tidb.failover import excused
from member.tidb.smooth_upgrade import begin, finish


def _blocked(round_: Round) -> Waiting | None:
    if predicates.in_phase(round_.tc, "pd", "Upgrade", "Scale"):
        return Waiting("WaitingForPD", "PD is upgraded or scaled before TiDB's pods are restarted")
    if predicates.in_phase(round_.tc, "tikv", "Upgrade", "Scale"):
        return Waiting("WaitingForTiKV", "TiKV is upgraded or scaled before TiDB's pods are restarted")
    return None


def _settling(round_: Round, pod: str) -> str:
    member = round_.status.tidb.members.get(pod)
    return "" if member and member.health else "serves"


ROLLING = Rolling(_blocked, _settling, begin=begin, excused=excused, finish=finish)
