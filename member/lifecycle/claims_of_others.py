"""Volume claims under our names that others control: a StatefulSet would mount them all the same.

A claim without a controller is the user's, such as a restored one, and is used.
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
    """The names of all claims of the namespace, as those of others carry no label of ours.

    Raises ApiError, TransportError.
    """
    return ctx.deps.client.list_names(PERSISTENT_VOLUME_CLAIMS, ctx.namespace)


def read_claims(ctx: ClusterContext, component: str) -> Sequence[Object]:
    """The metadata of the claims that are named like those of pods of a component. Raises ApiError, TransportError.

    Mostly there is none, which the names alone tell.
    """
    of_pods = re.compile(rf".*-{re.escape(member_name(ctx.tc, component))}-\d+")
    if not any(map(of_pods.fullmatch, claim_names(ctx))):
        return ()
    claims = ctx.deps.client.list_page(PERSISTENT_VOLUME_CLAIMS, ctx.namespace, metadata_only=True).items
    return [claim for claim in claims if of_pods.fullmatch(claim.metadata.name)]


def claim_of_others(ctx: ClusterContext, component: str, desired: Json, claims: Sequence[Object]) -> Refused | None:
    """The refusal to create a StatefulSet over data of others; `claims` were read live."""
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
    """Who controls a claim, unless that is its own StatefulSet or pod, as a retention policy makes them (KEP-1847)."""
    owner = claim.metadata.controller
    own = ((STATEFUL_SETS.kind, stateful_set), (PODS.kind, pod))
    return None if owner is None or (owner.kind, owner.name) in own else owner
