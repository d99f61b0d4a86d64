"""The replacement of lost masters (other-resources.md 6.7) and workers (6.8).

For masters, this is the part that differs from `member.failover.members`. The operator records the loss of a worker,
which adds one pod at once; DM itself moves the lost worker's source to a free worker. When the user asks for it, the
operator removes the records, and with them the extra pods.
"""

from collections.abc import Collection, Mapping, Sequence

from apis.dm_components import DMFailureMember, DMMasterStatus, DMWorkerFailureMember
from apis.shared import PDMember
from apis.times import parse_time, stamp
from dataplane.dm import DMMasterClient, LiveMaster
from member import api_clients
from member.actions import RemoveMaster
from member.context import DMContext
from member.dm.desired import MASTER, WORKER
from member.evidence import Evidence, master_gone, masters_without
from member.failover.members import MemberFailover
from member.failover.quorum import Situation
from member.failover.steps import (
    RECOVERY,
    UNHEALTHY,
    all_ready,
    claim_uids,
    clean_up,
    clear_requested,
    ignorable,
    incident,
    limit,
    limit_reached,
    live_status,
    record_event,
    remaining,
    serving_instead,
    still_waiting,
    to_record,
    well_unseen,
)
from member.failover.witnesses import Failing, desired_pods, failing, is_cut_off
from member.observed.pod import Pod
from member.observed.pods import pods_of, wanted_pods
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll, seconds_since

_REASON = "DMMasterFailover"
_JOINS_WITHIN = 5.0
"""Seconds after its start within which a master asks Discovery and joins."""


class _MasterFailover(MemberFailover[DMContext, DMFailureMember]):
    component = MASTER
    noun = "master"
    unhealthy = "DMMasterUnhealthy"
    member_unhealthy = "MasterMemberUnhealthy"
    in_progress = _REASON
    failed_over = "DMMasterFailedOver"
    quorum_lost = "DMMasterQuorumLost"
    quorum_way_out = "restore a majority, or give up their data: suspend the masters, delete their PVCs, and resume"

    @property
    def status(self) -> DMMasterStatus:
        return self.ctx.status.master

    @property
    def period(self) -> float:
        return self.ctx.settings.failover.dm_master_period

    @property
    def max_failover_count(self) -> int | None:
        return self.ctx.tc.spec.master.max_failover_count if self.ctx.tc.spec.master else None

    def own(self) -> dict[str, PDMember]:
        members = self.status.members
        return {pod: members[pod] for pod in wanted_pods(self.ctx, MASTER) if pod in members}

    def is_over(self, record: DMFailureMember, own: Mapping[str, PDMember], lost: Sequence[Failing]) -> bool:
        return record.pod_name in own and all(each.pod != record.pod_name for each in lost)

    def record(self, lost: Failing) -> tuple[str, DMFailureMember]:
        (claim,) = [*claim_uids(self.ctx, MASTER, lost.pod), ""][:1]
        created_at = stamp(self.ctx.deps.clock.wall())
        return lost.pod, DMFailureMember(pod_name=lost.pod, member_id=lost.key, pvc_uid=claim, created_at=created_at)

    async def replace(self, record: DMFailureMember, _: Situation[DMFailureMember]) -> Outcome:
        return await _replace_master(self.ctx, record)


async def master_failover(ctx: DMContext) -> Outcome:
    """Replace lost masters, one step per reconcile. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    return await _MasterFailover(ctx).step()


def replaced_masters(ctx: DMContext) -> set[str]:
    """See `MemberFailover`."""
    return _MasterFailover(ctx).replaced()


def ignored_masters(ctx: DMContext) -> set[str]:
    """See `MemberFailover`."""
    return _MasterFailover(ctx).ignored_pods()


async def _replace_master(ctx: DMContext, record: DMFailureMember) -> Outcome:
    """Remove member, pod and volume of a record; steps that are already done have no effect (R04)."""
    recorded = live_status(ctx)
    if recorded.status.master.failure_members.get(record.pod_name) != record:
        return Waiting(
            "CacheOutdated",
            f"waiting for the operator's cache to show the failure record of pod {record.pod_name}",
            0.5,
        )
    # the Service may select the lost master between two of its crashes
    masters = api_clients.responding_dm_master(ctx) or api_clients.dm_masters(ctx)
    found = masters.masters()
    lost = next((master for master in found if master.id == record.member_id), None)
    if lost and (waiting := well_unseen(ctx, MASTER, [record.pod_name]) or _may_join(ctx, record.pod_name)):
        return waiting
    if lost and (waiting := await _remove_master(ctx, masters, found, lost, recorded)):
        return waiting
    gone = master_gone(ctx, record.pod_name)
    if gone is None:
        what = f"waiting for the masters to remove the master of pod {record.pod_name}"
        return Waiting(_REASON, what, next_poll(ctx, MASTER))
    await clean_up(ctx, MASTER, record.pod_name, {record.pvc_uid} - {""}, gone)
    record.member_deleted = True
    return Waiting(_REASON, f"the master of pod {record.pod_name} was removed; starting another in its place")


def _may_join(ctx: DMContext, name: str) -> Waiting | None:
    """The wait for a pod that has just started and may have Discovery's permission to join.

    Without its old master in the way it would join, and end before it serves: an unstarted master lets no other join,
    and DM removes masters by their name alone. Later starts get no permission until the pod has been replaced.
    """
    pod = next((pod for pod in pods_of(ctx, MASTER) if pod.metadata.name == name), None)
    since = pod.decode_as(Pod).running_since(MASTER) if pod else ""
    # a start in the future is one before the clock was set back
    if not since or not 0 <= seconds_since(since, ctx.deps.clock.wall()) < _JOINS_WITHIN:
        return None
    return Waiting(
        _REASON, f"waiting for pod {name}, which has just restarted, to fail or serve", next_poll(ctx, MASTER)
    )


async def _remove_master(
    ctx: DMContext, masters: DMMasterClient, found: Sequence[LiveMaster], lost: LiveMaster, recorded: Evidence
) -> Waiting | None:
    """Remove a lost master from DM; returns the wait if that is not possible yet."""
    expendable = masters_without(found, lost)
    if expendable is None:
        what = f"waiting for a majority of masters to be alive before removing the lost one of pod {lost.name}"
        return Waiting(_REASON, what, next_poll(ctx, MASTER))
    await RemoveMaster(masters, lost, recorded & expendable)
    await record_event(ctx, "DMMasterMemberDeleted", f"master {lost.id} of pod {lost.name} was removed from DM")
    return None


async def worker_failover(ctx: DMContext) -> Outcome:
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
    return await _replace_worker(ctx)


def ignored_workers(ctx: DMContext) -> set[str]:
    """The pods that a roll ignores: lost ones that are recorded and replaced, and substitutes that never registered."""
    status = ctx.status.worker
    if not status.failure_members:
        return set()
    serving = {name for name, member in status.members.items() if member.serves}
    return ignorable(ctx, WORKER, set(status.failure_members) - serving, serving)


async def _replace_worker(ctx: DMContext) -> Outcome:
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
        return well_unseen(ctx, WORKER, [each.pod for each in new]) or await _record_worker(ctx, new)
    if over := to_record(lost, 0, len(lost), period):
        return limit_reached(ctx, WORKER, len(status.failure_members), over[0])
    if lost:
        return still_waiting(ctx, WORKER, "DMWorkerOffline", lost, period)
    if not _serve(ctx, remaining(ctx, WORKER, status.failure_members)):
        return Done()
    way_back = f"set spec.worker.failover.recoverByUID: {status.failover_uid} to remove the extra pod"
    return serving_instead(ctx, WORKER, "DMWorkerFailedOver", status.failure_members, way_back)


async def _record_worker(ctx: DMContext, lost: Sequence[Failing]) -> Waiting:
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
