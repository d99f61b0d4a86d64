"""Components that v1.6 runs in Advanced StatefulSets, with its feature gate (lifecycle.md 4.4): not managed here.

A native StatefulSet beside one would take the same names for its pods. Where no pods tell, the API server is asked
before a StatefulSet is created, if it knows of such a kind at all.
"""

from kube.errors import Forbidden, NotFound
from member.context import ClusterContext
from member.labels import base_labels
from member.naming import member_name
from member.observed.belonging import ADVANCED_STATEFUL_SETS, is_of_advanced
from member.outcome import Refused


def advanced_stateful_set(ctx: ClusterContext, component: str) -> Refused | None:
    """The refusal to create a StatefulSet beside an Advanced one. Raises ApiError, TransportError."""
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
        # the kind has gone; or no permission, which v1.6 has not either without its feature gate
        return False
