"""Scale-out and scale-in of masters (other-resources.md 6.7) and workers (6.8).

Masters leave the quorum as PD's members do. A worker with a source leaves it to another one first: when a worker ends,
DM moves its source to a free worker. Without one, the replication of the source would stop, so such a worker stays. The
operator removes a worker from DM after it is offline and has no source.
"""

from collections.abc import Sequence
from functools import partial

from apis import predicates
from apis.ordinals import OrdinalSet, desired_ordinals, desired_replicas
from dataplane.dm import OFFLINE, LiveMaster, LiveWorker
from dataplane.errors import Conflict
from kube.objects import Object
from member import api_clients
from member.actions import RemoveMaster, RemoveWorker, ResignMaster
from member.context import DMContext
from member.dm.desired import MASTER, WORKER
from member.dm.failover import replaced_masters
from member.evidence import (
    Evidence,
    master_gone,
    spec_confirmed,
    worker_gone,
    worker_replaceable,
    worker_unbound,
)
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
from member.naming import member_name, pod_name
from member.objects.stateful_set import ordinals_of
from member.observed.claims import claims_of_cluster
from member.outcome import Outcome, Refused, Wait, Waiting
from member.polling import next_poll


def voters(ctx: DMContext, found: Sequence[LiveMaster], leader: str) -> list[Voter]:
    """The masters as voters, as they report each other now. Their ids are their indexes in the list."""
    return [
        Voter(number, each.name, _ordinal_of_master(ctx, each.name), each.alive, each.name == leader)
        for number, each in enumerate(found)
    ]


def _ordinal_of_master(ctx: DMContext, name: str) -> int | None:
    stem, _, ordinal = name.rpartition("-")
    return int(ordinal) if stem == member_name(ctx.tc, MASTER) and ordinal.isdecimal() else None


async def _drain_master(removal: PodRemoval) -> Evidence | Waiting | Refused:
    ctx: DMContext = removal.ctx
    if obstacle := _refuse_last_master(ctx) or _too_early(removal):
        return obstacle
    soon, masters = next_poll(ctx, MASTER), api_clients.dm_masters(ctx)
    leader, found = masters.led_masters()
    ill = any(master.name == removal.name and not master.alive for master in found)
    wanted = remaining(removal, MASTER, serves=not ill, period=ctx.settings.failover.dm_master_period)
    match next_step(voters(ctx, found, leader), removal.ordinal, wanted, "DM", removal.staying):
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


def _refuse_last_master(ctx: DMContext) -> Refused | None:
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
    lost = [record.pod_name for record in ctx.status.master.failure_members.values() if not record.member_deleted]
    return comes_first(removal, MASTER, "master", lost)


async def _cancel_master(removal: PodRemoval) -> Evidence | Waiting | None:
    """Keep a master that was about to leave, unless it has left: then its data cannot join again."""
    ctx: DMContext = removal.ctx
    soon = next_poll(ctx, MASTER)
    if not predicates.is_synced(ctx.tc, MASTER):
        what = f"waiting for DM to report its masters before deciding whether pod {removal.name} can be kept"
        return Waiting("DMMasterUnknown", what, soon)
    if any(master.name == removal.name for master in api_clients.dm_masters(ctx).masters()):
        await removal.clear()
        return None
    return master_gone(ctx, removal.name) or Waiting("DMMasterUnknown", "DM reports no masters", soon)


def _all_healthy(ctx: DMContext) -> Waiting | None:
    """The wait before another master joins: every present pod must be healthy, except lost ones (lifecycle.md 8.3).

    While there is no cluster, Discovery lets no pod begin one before all wanted pods have asked it (F40).
    """
    if not _has_begun(ctx):
        return None
    status, lost = ctx.status.master, replaced_masters(ctx)
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
    masters = api_clients.dm_masters(ctx).masters()
    return quorum.outdated(ctx, MASTER, ((master.name, int(master.id), master.peer_urls) for master in masters))


def _has_begun(ctx: DMContext) -> bool:
    """True if there is evidence of the cluster: its status, or volumes with data of masters."""
    masters = (
        claim.metadata.labels for claim in claims_of_cluster(ctx) if claim.metadata.labels.get(COMPONENT) == MASTER
    )
    return bool(ctx.status.master.members) or any(MEMBER_ID in master for master in masters)


def _is_master(ctx: DMContext, pod: str) -> bool:
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
        left = await _drain_master(removal)
        if not isinstance(left, Evidence):
            return left
        what = f"the master of pod {removal.name}, which no longer exists, was removed from DM"
        return Waiting("ScalingIn", what, next_poll(ctx, MASTER))
    return None


def _unasked(ctx: DMContext, live: Object) -> set[int]:
    """The ordinals of masters whose pods neither spec and failover nor the StatefulSet require."""
    owners = {ordinal for name in ctx.status.master.members if (ordinal := _ordinal_of_master(ctx, name)) is not None}
    extra = owners.difference(desired_ordinals(ctx.tc, MASTER))
    return extra.difference(ordinals_of(ctx.tree(live)).ordinals)


MASTER_SCALING = Scaling(
    ScaleOut(limit=lambda _: 1, allowed=_all_healthy, is_member=_is_master, volumes_unused=master_gone),
    ScaleIn(limit=lambda _: 1, drain=_drain_master, cancel=_cancel_master),
)


async def _drain_worker(removal: PodRemoval) -> Evidence | Waiting:
    ctx: DMContext = removal.ctx
    soon = next_poll(ctx, WORKER)
    if not predicates.is_synced(ctx.tc, WORKER):
        return Waiting("DMWorkerUnknown", "waiting for DM to report its workers before scaling in", soon)
    workers = api_clients.dm_masters(ctx).workers()
    left = sorted(worker.name for worker in workers if _leaves_first(removal, worker))
    if left:
        # otherwise one free worker would count for two leaving ones
        return Waiting("ScalingIn", f"waiting until worker {', '.join(left)} is taken out of DM", soon)
    leaving = next((worker for worker in workers if worker.name == removal.name), None)
    if leaving is None:
        gone = worker_gone(ctx, removal.name)
        return gone or Waiting("ScalingIn", f"worker {removal.name} has just registered", soon)
    free = worker_unbound(leaving) or worker_replaceable(leaving, workers)
    if (bound := _without_heir(ctx, workers, removal.staying)) or free is None:
        what = f"no worker that stays is free to take over {', '.join(bound) or leaving.source}"
        way_out = "add a worker, or stop or transfer the source with dmctl"
        return Waiting("DMWorkerBound", f"keeping pod {removal.name}: {what}; {way_out}", soon)
    await removal.note()
    return free


def _without_heir(ctx: DMContext, found: Sequence[LiveWorker], staying: OrdinalSet) -> list[str]:
    """The sources of all leaving workers, if fewer of the remaining workers are free; otherwise empty."""
    owners = [(worker, _ordinal_of_worker(ctx, worker.name)) for worker in found]
    leaves = [each for each, own in owners if own is not None and own not in staying]
    free = [
        worker for worker in found if worker not in leaves and not worker.source and worker.stage not in ("", OFFLINE)
    ]
    bound = [f"source {worker.source} of pod {worker.name}" for worker in leaves if worker.source]
    return bound if len(bound) > len(free) else []


def _leaves_first(removal: PodRemoval, worker: LiveWorker) -> bool:
    """True if a worker belongs to a pod that leaves before this one: its ordinal is higher."""
    own = _ordinal_of_worker(removal.ctx, worker.name)
    return own is not None and own > removal.ordinal and own not in removal.staying


def _ordinal_of_worker(ctx: DMContext, name: str) -> int | None:
    stem, _, ordinal = name.rpartition("-")
    return int(ordinal) if stem == member_name(ctx.tc, WORKER) and ordinal.isdecimal() else None


async def _cancel_worker(removal: PodRemoval) -> None:
    """Clear the marks; a worker registers again without help."""
    await removal.clear()


async def take_out_offline(ctx: DMContext) -> Outcome | None:
    """Remove offline workers that are no longer wanted from DM; None if there are none.

    Raises ApiError, TransportError, DataPlaneError.
    """
    status, live = ctx.status.worker, ctx.stateful_set(WORKER)
    offline = (name for name, member in status.members.items() if not member.serves)
    undesired = [name for name in offline if _is_undesired(ctx, name, live)]
    if not status.synced or not undesired:
        return None
    masters, evidence = api_clients.dm_masters(ctx), spec_confirmed(ctx)
    found = {each.name: each for each in masters.workers()}
    for name in undesired:
        worker = found.get(name)
        unbound = worker_unbound(worker) if worker and worker.stage == OFFLINE else None
        if worker is None or evidence is None or unbound is None:
            continue
        try:
            await RemoveWorker(masters, worker, unbound & evidence)
        except Conflict as error:
            return Waiting("ScalingIn", f"DM refused to take out worker {name}: {error}", next_poll(ctx, WORKER))
    return Waiting("ScalingIn", f"taking worker {', '.join(undesired)} out of DM", next_poll(ctx, WORKER))


def _is_undesired(ctx: DMContext, name: str, live: Object | None) -> bool:
    """True if a worker's pod is gone, and neither the spec nor the StatefulSet requires it."""
    ordinal = _ordinal_of_worker(ctx, name)
    if ordinal is None or live is None or ordinal in desired_ordinals(ctx.tc, WORKER):
        return False
    gone = ctx.listers.pods.get(ctx.namespace, pod_name(ctx.tc, WORKER, ordinal)) is None
    return gone and ordinal not in ordinals_of(live.decode()).ordinals


def _wait_for_report(ctx: DMContext) -> Waiting | None:
    """The wait for the masters' report: only they know which worker has used the volumes."""
    if predicates.is_synced(ctx.tc, WORKER):
        return None
    what = "waiting for DM to report its workers before adding another"
    return Waiting("DMWorkerUnknown", what, next_poll(ctx, WORKER))


def _is_worker(ctx: DMContext, pod: str) -> bool:
    member = ctx.status.worker.members.get(pod)
    return member is not None and member.serves


def _volumes_unused(ctx: DMContext, pod: str) -> Evidence | None:
    """Evidence that the volumes are unused: DM has no worker of the pod, or an offline one that has lost its source."""
    found = next((worker for worker in api_clients.dm_masters(ctx).workers() if worker.name == pod), None)
    if found is None:
        return worker_gone(ctx, pod)
    return worker_unbound(found) if found.stage == OFFLINE else None


WORKER_SCALING = Scaling(
    ScaleOut(limit=lambda _: 1, allowed=_wait_for_report, is_member=_is_worker, volumes_unused=_volumes_unused),
    ScaleIn(limit=lambda _: 1, drain=_drain_worker, cancel=_cancel_worker),
)
