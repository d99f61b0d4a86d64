"""DM's masters and workers: workers start when a quorum of masters serves (other-resources.md 6)."""

from apis import predicates
from apis.ordinals import desired_replicas
from apis.shared import PDMember
from kube.objects import Object
from member import api_clients
from member.availability import Verdict
from member.context import DMContext
from member.dm import desired, failover, rolling, scaling
from member.dm.desired import MASTER, WORKER
from member.dm.status import observe_masters, observe_workers
from member.failover.outages import Member, silent_quorum
from member.failover.steps import named
from member.lifecycle.rolling import Rolling
from member.lifecycle.workload import Workload
from member.observed.pods import wanted_pods
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll


def _outage_of_masters(ctx: DMContext) -> Verdict | None:
    members = ctx.status.master.members.values()
    return silent_quorum(ctx, MASTER, [_as_voter(ctx, member) for member in members])


def _as_voter(ctx: DMContext, member: PDMember) -> Member:
    return Member(
        member.name, member.id, member.health, lambda: api_clients.dm_master_votes(ctx, member.name), member.name
    )


def _masters_serving(ctx: DMContext) -> Outcome:
    members = ctx.status.master.members
    if predicates.all_members_ready(ctx.tc, MASTER):
        return Done(f"{len(members)} of {len(members)} masters are healthy")
    ill = sorted(name for name, member in members.items() if not member.health)
    there = max(len(members), desired_replicas(ctx.tc, MASTER))
    away = [named(ctx, MASTER, pod) for pod in sorted(ctx.status.master.unjoined_members)]
    what, awaited = f"{len(members) - len(ill)} of {there} masters are healthy", ", ".join([*ill, *away])
    return Waiting("DMMasterUnhealthy", f"{what}; waiting for {awaited}" if awaited else what, next_poll(ctx, MASTER))


def _workers_serving(ctx: DMContext) -> Outcome:
    members = ctx.status.worker.members
    if predicates.all_members_ready(ctx.tc, WORKER):
        return Done(f"{len(members)} of {len(members)} workers are registered")
    offline = ", ".join(sorted(name for name, member in members.items() if not member.serves))
    away = ", ".join(pod for pod in wanted_pods(ctx, WORKER) if pod not in members) or "all workers"
    what = f"waiting for {offline} to be online" if offline else f"waiting for {away} to register with the masters"
    return Waiting("DMWorkerUnhealthy", what, next_poll(ctx, WORKER))


def _wait_for_workers(ctx: DMContext) -> Waiting | None:
    """The wait for the masters' report before a worker restarts: another worker may be away (F7)."""
    if ctx.status.worker.synced:
        return None
    what = "waiting for DM to report its workers before restarting their pods"
    return Waiting("DMWorkerUnknown", what, next_poll(ctx, WORKER))


def _unmet_condition(ctx: DMContext, pod: Object) -> str:
    member = ctx.status.worker.members.get(pod.metadata.name)
    return "" if member and member.serves else "is a worker that the masters hear of"


DM_MASTER = Workload(
    name=MASTER,
    observe=observe_masters,
    outage=_outage_of_masters,
    services=desired.master_services,
    content=desired.master_content,
    stateful_set=desired.master_stateful_set,
    serving=_masters_serving,
    scaling=scaling.MASTER_SCALING,
    rolling=rolling.ROLLING,
    failover=failover.master_failover,
    housekeeping=scaling.take_out_strays,
)

DM_WORKER = Workload(
    name=WORKER,
    observe=observe_workers,
    services=desired.worker_services,
    content=desired.worker_content,
    stateful_set=desired.worker_stateful_set,
    serving=_workers_serving,
    scaling=scaling.WORKER_SCALING,
    rolling=Rolling(_wait_for_workers, _unmet_condition, ignored_pods=failover.ignored_workers),
    failover=failover.worker_failover,
    housekeeping=scaling.take_out_offline,
)
