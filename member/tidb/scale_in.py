"""How TiDB gives up a pod: it keeps nothing that others need, but those that stay must serve (lifecycle.md 8.7)."""

from apis.ordinals import desired_replicas
from apis.tidbcluster import TidbCluster
from member.evidence import Evidence, pods_live, spec_confirmed
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scale_in import ScaleIn
from member.naming import ordinal_of
from member.observed.pods import ready_pods
from member.outcome import Waiting
from member.polling import next_look


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tidb.scale_policy if tc.spec.tidb else None
    return (policy.scale_in_parallelism if policy else None) or 1


def _drain(removal: PodRemoval) -> Evidence | Waiting:
    soon = next_look(removal.ctx, "tidb")
    unseen = Waiting("SpecChanged", "waiting until the cache shows the TidbCluster as it is", soon)
    return _still_needed(removal) or spec_confirmed(removal.ctx) or unseen


def _still_needed(removal: PodRemoval) -> Waiting | None:
    """The wait of a pod that serves for those that stay: no more of them may be down than leave at a time (I18)."""
    ctx = removal.ctx
    wanted = desired_replicas(ctx.tc, "tidb")
    pods, _ = pods_live(ctx, "tidb")
    serving = {ordinal_of(pod.metadata.name) for pod in ready_pods(pods) if not pod.metadata.deletion_timestamp}
    staying = sum(ordinal < wanted for ordinal in serving)
    if removal.ordinal not in serving or staying >= wanted - _limit(ctx.tc):
        return None
    what = f"{removal.name} serves until more of the {wanted} pods that stay are Ready; {staying} are"
    return Waiting("ScalingIn", what, next_look(ctx, "tidb"))


def _cancel(removal: PodRemoval) -> None:
    removal.clear()


SCALE_IN = ScaleIn(_limit, _drain, _cancel)
