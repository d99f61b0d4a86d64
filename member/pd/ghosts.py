"""Members that PD counts on though no pod will ever start them (F29, R14).

A pod that was scaled in, or given up, while it started may have asked PD to join in its last moments. PD keeps a place
for it, without a name, and counts it for its quorum. Nobody but the operator knows that nobody comes.
"""

from apis.ordinals import desired_ordinals
from kube.objects import Json
from member import departure, reach
from member.naming import ordinal_of
from member.outcome import Outcome, Waiting
from member.pd.scale_in import SCALE_IN, ordinal_of_member
from member.polling import next_look
from member.proofs import Proof, pods_live
from member.round import Round


def give_up(round_: Round) -> Outcome | None:
    """Take the highest one out of PD, as a scale-in does; None when there is none.

    Raises ApiError, TransportError, DataPlaneError.
    """
    live = round_.stateful_set("pd")
    if not round_.unstarted_pd_members or live is None:
        return None
    body = live.decode()
    ordinal = _highest(round_, body)
    if ordinal is None:
        return None
    left = SCALE_IN.leave(departure.live(round_, "pd", body, ordinal))
    if not isinstance(left, Proof):
        return left
    return Waiting("ScalingIn", f"PD no longer waits for the member of ordinal {ordinal}", next_look(round_, "pd"))


def _highest(round_: Round, body: Json) -> int | None:
    """The ordinal of a member without a name, of which there is no pod, and is going to be none."""
    pods, _ = pods_live(round_, "pd")
    there = {ordinal_of(pod.metadata.name) for pod in pods}
    there.update(desired_ordinals(round_.tc, "pd"), range(body["spec"]["replicas"]))
    unnamed = [member for member in reach.pd(round_).members().members if not member.name]
    ordinals = (ordinal_of_member(round_, member) for member in unnamed)
    return max((ordinal for ordinal in ordinals if ordinal is not None and ordinal not in there), default=None)
