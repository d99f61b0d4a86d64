"""Advanced StatefulSets, which v1.6 creates behind a feature gate and this version does not manage (lifecycle.md 4.4).

A native StatefulSet of the same name would give its pods the names of the existing pods. Before a StatefulSet is
created, the operator therefore looks for pods of an Advanced StatefulSet. If it finds none, it asks the API server,
provided that the server knows the kind.
"""

from kube.errors import Forbidden, NotFound
from member.context import ClusterContext
from member.labels import base_labels
from member.naming import member_name
from member.observed.belonging import ADVANCED_STATEFUL_SETS, is_of_advanced
from member.outcome import Refused


def advanced_stateful_set(ctx: ClusterContext, component: str) -> Refused | None:
    """Refuse to create a StatefulSet beside an Advanced one, if there is one. Raises ApiError, TransportError."""
    if not _exists(ctx, component):
        return None
    what = f"{member_name(ctx.tc, component)} is a StatefulSet of {ADVANCED_STATEFUL_SETS.api_version}"
    way_out = "go on with v1.6, or, where it has no delete slots, delete it with --cascade=orphan: its pods are adopted"
    return Refused(
        "NotYetSupported", f"{what}, which this version cannot manage; {way_out}", ctx.memory.taken_names.LOOK_AGAIN
    )


def _exists(ctx: ClusterContext, component: str) -> bool:
    pods = ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, component))
    if any(is_of_advanced(ctx.name, pod) for pod in pods):
        return True
    if not ctx.deps.applier.serves(ADVANCED_STATEFUL_SETS, ctx.deps.clock.now()):
        return False
    try:
        return ctx.deps.client.find(ADVANCED_STATEFUL_SETS, member_name(ctx.tc, component), ctx.namespace) is not None
    except (NotFound, Forbidden):
        # the kind has just been deleted, or the operator may not read it: v1.6 may do so only with its feature gate
        return False
