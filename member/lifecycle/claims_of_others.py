"""Volume claims that carry the operator's names but belong to other controllers.

A StatefulSet would mount them nevertheless. A claim without a controller belongs to the user, who may have restored it;
the operator uses it.
"""

import re
from collections.abc import Sequence

from kube.objects import Json, Object, OwnerReference
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from member.context import ClusterContext
from member.lifecycle.pod_removal import claims_of_templates
from member.naming import member_name, pod_name
from member.outcome import Refused


def claim_names(ctx: ClusterContext) -> Sequence[str]:
    """The names of all claims in the namespace; claims of other controllers lack the operator's labels.

    Raises ApiError, TransportError.
    """
    return ctx.deps.client.list_names(PERSISTENT_VOLUME_CLAIMS, ctx.namespace)


def read_claims(ctx: ClusterContext, component: str) -> Sequence[Object]:
    """The metadata of the claims that are named like claims of the component's pods. Raises ApiError, TransportError.

    Reads the names first: mostly no name matches, and the claims need not be read.
    """
    of_pods = re.compile(rf".*-{re.escape(member_name(ctx.tc, component))}-\d+")
    if not any(map(of_pods.fullmatch, claim_names(ctx))):
        return ()
    claims = ctx.deps.client.list_page(PERSISTENT_VOLUME_CLAIMS, ctx.namespace, metadata_only=True).items
    return [claim for claim in claims if of_pods.fullmatch(claim.metadata.name)]


def claim_of_others(ctx: ClusterContext, component: str, desired: Json, claims: Sequence[Object]) -> Refused | None:
    """Refuse to create a StatefulSet over other controllers' claims; the caller has read `claims` live."""
    pods = [pod_name(ctx.tc, component, ordinal) for ordinal in range(desired["spec"]["replicas"])]
    pod_of = {claim: pod for pod in pods for claim in claims_of_templates(desired, pod)}
    for claim in claims:
        name, pod = claim.metadata.name, pod_of.get(claim.metadata.name, "")
        owner = other_owner(claim, desired["metadata"]["name"], pod) if pod else None
        if owner:
            what = f"PersistentVolumeClaim {name} exists and is controlled by {owner.kind} {owner.name}"
            way_out = f"delete or rename it, or rename the {ctx.tc.kind}"
            return Refused("ForeignOwner", f"{what}; {way_out}", ctx.memory.taken_names.LOOK_AGAIN)
    return None


def other_owner(claim: Object, stateful_set: str, pod: str) -> OwnerReference | None:
    """A claim's controller; None if that is its own StatefulSet or pod, as a retention policy sets it (KEP-1847)."""
    owner = claim.metadata.controller
    own = ((STATEFUL_SETS.kind, stateful_set), (PODS.kind, pod))
    return None if owner is None or (owner.kind, owner.name) in own else owner
