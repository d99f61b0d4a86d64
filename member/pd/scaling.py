"""The scale-in of PD: a member transfers leadership and is removed from the quorum (lifecycle.md 8.3).

One member leaves at a time, while all others are healthy, so a quorum survives every removal (I8, I9).
"""

from collections.abc import Sequence
from functools import partial

from apis import predicates
from apis.ordinals import desired_ordinals, desired_replicas
from dataplane.addresses import Stranger
from dataplane.pd import Health, Membership
from dataplane.pd import Member as PDMember
from member import api_clients
from member.actions import RemoveMember, TransferLeader
from member.context import ReconcileContext
from member.evidence import Evidence, member_gone
from member.failover.steps import named
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
from member.naming import pod_name
from member.outcome import Refused, Wait, Waiting
from member.ownership import member_owner, require_understood_members
from member.pd.voting import healths
from member.polling import next_poll


async def _drain(removal: PodRemoval) -> Evidence | Waiting | Refused:
    ctx = removal.ctx
    if obstacle := _nothing_left_to_lead(ctx) or _too_early(removal):
        return obstacle
    soon, pd = next_poll(ctx, "pd"), api_clients.pd(ctx)
    members = pd.members()
    found = voters(ctx, members, healths(ctx, pd, len(members.members)))
    ill = any(voter.ordinal == removal.ordinal and not voter.healthy for voter in found)
    wanted = remaining(removal, "pd", serves=not ill, period=ctx.settings.failover.pd_period)
    match next_step(found, removal.ordinal, wanted):
        case Wait(what):
            return Waiting("ScalingIn", what, soon)
        case StandsIn(others):
            return _stands_in(removal, found, f"{others} of the {wanted} PD members")
        case Transfer(to):
            await TransferLeader(pd, to.name)
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


def _nothing_left_to_lead(ctx: ReconcileContext) -> Refused | None:
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
    lost = [each.pod_name for each in ctx.status.pd.failure_members.values() if not each.member_deleted]
    return comes_first(removal, "pd", "member", lost)


def voters(ctx: ReconcileContext, found: Membership, seen: Sequence[Health]) -> list[Voter]:
    """PD's members, as PD reports them now. Raises AddressNotUnderstood if the owner of a member is ambiguous."""
    require_understood_members(ctx.tc, found.members)
    healthy = {health.member_id for health in seen if health.healthy}
    leader = found.leader.id if found.leader else 0
    return [
        Voter(each.id, each.name, ordinal_of_member(ctx, each), each.id in healthy, each.id == leader)
        for each in found.members
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
