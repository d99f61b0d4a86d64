"""Members that PD counts on though no pod will ever start them (F29, R14).

A pod that was scaled in, or given up, while it started may have asked PD to join in its last moments. PD keeps a place
for it, without a name, and counts it for its quorum. Only the operator knows that it will never start.
"""

from apis.ordinals import desired_ordinals
from kube.objects import Json
from member import api_clients
from member.context import ReconcileContext
from member.evidence import Evidence, pods_live
from member.lifecycle import pod_removal
from member.naming import ordinal_of
from member.outcome import Outcome, Waiting
from member.pd.scale_in import SCALE_IN, ordinal_of_member
from member.polling import next_poll


def remove(ctx: ReconcileContext) -> Outcome | None:
    """Take the highest one out of PD, as a scale-in does; None when there is none.

    Raises ApiError, TransportError, DataPlaneError.
    """
    live = ctx.stateful_set("pd")
    if not ctx.unstarted_pd_members or live is None:
        return None
    body = live.decode()
    ordinal = _highest(ctx, body)
    if ordinal is None:
        return None
    left = SCALE_IN.drain(pod_removal.live(ctx, "pd", body, ordinal))
    if not isinstance(left, Evidence):
        return left
    return Waiting(
        "ScalingIn", f"the member of ordinal {ordinal}, which never started, was removed from PD", next_poll(ctx, "pd")
    )


def _highest(ctx: ReconcileContext, body: Json) -> int | None:
    """The ordinal of a member without a name, of which there is no pod, and is going to be none."""
    there = {ordinal_of(pod.metadata.name) for pod in pods_live(ctx, "pd").pods}
    there.update(desired_ordinals(ctx.tc, "pd"), range(body["spec"]["replicas"]))
    unnamed = [member for member in api_clients.pd(ctx).members().members if not member.name]
    ordinals = (ordinal_of_member(ctx, member) for member in unnamed)
    return max((ordinal for ordinal in ordinals if ordinal is not None and ordinal not in there), default=None)
