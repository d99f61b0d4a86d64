"""The replacement of lost workers (other-resources.md 6.8).

The operator records the loss, which adds one pod at once. DM itself moves the lost worker's source to a free worker.
When the user asks for it, the operator removes the records, and with them the extra pods.
"""

from collections.abc import Collection, Sequence

from apis.dm_components import DMWorkerFailureMember
from apis.times import parse_time, stamp
from member.context import DMContext
from member.dm.workers import WORKER
from member.failover.steps import (
    RECOVERY,
    UNHEALTHY,
    all_ready,
    clear_requested,
    ignorable,
    incident,
    limit,
    limit_reached,
    record_event,
    remaining,
    serving_instead,
    still_waiting,
    to_record,
    well_unseen,
)
from member.failover.witnesses import Failing, desired_pods, failing, is_cut_off
from member.outcome import Done, Outcome, Waiting


async def failover(ctx: DMContext) -> Outcome:
    """Record lost workers. Raises ApiError, TransportError, LeaseExpired."""
    status = ctx.status.worker
    if await clear_requested(ctx, WORKER, bool(status.failure_members)):
        _set_records(ctx, {})
    if not status.synced:
        ctx.memory.failure_timers.reset(WORKER)
        return Done()
    _drop_undesired(ctx)
    if _may_recover(ctx):
        names = ", ".join(sorted(status.failure_members))
        _set_records(ctx, {})
        await record_event(ctx, RECOVERY, f"all requested workers are back, including {names}", is_warning=False)
    return await _replace(ctx)


def ignored_pods(ctx: DMContext) -> set[str]:
    """The pods that a roll ignores: lost ones that are recorded and replaced, and substitutes that never registered."""
    status = ctx.status.worker
    if not status.failure_members:
        return set()
    serving = {name for name, member in status.members.items() if member.serves}
    return ignorable(ctx, WORKER, set(status.failure_members) - serving, serving)


async def _replace(ctx: DMContext) -> Outcome:
    status, spec, period = ctx.status.worker, ctx.tc.spec.worker, ctx.settings.failover.dm_worker_period
    most = limit(ctx, spec.max_failover_count if spec else 0)
    desired = desired_pods(ctx, WORKER)
    offline = {name: name for name, member in status.members.items() if not member.serves and name in desired}
    since = {name: parse_time(status.members[name].last_transition_time or "") for name in offline}
    all_lost = failing(ctx, WORKER, offline, since.get)
    lost = [each for each in all_lost if each.pod not in status.failure_members]
    if not most or is_cut_off(ctx, WORKER):
        return Done()
    if new := to_record(lost, len(status.failure_members), most, period):
        return well_unseen(ctx, WORKER, [each.pod for each in new]) or await _record(ctx, new)
    if over := to_record(lost, 0, len(lost), period):
        return limit_reached(ctx, WORKER, len(status.failure_members), over[0])
    if lost:
        return still_waiting(ctx, WORKER, "DMWorkerOffline", lost, period)
    if not _serve(ctx, remaining(ctx, WORKER, status.failure_members)):
        return Done()
    way_back = f"set spec.worker.failover.recoverByUID: {status.failover_uid} to remove the extra pod"
    return serving_instead(ctx, WORKER, "DMWorkerFailedOver", status.failure_members, way_back)


async def _record(ctx: DMContext, lost: Sequence[Failing]) -> Waiting:
    _set_records(ctx, ctx.status.worker.failure_members | {each.pod: await _record_of(ctx, each) for each in lost})
    names = ", ".join(each.pod for each in lost)
    return Waiting("DMWorkerFailover", f"{names}: the worker is offline; starting another pod in its place")


async def _record_of(ctx: DMContext, lost: Failing) -> DMWorkerFailureMember:
    what = f"worker {lost.pod} has been offline since {stamp(lost.since)}; starting another one"
    await record_event(ctx, UNHEALTHY, what)
    return DMWorkerFailureMember(pod_name=lost.pod, created_at=stamp(ctx.deps.clock.wall()))


def _drop_undesired(ctx: DMContext) -> None:
    """Drop the records of pods that the spec no longer wants: each would keep an extra pod without need (F33)."""
    wanted, records = set(desired_pods(ctx, WORKER)), ctx.status.worker.failure_members
    _set_records(ctx, {pod: record for pod, record in records.items() if pod in wanted})


def _may_recover(ctx: DMContext) -> bool:
    """True if the user wants the extra pods removed, and all other workers serve; an empty UID matches nothing."""
    status, spec = ctx.status.worker, ctx.tc.spec.worker
    if not status.failure_members or spec is None:
        return False
    by_uid = spec.failover is not None and spec.failover.recover_by_uid == status.failover_uid != ""
    if not spec.recover_failover and not by_uid:
        return False
    return _serve(ctx, desired_pods(ctx, WORKER)) and all_ready(ctx, WORKER)


def _serve(ctx: DMContext, pods: Collection[str]) -> bool:
    members = ctx.status.worker.members
    return all(pod in members and members[pod].serves for pod in pods)


def _set_records(ctx: DMContext, records: dict[str, DMWorkerFailureMember]) -> None:
    """Set the failure records. They all belong to one incident, which ends with the last record."""
    status = ctx.status.worker
    status.failure_members = records
    if not records:
        status.failover_uid = ""
    elif not status.failover_uid:
        status.failover_uid = incident(ctx, min(records))
