"""The scale-in of PD: a member transfers leadership and is removed from the quorum (lifecycle.md 8.3).

One member leaves at a time, while all others are healthy, so a quorum survives every removal (I8, I9). PD reports a
member as healthy if its client port answers, which needs no quorum: a member that is cut off only from the other
members looks healthy. So before the operator removes or restarts a member, it also asks each member itself: its etcd
reports a leader, and reads with the quorum.

Stray members count for the quorum although no pod serves as them, nor will without help (F29, R14). PD adds a member
when a pod asks to join; the member has no name until it has started. Three kinds of pods leave such a member behind. A
pod that was scaled in or given up during its start no longer exists. A pod whose start script kept running during its
scale-in may even have started: its member has a name, but no data. A pod that ended before it had stored the permission
to join asks again; PD then rejects every pod because of this pod's own unstarted member. Only the operator knows that
they will never serve.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from apis import predicates
from apis.ordinals import desired_ordinals, desired_replicas
from dataplane.addresses import Stranger
from dataplane.errors import Unavailable
from dataplane.pd import Health, LiveMember, Membership, PDClient
from dataplane.pd import Member as PDMember
from kube.objects import Object
from member import api_clients
from member.actions import RemoveMember, TransferLeader
from member.context import ReconcileContext
from member.evidence import Evidence, LivePods, majority_without, member_gone, pods_live
from member.failover.steps import named, record_event
from member.lifecycle import pod_removal
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.quorum import (
    Gone,
    Remove,
    StandsIn,
    Transfer,
    Voter,
    comes_first,
    may_join,
    next_step,
    remaining,
    take_out,
)
from member.lifecycle.scaling import ScaleIn
from member.naming import ordinal_of, pod_name
from member.objects.stateful_set import ordinals_of
from member.observed.pod import Pod
from member.outcome import Outcome, Refused, Wait, Waiting
from member.ownership import member_owner, members_by_pod, require_understood_members
from member.polling import next_poll
from ports.transport import ConnectionRefused

_HANDED = "leadership of PD"
_ASK_AGAIN = 10.0
"""Seconds until PD is asked again to move its leadership. It agrees before the election, which takes a few seconds."""


def healths(ctx: ReconcileContext, pd: PDClient, expected: int) -> tuple[Health, ...]:
    """All members. Healthy means that PD reports it, and that the cluster's own members also confirm that they vote.

    `expected` is the number of members, which determines PD's timeout. Raises DataPlaneError.
    """
    return tuple(
        replace(member, healthy=member.healthy and _votes(ctx, member)) for member in pd.health(members=expected)
    )


def may_vote(ctx: ReconcileContext, member: Health) -> bool:
    """True if a member may vote: unless it says that it does not, or nothing listens at its address.

    An unreachable member may still vote. A member without a name has never started. Raises ApiError.
    """
    if not member.client_urls:
        return bool(member.name)
    try:
        return api_clients.pd_member(ctx, member.client_urls[0]).votes()
    except Unavailable as error:
        return not isinstance(error.cause, ConnectionRefused)


def _votes(ctx: ReconcileContext, member: Health) -> bool:
    if not member.client_urls or isinstance(member_owner(ctx.tc, member), Stranger):
        return True
    try:
        return api_clients.pd_member(ctx, member.client_urls[0]).votes()
    except Unavailable:
        return False


async def hand_leadership(ctx: ReconcileContext, pd: PDClient, pod: str, to: str) -> None:
    """Ask PD to move the leadership from a pod to a member, at most once in `_ASK_AGAIN` seconds.

    Raises DataPlaneError; what PD has refused may be asked again at once.
    """
    stopwatches, key, clock = ctx.memory.stopwatches, f"{pod} {to}", ctx.deps.clock
    if key in stopwatches.known(_HANDED) and stopwatches.look(_HANDED, key, clock).seconds < _ASK_AGAIN:
        return
    stopwatches.forget(_HANDED, key)
    await TransferLeader(pd, to)
    stopwatches.look(_HANDED, key, clock)


async def _drain(removal: PodRemoval) -> Evidence | Waiting | Refused:
    ctx = removal.ctx
    if obstacle := _refuse_last_member(ctx) or _too_early(removal):
        return obstacle
    soon, pd = next_poll(ctx, "pd"), api_clients.pd(ctx)
    members = pd.members()
    found = voters(ctx, members, healths(ctx, pd, len(members.members)))
    ill = any(voter.ordinal == removal.ordinal and not voter.healthy for voter in found)
    wanted = remaining(removal, "pd", serves=not ill, period=ctx.settings.failover.pd_period)
    match next_step(found, removal.ordinal, wanted, staying=removal.staying):
        case Wait(what):
            return Waiting("ScalingIn", what, soon)
        case StandsIn(others):
            return _stands_in(removal, found, f"{others} of the {wanted} PD members")
        case Transfer(to):
            await hand_leadership(ctx, pd, removal.name, to.name)
            return Waiting("ScalingIn", f"transferring PD leadership from pod {removal.name} to {to.name}", soon)
        case Remove(voter) if leaving := members.member(voter.id):
            kept = await take_out(removal, "pd", "PD", "member", partial(RemoveMember, pd, leaving))
        case Gone() | Remove():
            kept = may_join(removal, "pd", "PD")
    waiting = Waiting("ScalingIn", f"waiting for PD to remove the member of pod {removal.name}", soon)
    return kept or member_gone(ctx, removal.name) or waiting


def _stands_in(removal: PodRemoval, found: Sequence[Voter], others: str) -> Waiting:
    """The wait for wanted pods that are not healthy members: the pod that stands in for them stays until they are."""
    ctx, healthy = removal.ctx, {voter.ordinal for voter in found if voter.healthy}
    missing = [ordinal for ordinal in desired_ordinals(ctx.tc, "pd") if ordinal not in healthy]
    names = ", ".join(named(ctx, "pd", pod_name(ctx.tc, "pd", ordinal)) for ordinal in missing)
    what = f"only {others} would be healthy without pod {removal.name}; it will be removed once {names} is one of them"
    return Waiting("PDFailedOver", what, next_poll(ctx, "pd"), serves=True)


def _refuse_last_member(ctx: ReconcileContext) -> Refused | None:
    """The refusal to remove the last member, on which everything depends (F34)."""
    if desired_replicas(ctx.tc, "pd") > 0:
        return None
    status, spec = ctx.status, ctx.tc.spec
    dependents = {
        "TiKV stores": len(status.tikv.stores),
        "TiFlash stores": len(status.tiflash.stores),
        "TiDB members": len(status.tidb.members),
        "TiCDC replicas": spec.ticdc.replicas if spec.ticdc else 0,
        "Pump replicas": spec.pump.replicas if spec.pump else 0,
    }
    if there := ", ".join(f"{count} {what}" for what, count in dependents.items() if count):
        return Refused("FailedScaleIn", f"spec.pd.replicas cannot be 0 while there are {there}, which need PD")
    if not any(peer.health for peer in status.pd.peer_members.values()):
        what = "spec.pd.replicas cannot be 0 without a healthy PD in another cluster; suspend PD to keep its data"
        return Refused("FailedScaleIn", what)
    return None


def _too_early(removal: PodRemoval) -> Waiting | None:
    ctx = removal.ctx
    soon = next_poll(ctx, "pd")
    if not predicates.is_synced(ctx.tc, "pd"):
        return Waiting("PDUnknown", "waiting for PD to report its members before scaling in", soon)
    lost = [record.pod_name for record in ctx.status.pd.failure_members.values() if not record.member_deleted]
    return comes_first(removal, "pd", "member", lost)


def voters(ctx: ReconcileContext, found: Membership, seen: Sequence[Health]) -> list[Voter]:
    """PD's members, as PD reports them now. Raises AddressNotUnderstood if the owner of a member is ambiguous."""
    require_understood_members(ctx.tc, found.members)
    healthy = {health.member_id for health in seen if health.healthy}
    leader = found.leader.id if found.leader else 0
    return [
        Voter(member.id, member.name, ordinal_of_member(ctx, member), member.id in healthy, member.id == leader)
        for member in found.members
    ]


def ordinal_of_member(ctx: ReconcileContext, member: PDMember) -> int | None:
    """The ordinal of a member's pod, by its URLs or either of its names (8.3 BETTER, F24); None if it has none here."""
    owner = member_owner(ctx.tc, member)
    return None if isinstance(owner, Stranger) else owner


async def _cancel(removal: PodRemoval) -> Evidence | Waiting | None:
    """Keep a member that was about to leave, unless PD has removed it: then its data cannot join again."""
    ctx = removal.ctx
    soon = next_poll(ctx, "pd")
    if not predicates.is_synced(ctx.tc, "pd"):
        return Waiting(
            "PDUnknown",
            f"waiting for PD to report its members before deciding whether pod {removal.name} can be kept",
            soon,
        )
    members = api_clients.pd(ctx).members().members
    require_understood_members(ctx.tc, members)
    if any(ordinal_of_member(ctx, member) == removal.ordinal for member in members):
        await removal.clear()
        return None
    return member_gone(ctx, removal.name) or Waiting("PDUnknown", "PD reports no members", soon)


SCALE_IN = ScaleIn(limit=lambda _: 1, drain=_drain, cancel=_cancel)


_JOINING = "pd-joining"
"""The failure timer for members that have not started."""

_START_TIMEOUT = 60.0
"""Seconds that a member may take to start while its pod restarts repeatedly."""


async def remove_strays(ctx: ReconcileContext) -> Outcome | None:
    """Remove one stray member from PD; None if there is none, or if it may still start.

    Raises ApiError, TransportError, DataPlaneError.
    """
    live = ctx.stateful_set("pd")
    known = members_by_pod(ctx.tc, ctx.status.pd.members.values()).keys()
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
        if pod in stuck and seen[str(member.id)].seconds >= _START_TIMEOUT:
            return await _remove_member(ctx, member, members, pod, pods)
    return None


def _unasked(ctx: ReconcileContext, live: Object, owners: Iterable[int | Stranger]) -> set[int]:
    """The ordinals that neither spec and failover nor the StatefulSet require."""
    extra = {owner for owner in owners if not isinstance(owner, Stranger)}.difference(desired_ordinals(ctx.tc, "pd"))
    return extra.difference(ordinals_of(ctx.tree(live)).ordinals)


async def _as_in_a_scale_in(removal: PodRemoval) -> Outcome:
    left = await SCALE_IN.drain(removal)
    if not isinstance(left, Evidence):
        return left
    what = f"the member of pod {removal.name}, which no longer exists, was removed from PD"
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
