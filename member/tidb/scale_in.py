"""How TiDB gives up a pod: it keeps nothing that others need (lifecycle.md 8.7)."""

from apis.tidbcluster import TidbCluster
from member.departure import Departure
from member.outcome import Waiting
from member.polling import next_look
from member.proofs import Proof, spec_confirmed
from member.scale_in import ScaleIn


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tidb.scale_policy if tc.spec.tidb else None
    return (policy.scale_in_parallelism if policy else None) or 1


def _leave(leaving: Departure) -> Proof | Waiting:
    soon = next_look(leaving.round_, "tidb")
    unseen = Waiting("SpecChanged", "waiting until the cache shows the TidbCluster as it is", soon)
    return spec_confirmed(leaving.round_) or unseen


def _stay(staying: Departure) -> None:
    staying.clear()


SCALE_IN = ScaleIn(_limit, _leave, _stay)
