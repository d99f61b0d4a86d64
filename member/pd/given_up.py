"""PD pods that failover gives up: until they have ended, they may join once more (lifecycle.md 9.2, F29).

A pod whose start script still runs is told to end, and joins PD in the time that it has for that. It leaves a member
without data, because of which no later pod of its name can join. Only while the pod ends, and until the next one runs,
can that member be told from the one of the next pod: so it is looked for then, and noted in the record.
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
"""Seconds for which a pod is waited for beyond the time that it has for its end."""


def recorded_claims(record: PDFailureMember) -> set[str]:
    """The UIDs of the volume claims of a lost member."""
    return {*record.pvc_uid_set, record.pvc_uid} - {""}


def has_volumes(ctx: ReconcileContext, record: PDFailureMember) -> bool:
    """Whether the pod of a lost member still has all volumes of that, as far as caches show."""
    live = ctx.stateful_set("pd")
    if live is None:
        return True
    claims = pod_removal.cached(ctx, "pd", live.decode(), ordinal_of(record.pod_name)).claims
    return recorded_claims(record) <= {each.metadata.uid for each in claims if not each.metadata.deletion_timestamp}


def is_over(
    ctx: ReconcileContext, record: PDFailureMember, own: Mapping[str, PDMember], lost: Sequence[Failing]
) -> bool:
    """Whether a member whose removal was intended is no longer lost; one that PD lists no more is removed half-way.

    One whose volumes are given up does not come back; another one, of the next pod, takes its place.
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
    """The wait until a pod that was given up has ended; a member that it left meanwhile is noted, to be removed next.

    `found` was read before: a member in it that the next pod can't have left is noted. Raises ApiError, TransportError.
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
    """Whether a member may be that of the pod that comes after the one that was given up.

    One with a name has started, which takes more time than Kubernetes needs to tell that the pod has.
    """
    if pod is None or pod.metadata.deletion_timestamp:
        return False
    return pod.decode_as(Pod).has_started("pd") or not named


def _is_ending(ctx: ReconcileContext, pod: Object) -> bool:
    """Whether a pod is about to end: one on a lost node, or long overdue, may never do so."""
    until = pod.metadata.deletion_timestamp
    if not until or node_state(ctx, pod) is NodeState.NOT_READY:
        return False
    return seconds_since(until, ctx.deps.clock.wall()) < _OVERDUE
