"""Scale-out and scale-in of workers (other-resources.md 6.8): a worker with a source leaves it to another one first.

When a worker ends, DM moves its source to a free worker. Without one, the replication of the source would stop, so such
a worker stays. The operator removes a worker from DM after it is offline and has no source.
"""

from collections.abc import Sequence

from apis import predicates
from apis.ordinals import desired_ordinals
from dataplane.dm import OFFLINE, LiveWorker
from dataplane.errors import Conflict
from kube.objects import Object
from member import api_clients
from member.actions import RemoveWorker
from member.context import DMContext
from member.dm.workers import WORKER
from member.evidence import (
    Evidence,
    spec_confirmed,
    worker_gone,
    worker_replaceable,
    worker_unbound,
)
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scaling import ScaleIn, ScaleOut, Scaling
from member.naming import member_name, pod_name
from member.outcome import Outcome, Waiting
from member.polling import next_poll


async def _drain(removal: PodRemoval) -> Evidence | Waiting:
    ctx: DMContext = removal.ctx
    soon = next_poll(ctx, WORKER)
    if not predicates.is_synced(ctx.tc, WORKER):
        return Waiting("DMWorkerUnknown", "waiting for DM to report its workers before scaling in", soon)
    found = api_clients.dm_masters(ctx).workers()
    left = sorted(each.name for each in found if _is_above(ctx, each, removal.ordinal))
    if left:
        # otherwise one free worker would count for two leaving ones
        return Waiting("ScalingIn", f"waiting until worker {', '.join(left)} is taken out of DM", soon)
    leaving = next((each for each in found if each.name == removal.name), None)
    if leaving is None:
        gone = worker_gone(ctx, removal.name)
        return gone or Waiting("ScalingIn", f"worker {removal.name} has just registered", soon)
    free = worker_unbound(leaving) or worker_replaceable(leaving, found)
    if (bound := _without_heir(ctx, found, removal.staying)) or free is None:
        what = f"no worker that stays is free to take over {', '.join(bound) or leaving.source}"
        way_out = "add a worker, or stop or transfer the source with dmctl"
        return Waiting("DMWorkerBound", f"keeping pod {removal.name}: {what}; {way_out}", soon)
    await removal.note()
    return free


def _without_heir(ctx: DMContext, found: Sequence[LiveWorker], staying: int) -> list[str]:
    """The sources of all leaving workers, if fewer of the remaining workers are free; otherwise empty."""
    leaves = [each for each in found if _is_above(ctx, each, staying - 1)]
    free = [each for each in found if each not in leaves and not each.source and each.stage not in ("", OFFLINE)]
    bound = [f"source {each.source} of pod {each.name}" for each in leaves if each.source]
    return bound if len(bound) > len(free) else []


def _is_above(ctx: DMContext, worker: LiveWorker, ordinal: int) -> bool:
    """True if a worker belongs to a pod with an ordinal above this one."""
    own = _ordinal(ctx, worker.name)
    return own is not None and own > ordinal


def _ordinal(ctx: DMContext, name: str) -> int | None:
    stem, _, ordinal = name.rpartition("-")
    return int(ordinal) if stem == member_name(ctx.tc, WORKER) and ordinal.isdecimal() else None


async def _cancel(removal: PodRemoval) -> None:
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
    masters, wanted = api_clients.dm_masters(ctx), spec_confirmed(ctx)
    found = {each.name: each for each in masters.workers()}
    for name in undesired:
        worker = found.get(name)
        unbound = worker_unbound(worker) if worker and worker.stage == OFFLINE else None
        if worker is None or wanted is None or unbound is None:
            continue
        try:
            await RemoveWorker(masters, worker, unbound & wanted)
        except Conflict as error:
            return Waiting("ScalingIn", f"DM refused to take out worker {name}: {error}", next_poll(ctx, WORKER))
    return Waiting("ScalingIn", f"taking worker {', '.join(undesired)} out of DM", next_poll(ctx, WORKER))


def _is_undesired(ctx: DMContext, name: str, live: Object | None) -> bool:
    """True if a worker's pod is gone, and neither the spec nor the StatefulSet requires it."""
    ordinal = _ordinal(ctx, name)
    if ordinal is None or live is None or ordinal in desired_ordinals(ctx.tc, WORKER):
        return False
    gone = ctx.listers.pods.get(ctx.namespace, pod_name(ctx.tc, WORKER, ordinal)) is None
    return gone and ordinal >= live.decode()["spec"]["replicas"]


def _known(ctx: DMContext) -> Waiting | None:
    """The wait for the masters' report: only they know which worker has used the volumes."""
    if predicates.is_synced(ctx.tc, WORKER):
        return None
    what = "waiting for DM to report its workers before adding another"
    return Waiting("DMWorkerUnknown", what, next_poll(ctx, WORKER))


def _is_member(ctx: DMContext, pod: str) -> bool:
    member = ctx.status.worker.members.get(pod)
    return member is not None and member.serves


def _volumes_unused(ctx: DMContext, pod: str) -> Evidence | None:
    """Evidence that the volumes are unused: DM has no worker of the pod, or an offline one that has lost its source."""
    found = next((each for each in api_clients.dm_masters(ctx).workers() if each.name == pod), None)
    if found is None:
        return worker_gone(ctx, pod)
    return worker_unbound(found) if found.stage == OFFLINE else None


SCALING = Scaling(
    ScaleOut(limit=lambda _: 1, allowed=_known, is_member=_is_member, volumes_unused=_volumes_unused),
    ScaleIn(limit=lambda _: 1, drain=_drain, cancel=_cancel),
)
