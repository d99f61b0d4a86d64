"""Members that PD counts on though they have never started, and will not by themselves (F29, R14).

PD keeps a place for a pod from the moment in which it asks to join; until its member has started it has no name. Two
kinds of pod leave such a place behind. One that was scaled in, or given up, while it started is not there any more. One
that ended before it had written down that it may join asks again and is refused, with everybody else, because of its
own place. PD counts both for its quorum. Only the operator knows that they will never start.
"""

from collections.abc import Iterable

from apis.ordinals import desired_ordinals
from dataplane.pd import LiveMember, PDClient
from kube.objects import Json
from member import api_clients
from member.context import ReconcileContext
from member.evidence import Evidence, LivePods, delete_member, majority_without, pods_live
from member.failover.steps import record_event
from member.lifecycle import pod_removal
from member.naming import ordinal_of, pod_name
from member.observed.pods import Pod
from member.outcome import Outcome, Waiting
from member.ownership import require_understood_members
from member.pd.scale_in import SCALE_IN, ordinal_of_member
from member.polling import next_poll

_JOINING = "pd-joining"
"""The kind of failure timer that a member has not started."""

_START_TIMEOUT = 60.0
"""Seconds that a member may take to start while its pod is restarted again and again."""


def remove(ctx: ReconcileContext) -> Outcome | None:
    """Take one of them out of PD; None when there is none, or it may still come.

    Raises ApiError, TransportError, DataPlaneError.
    """
    live = ctx.stateful_set("pd")
    if not ctx.unstarted_pd_members or live is None:
        ctx.failure_timers.reset(_JOINING)
        return None
    body, pd, pods = live.decode(), api_clients.pd(ctx), pods_live(ctx, "pd")
    members = pd.members().members
    require_understood_members(ctx.tc, members)
    unstarted = {
        ordinal: member
        for member in members
        if not member.name and (ordinal := ordinal_of_member(ctx, member)) is not None
    }
    ordinal = _highest_without_pod(ctx, body, pods, unstarted)
    if ordinal is not None:
        return _as_in_a_scale_in(ctx, body, ordinal)
    seen = ctx.failure_timers.update(_JOINING, {str(member.id) for member in unstarted.values()}, ctx.deps.clock)
    stuck = {pod.metadata.name for pod in pods.pods if pod.decode_as(Pod).is_crash_looping}
    for ordinal, member in sorted(unstarted.items()):
        pod = pod_name(ctx.tc, "pd", ordinal)
        if pod in stuck and seen[str(member.id)].lasted >= _START_TIMEOUT:
            return _remove_member(ctx, pd, member, pod, pods)
    return None


def _highest_without_pod(ctx: ReconcileContext, body: Json, pods: LivePods, unstarted: Iterable[int]) -> int | None:
    """The ordinal of a member of which there is no pod, and is going to be none."""
    there = {ordinal_of(pod.metadata.name) for pod in pods.pods}
    there.update(desired_ordinals(ctx.tc, "pd"), range(body["spec"]["replicas"]))
    return max((ordinal for ordinal in unstarted if ordinal not in there), default=None)


def _as_in_a_scale_in(ctx: ReconcileContext, body: Json, ordinal: int) -> Outcome:
    left = SCALE_IN.drain(pod_removal.live(ctx, "pd", body, ordinal))
    if not isinstance(left, Evidence):
        return left
    return Waiting(
        "ScalingIn", f"the member of ordinal {ordinal}, which never started, was removed from PD", next_poll(ctx, "pd")
    )


def _remove_member(ctx: ReconcileContext, pd: PDClient, member: LiveMember, pod: str, pods: LivePods) -> Outcome:
    """Let the pod ask to join once more, as if it had never been added."""
    soon = next_poll(ctx, "pd")
    expendable = majority_without(pd, member, len(ctx.status.pd.members) + 1)
    if expendable is None:
        what = f"waiting for a majority of PD members to be healthy before removing member {member.id} of pod {pod}"
        return Waiting("PDJoinFailed", f"{what}, which never started", soon)
    delete_member(pd, member, pods & expendable)
    what = f"member {member.id} of pod {pod} was removed from PD because it never started"
    record_event(ctx, "PDMemberDeleted", what)
    return Waiting("PDJoinFailed", f"{what}; waiting for the pod to join again", soon)
