"""How TiDB gives up a pod: it keeps nothing that others need, but those that stay must serve (lifecycle.md 8.7)."""

from apis.ordinals import desired_replicas
from apis.tidbcluster import TidbCluster
from member.departure import Departure
from member.naming import ordinal_of
from member.outcome import Waiting
from member.pods import ready_pods
from member.polling import next_look
from member.proofs import Proof, pods_live, spec_confirmed
from member.scale_in import ScaleIn


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tidb.scale_policy if tc.spec.tidb else None
    return (policy.scale_in_parallelism if policy else None) or 1


def _leave(leaving: Departure) -> Proof | Waiting:
    soon = next_look(leaving.round_, "tidb")
    unseen = Waiting("SpecChanged", "waiting until the cache shows the TidbCluster as it is", soon)
    return _still_needed(leaving) or spec_confirmed(leaving.round_) or unseen


def _still_needed(leaving: Departure) -> Waiting | None:
    """The wait of a pod that serves for those that stay: no more of them may be down than leave at a time (I18)."""
    round_ = leaving.round_
    wanted = desired_replicas(round_.tc, "tidb")
    pods, _ = pods_live(round_, "tidb")
    serving = {ordinal_of(pod.metadata.name) for pod in ready_pods(pods) if not pod.metadata.deletion_timestamp}
    staying = sum(ordinal < wanted for ordinal in serving)
    if leaving.ordinal not in serving or staying >= wanted - _limit(round_.tc):
        return None
    what = f"{leaving.name} serves until more of the {wanted} pods that stay are Ready; {staying} are"
    return Waiting("ScalingIn", what, next_look(round_, "tidb"))


def _stay(staying: Departure) -> None:
    staying.clear()


SCALE_IN = ScaleIn(_limit, _leave, _stay)
