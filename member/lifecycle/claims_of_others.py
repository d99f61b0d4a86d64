"""Volume claims with the names of ours that somebody else controls: a StatefulSet would mount them all the same.

A claim that nobody controls is the user's, such as a restored one, and is used.
"""

from kube.objects import Json, Object, OwnerReference
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from member.context import ReconcileContext
from member.lifecycle.pod_removal import claims_of_templates
from member.naming import pod_name
from member.outcome import Refused


def claim_of_others(ctx: ReconcileContext, component: str, desired: Json) -> Refused | None:
    """The refusal to create a StatefulSet over data of others, read live. Raises ApiError, TransportError."""
    for ordinal in range(desired["spec"]["replicas"]):
        pod = pod_name(ctx.tc, component, ordinal)
        for name in claims_of_templates(desired, pod):
            claim = ctx.deps.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
            owner = _other_owner(claim, desired["metadata"]["name"], pod) if claim else None
            if owner:
                what = f"PersistentVolumeClaim {name} exists and is controlled by {owner.kind} {owner.name}"
                return Refused(
                    "ForeignOwner", f"{what}; delete or rename it, or rename the cluster", ctx.taken_names.LOOK_AGAIN
                )
    return None


def _other_owner(claim: Object, stateful_set: str, pod: str) -> OwnerReference | None:
    """Who controls a claim, unless that is its own StatefulSet or pod, as a retention policy makes them (KEP-1847)."""
    owner = claim.metadata.controller
    own = ((STATEFUL_SETS.kind, stateful_set), (PODS.kind, pod))
    return None if owner is None or (owner.kind, owner.name) in own else owner
