"""PD pods that failover has given up: until they have ended, they may join again (lifecycle.md 9.2, F29).

A pod whose start script still runs receives the request to end, and may join PD in its grace period. It then leaves a
member without data, which keeps later pods of its name from joining. Only until the next pod runs can the operator
distinguish this member from the next pod's member. So it looks for the member until then, and records its id.
"""

from collections.abc import Mapping, Sequence

from apis.component_statuses import PDFailureMember
from apis.shared import PDMember
from dataplane.pd import LiveMembership
from kube.objects import Object
from kube.resources import PODS
from member.context import ReconcileContext
from member.failover.witnesses import Failing
from member.lifecycle import pod_removal
from member.naming import ordinal_of
from member.observed.nodes import NodeState, node_state
from member.observed.pod import Pod
from member.outcome import Waiting
from member.ownership import own_member
from member.polling import next_poll, seconds_since

_OVERDUE = 60.0
"""Seconds that the operator waits for a pod beyond its grace period."""


def recorded_claims(record: PDFailureMember) -> set[str]:
    """The UIDs of a lost member's volume claims."""
    return {*record.pvc_uid_set, record.pvc_uid} - {""}


def has_volumes(ctx: ReconcileContext, record: PDFailureMember) -> bool:
    """True if the pod of a lost member still has all its recorded volumes, according to the caches."""
    live = ctx.stateful_set("pd")
    if live is None:
        return True
    claims = pod_removal.cached(ctx, "pd", live.decode(), ordinal_of(record.pod_name)).claims
    return recorded_claims(record) <= {each.metadata.uid for each in claims if not each.metadata.deletion_timestamp}


def is_over(
    ctx: ReconcileContext, record: PDFailureMember, own: Mapping[str, PDMember], lost: Sequence[Failing]
) -> bool:
    """True if a member whose removal was planned is no longer lost. If PD no longer lists it, the removal is half done.

    After its volumes were given up a member does not return: the member of the next pod takes its place.
    """
    member = own.get(record.pod_name)
    if member is None:
        return False
    if has_volumes(ctx, record):
        return all(each.key != record.member_id for each in lost)
    pod = ctx.listers.pods.get(ctx.namespace, record.pod_name)
    ends = pod is None or pod.metadata.deletion_timestamp
    return member.health and member.id != record.member_id and not ends


def end_of_pod(ctx: ReconcileContext, record: PDFailureMember, found: LiveMembership) -> Waiting | None:
    """The wait until a given-up pod has ended. If the pod has left another member, records its id for removal.

    `found` was read earlier: a member in it that cannot be the next pod's is recorded. Raises ApiError, TransportError.
    """
    pod = ctx.deps.client.find(PODS, record.pod_name, ctx.namespace)
    again = own_member(ctx.tc, found.members, ordinal_of(record.pod_name))
    if again and str(again.id) != record.member_id and not _may_be_of(pod, named=bool(again.name)):
        record.member_id = str(again.id)
        what = f"pod {record.pod_name} joined PD once more while it ended; its member {again.id} will be removed"
        return Waiting("PDFailover", what, 0.5)
    if pod is None or not _is_ending(ctx, pod):
        return None
    what = f"the member of pod {record.pod_name} was removed from PD; waiting for the pod to end"
    return Waiting("PDFailover", what, next_poll(ctx, "pd"))


def _may_be_of(pod: Object | None, *, named: bool) -> bool:
    """True if a member may belong to the pod that follows the given-up pod.

    A member with a name has started, by which time Kubernetes has also reported the start of its container.
    """
    if pod is None or pod.metadata.deletion_timestamp:
        return False
    return pod.decode_as(Pod).has_started("pd") or not named


def _is_ending(ctx: ReconcileContext, pod: Object) -> bool:
    """True if a pod is about to end; one on a lost node, or long overdue, may never end."""
    until = pod.metadata.deletion_timestamp
    if not until or node_state(ctx, pod) is NodeState.NOT_READY:
        return False
    return seconds_since(until, ctx.deps.clock.wall()) < _OVERDUE
