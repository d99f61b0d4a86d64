"""Members that count for PD's quorum although no pod serves as them, nor will without help (F29, R14).

PD adds a member when a pod asks to join; the member has no name until it has started. Three kinds of pods leave such a
member behind. A pod that was scaled in or given up during its start no longer exists. A pod whose start script kept
running during its scale-in may even have started: its member has a name, but no data. A pod that ended before it had
stored the permission to join asks again; PD then rejects every pod because of this pod's own unstarted member. All of
them count for the quorum, and only the operator knows that they will never serve.
"""

from collections.abc import Iterable, Sequence

from apis.ordinals import desired_ordinals
from dataplane.addresses import Stranger
from dataplane.pd import LiveMember
from kube.objects import Object
from member import api_clients
from member.actions import RemoveMember
from member.context import ReconcileContext
from member.evidence import Evidence, LivePods, majority_without, pods_live
from member.failover.steps import record_event
from member.lifecycle import pod_removal
from member.lifecycle.pod_removal import PodRemoval
from member.naming import ordinal_of, pod_name
from member.observed.pod import Pod
from member.outcome import Outcome, Waiting
from member.ownership import member_owner, require_understood_members
from member.pd.scaling import SCALE_IN, ordinal_of_member
from member.polling import next_poll

_JOINING = "pd-joining"
"""The failure timer for members that have not started."""

_START_TIMEOUT = 60.0
"""Seconds that a member may take to start while its pod restarts repeatedly."""


async def remove(ctx: ReconcileContext) -> Outcome | None:
    """Remove one stray member from PD; None if there is none, or if it may still start.

    Raises ApiError, TransportError, DataPlaneError.
    """
    live = ctx.stateful_set("pd")
    known = {member_owner(ctx.tc, member) for member in ctx.status.pd.members.values()}
    if live is None or not (ctx.unstarted_pd_members or _unasked(ctx, live, known)):
        ctx.memory.failure_timers.reset(_JOINING)
        return None
    pd = api_clients.pd(ctx)
    # read members before pods: a pod that is created in between may also join in between
    members = pd.members().members
    require_understood_members(ctx.tc, members)
    pods = pods_live(ctx, "pd")
    own = {ordinal: member for member in members if (ordinal := ordinal_of_member(ctx, member)) is not None}
    unstarted = {ordinal: member for ordinal, member in own.items() if not member.name}
    there = {ordinal_of(pod.metadata.name) for pod in pods.pods}
    for ordinal in sorted(_unasked(ctx, live, own.keys() - there), reverse=True):
        removal = pod_removal.live(ctx, "pd", live.decode(), ordinal)
        # a member with a name and no scale-in: its pod is recreated, and they leave together
        if ordinal in unstarted or removal.begun:
            return await _as_in_a_scale_in(removal)
    seen = ctx.memory.failure_timers.update(_JOINING, {str(member.id) for member in unstarted.values()}, ctx.deps.clock)
    stuck = {pod.metadata.name for pod in pods.pods if pod.decode_as(Pod).is_crash_looping}
    for ordinal, member in sorted(unstarted.items()):
        pod = pod_name(ctx.tc, "pd", ordinal)
        if pod in stuck and seen[str(member.id)].lasted >= _START_TIMEOUT:
            return await _remove_member(ctx, member, members, pod, pods)
    return None


def _unasked(ctx: ReconcileContext, live: Object, owners: Iterable[int | Stranger]) -> set[int]:
    """The ordinals that neither spec and failover nor the StatefulSet require."""
    extra = {owner for owner in owners if not isinstance(owner, Stranger)}.difference(desired_ordinals(ctx.tc, "pd"))
    return {ordinal for ordinal in extra if ordinal >= live.decode()["spec"]["replicas"]}


async def _as_in_a_scale_in(removal: PodRemoval) -> Outcome:
    left = await SCALE_IN.drain(removal)
    if not isinstance(left, Evidence):
        return left
    what = f"the member of pod {removal.name}, which does not exist any more, was removed from PD"
    return Waiting("ScalingIn", what, next_poll(removal.ctx, "pd"))


async def _remove_member(
    ctx: ReconcileContext, member: LiveMember, members: Sequence[LiveMember], pod: str, pods: LivePods
) -> Outcome:
    """Remove an unstarted member, so that its pod can ask to join again as if it had never been added."""
    pd, soon = api_clients.pd(ctx), next_poll(ctx, "pd")
    expendable = majority_without(pd, member, members)
    if expendable is None:
        what = f"waiting for a majority of PD members to be healthy before removing member {member.id} of pod {pod}"
        return Waiting("PDJoinFailed", f"{what}, which never started", soon)
    await RemoveMember(pd, member, pods & expendable)
    what = f"member {member.id} of pod {pod} was removed from PD because it never started"
    await record_event(ctx, "PDMemberDeleted", what)
    return Waiting("PDJoinFailed", f"{what}; waiting for the pod to join again", soon)
