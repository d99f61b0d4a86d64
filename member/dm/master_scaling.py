"""Scale-out and scale-in of masters (other-resources.md 6.7): one at a time, so that a quorum survives (I8, I9)."""

from collections.abc import Sequence
from functools import partial

from apis import predicates
from apis.ordinals import desired_ordinals, desired_replicas
from dataplane.dm import LiveMaster
from kube.objects import Object
from member import api_clients
from member.actions import RemoveMaster, ResignMaster
from member.context import DMContext
from member.dm.failover import replaced
from member.dm.masters import MASTER
from member.evidence import Evidence, master_gone
from member.failover.steps import named
from member.labels import COMPONENT, MEMBER_ID
from member.lifecycle import pod_removal, quorum
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
from member.lifecycle.scaling import ScaleIn, ScaleOut, Scaling
from member.naming import member_name
from member.observed.claims import claims_of_cluster
from member.outcome import Outcome, Refused, Wait, Waiting
from member.polling import next_poll


def voters(ctx: DMContext, found: Sequence[LiveMaster], leader: str) -> list[Voter]:
    """The masters as voters, as they report each other now. Their ids are their indexes in the list."""
    return [
        Voter(number, each.name, _ordinal(ctx, each.name), each.alive, each.name == leader)
        for number, each in enumerate(found)
    ]


def _ordinal(ctx: DMContext, name: str) -> int | None:
    stem, _, ordinal = name.rpartition("-")
    return int(ordinal) if stem == member_name(ctx.tc, MASTER) and ordinal.isdecimal() else None


async def _drain(removal: PodRemoval) -> Evidence | Waiting | Refused:
    ctx: DMContext = removal.ctx
    if obstacle := _nothing_left(ctx) or _too_early(removal):
        return obstacle
    soon, masters = next_poll(ctx, MASTER), api_clients.dm_masters(ctx)
    leader, found = masters.led_masters()
    ill = any(each.name == removal.name and not each.alive for each in found)
    wanted = remaining(removal, MASTER, serves=not ill, period=ctx.settings.failover.dm_master_period)
    match next_step(voters(ctx, found, leader), removal.ordinal, wanted, of="DM"):
        case Wait(what):
            return Waiting("ScalingIn", what, soon)
        case StandsIn(others):
            what = f"only {others} of the {wanted} masters would be healthy without pod {removal.name}"
            return Waiting("DMMasterFailedOver", f"{what}; it will be removed once they are", soon, serves=True)
        case Transfer(to):
            await ResignMaster(api_clients.dm_master(ctx, removal.name))
            return Waiting("ScalingIn", f"waiting until {to.name} or another master leads, not {removal.name}", soon)
        case Remove(voter):
            kept = await take_out(removal, MASTER, "DM", "master", partial(RemoveMaster, masters, found[voter.id]))
        case Gone():
            kept = may_join(removal, MASTER, "DM")
    waiting = Waiting("ScalingIn", f"waiting for DM to remove the master of pod {removal.name}", soon)
    return kept or master_gone(ctx, removal.name) or waiting


def _nothing_left(ctx: DMContext) -> Refused | None:
    """The refusal to remove the last master: only the masters know the tasks."""
    if desired_replicas(ctx.tc, MASTER) > 0:
        return None
    way_out = "suspend the cluster to keep its data, or delete the DMCluster"
    return Refused("FailedScaleIn", f"spec.master.replicas cannot be 0, as the masters know all tasks; {way_out}")


def _too_early(removal: PodRemoval) -> Waiting | None:
    ctx: DMContext = removal.ctx
    soon = next_poll(ctx, MASTER)
    if not predicates.is_synced(ctx.tc, MASTER):
        return Waiting("DMMasterUnknown", "waiting for DM to report its masters before scaling in", soon)
    lost = [each.pod_name for each in ctx.status.master.failure_members.values() if not each.member_deleted]
    return comes_first(removal, MASTER, "master", lost)


async def _cancel(removal: PodRemoval) -> Evidence | Waiting | None:
    """Keep a master that was about to leave, unless it has left: then its data cannot join again."""
    ctx: DMContext = removal.ctx
    soon = next_poll(ctx, MASTER)
    if not predicates.is_synced(ctx.tc, MASTER):
        what = f"waiting for DM to report its masters before deciding whether pod {removal.name} can be kept"
        return Waiting("DMMasterUnknown", what, soon)
    if any(each.name == removal.name for each in api_clients.dm_masters(ctx).masters()):
        await removal.clear()
        return None
    return master_gone(ctx, removal.name) or Waiting("DMMasterUnknown", "DM reports no masters", soon)


def _all_healthy(ctx: DMContext) -> Waiting | None:
    """The wait before another master joins: every present pod must be healthy, except lost ones (lifecycle.md 8.3).

    While there is no cluster, Discovery lets no pod begin one before all wanted pods have asked it (F40).
    """
    if not _has_begun(ctx):
        return None
    status, lost = ctx.status.master, replaced(ctx)
    joined = len(status.members) >= predicates.actual_replicas(ctx.tc, MASTER) - len(lost)
    ill = {name for name, member in status.members.items() if not member.health}
    ill |= status.unjoined_members.keys() - lost
    if status.synced and joined and not ill:
        return _outdated_peer_url(ctx)
    names = f": {', '.join(named(ctx, MASTER, pod) for pod in sorted(ill))}" if ill else ""
    what = f"waiting for all present masters to be healthy before adding another{names}"
    return Waiting("DMMasterUnhealthy", what, next_poll(ctx, MASTER))


def _outdated_peer_url(ctx: DMContext) -> Waiting | None:
    """The wait for a peer URL that predates a change of TLS.

    Only a single master is checked: several can reach each other.
    """
    if len(ctx.status.master.members) != 1:
        return None
    found = api_clients.dm_masters(ctx).masters()
    return quorum.outdated(ctx, MASTER, ((each.name, int(each.id), each.peer_urls) for each in found))


def _has_begun(ctx: DMContext) -> bool:
    """True if there is evidence of the cluster: its status, or volumes with data of masters."""
    masters = (each.metadata.labels for each in claims_of_cluster(ctx) if each.metadata.labels.get(COMPONENT) == MASTER)
    return bool(ctx.status.master.members) or any(MEMBER_ID in each for each in masters)


def _is_member(ctx: DMContext, pod: str) -> bool:
    return pod in ctx.status.master.members


async def take_out_strays(ctx: DMContext) -> Outcome | None:
    """Remove a master that joined while its pod was scaled in; None if there is none (F29).

    Raises ApiError, TransportError, DataPlaneError.
    """
    live, status = ctx.stateful_set(MASTER), ctx.status.master
    if live is None or not status.synced:
        return None
    for ordinal in sorted(_unasked(ctx, live), reverse=True):
        removal = pod_removal.live(ctx, MASTER, live.decode(), ordinal)
        # any other one gets its pod recreated, and leaves with it
        if removal.pod or not removal.begun:
            continue
        left = await _drain(removal)
        if not isinstance(left, Evidence):
            return left
        what = f"the master of pod {removal.name}, which does not exist any more, was removed from DM"
        return Waiting("ScalingIn", what, next_poll(ctx, MASTER))
    return None


def _unasked(ctx: DMContext, live: Object) -> set[int]:
    """The ordinals of masters whose pods neither spec and failover nor the StatefulSet require."""
    owners = {ordinal for name in ctx.status.master.members if (ordinal := _ordinal(ctx, name)) is not None}
    extra = owners.difference(desired_ordinals(ctx.tc, MASTER))
    return {ordinal for ordinal in extra if ordinal >= live.decode()["spec"]["replicas"]}


SCALING = Scaling(
    ScaleOut(limit=lambda _: 1, allowed=_all_healthy, is_member=_is_member, volumes_unused=master_gone),
    ScaleIn(limit=lambda _: 1, drain=_drain, cancel=_cancel),
)
