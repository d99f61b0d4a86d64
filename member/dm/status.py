"""The present status of DM's masters and workers (other-resources.md 6.2, 6.7, 6.8). Reads only."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from apis.dm_components import DMMasterStatus, DMWorkerMember
from apis.ordinals import desired_replicas
from apis.shared import PDMember, UnjoinedMember
from apis.times import stamp
from dataplane.addresses import shown_url
from dataplane.dm import DMMasterClient, LiveMaster, LiveWorker
from dataplane.errors import BadTlsMaterial, DataPlaneError, Unavailable
from kube.objects import Object
from member import api_clients
from member.context import DMContext
from member.dm import failover
from member.dm.desired import MASTER, WORKER
from member.dm.failover import ignored_masters
from member.observed.claims import claims_of
from member.observed.pods import ready_pods
from member.observed.status import observe_pods, transition_time
from member.observed.troubles import discovery_trouble
from member.outcome import Done, Failed, Outcome, Waiting
from member.polling import next_poll
from ports.transport import RequestTimeout


def observe_masters(ctx: DMContext) -> Outcome:
    """Update `status.master`.

    Returns Waiting while new masters do not answer yet, and Failed if masters that have served do not answer.
    """
    status = ctx.status.master
    status.synced = False
    pods = observe_pods(ctx, MASTER, status, ignored_masters(ctx))
    if pods is None:
        return Done()
    if not ready_pods(pods) and desired_replicas(ctx.tc, MASTER):
        return Waiting("DMMasterNotReady", "no pod of dm-master is Ready yet")
    return _observe(ctx, bool(status.members), lambda masters: _set_masters(ctx, pods, masters))


def observe_workers(ctx: DMContext) -> Outcome:
    """Update `status.worker` from the masters' report; returns the outcomes of `observe_masters`."""
    status = ctx.status.worker
    status.synced = False
    pods = observe_pods(ctx, WORKER, status, failover.ignored_workers(ctx))
    if pods is None:
        return Done()
    if not ctx.status.master.synced:
        return Waiting("DMMasterUnknown", "waiting for the masters to report the workers", next_poll(ctx, WORKER))
    names = {pod.metadata.name for pod in pods}
    return _observe(ctx, bool(status.members), lambda masters: _set_workers(ctx, names, masters))


def _observe(ctx: DMContext, known: bool, look: Callable[[DMMasterClient], None]) -> Outcome:
    try:
        _look_at_any(ctx, look)
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    except Unavailable as error:
        if known or isinstance(error.cause, RequestTimeout):
            return Failed("DMMasterUnreachable", str(error))
        trouble = discovery_trouble(ctx)
        cause = f"Discovery, which it asks at its first start, does not run: {trouble}" if trouble else error
        return Waiting("DMMasterNotAnswering", f"DM-master does not answer yet: {cause}", next_poll(ctx, MASTER))
    except DataPlaneError as error:
        return Failed("DMMasterUnreachable", str(error))
    return Done()


def _look_at_any(ctx: DMContext, look: Callable[[DMMasterClient], None]) -> None:
    """Read through the Service, or from a single master if the Service selects one that does not serve.

    Masters have no readiness probe, so the Service sometimes selects a master that crashes repeatedly. Raises
    DataPlaneError.
    """
    try:
        look(api_clients.dm_masters(ctx))
    except BadTlsMaterial:
        raise
    except DataPlaneError:
        found = api_clients.responding_dm_master(ctx)
        if found is None:
            raise
        look(found)


def _set_masters(ctx: DMContext, pods: Sequence[Object], masters: DMMasterClient) -> None:
    status, now = ctx.status.master, ctx.deps.clock.wall()
    leader, listed = masters.led_masters(ctx.deps.dataplane.side_by_side)
    found, before = [master for master in listed if master.name], status.members
    status.members = {master.name: _master(master, before.get(master.name), now) for master in found}
    status.leader = status.members.get(leader)
    status.unjoined_members = _unjoined(ctx, status, pods)
    status.synced = True


def _master(seen: LiveMaster, old: PDMember | None, now: datetime) -> PDMember:
    return PDMember(
        name=seen.name,
        id=seen.id,
        client_url=shown_url(seen.client_urls[0]) if seen.client_urls else "",
        health=seen.alive,
        last_transition_time=transition_time(old, old is not None and old.health == seen.alive, now),
    )


def _unjoined(ctx: DMContext, status: DMMasterStatus, pods: Sequence[Object]) -> dict[str, UnjoinedMember]:
    """The pods that are not masters yet, with the time when this was first seen."""
    found = {}
    for pod in pods:
        name = pod.metadata.name
        if name in status.members:
            continue
        old = status.unjoined_members.get(name)
        found[name] = UnjoinedMember(
            pod_name=name,
            pvc_uid_set={claim.metadata.uid: {} for claim in claims_of(ctx, pod)},
            created_at=old.created_at if old else stamp(ctx.deps.clock.wall()),
        )
    return found


def _set_workers(ctx: DMContext, pods: Collection[str], masters: DMMasterClient) -> None:
    """Record the workers. Raises Unavailable for an empty list while pods of known workers exist (R19)."""
    status, now, workers = ctx.status.worker, ctx.deps.clock.wall(), masters.workers()
    before = status.members
    if not workers and (known := sorted(before.keys() & pods)):
        what = f"DM-master reports no workers, not even {', '.join(known)}; ignoring its answer"
        raise Unavailable("GET", f"{masters.base_url}/apis/v1alpha1/members", what)
    status.members = {worker.name: _worker(worker, before.get(worker.name), now) for worker in workers}
    status.synced = True


def _worker(seen: LiveWorker, old: DMWorkerMember | None, now: datetime) -> DMWorkerMember:
    same = old is not None and old.stage == seen.stage
    since = transition_time(old, same, now)
    return DMWorkerMember(name=seen.name, addr=seen.address, stage=seen.stage, last_transition_time=since)
