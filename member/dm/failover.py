"""The replacement of lost masters (other-resources.md 6.7): the part that differs from `member.failover.members`."""

from collections.abc import Mapping, Sequence

from apis.dm_components import DMFailureMember, DMMasterStatus
from apis.shared import PDMember
from apis.times import stamp
from dataplane.dm import DMMasterClient, LiveMaster
from member import api_clients
from member.actions import RemoveMaster
from member.context import DMContext
from member.dm.masters import MASTER
from member.evidence import Evidence, master_gone, masters_without
from member.failover.members import MemberFailover
from member.failover.quorum import Situation
from member.failover.steps import claim_uids, clean_up, live_status, record_event, substitutes, well_unseen
from member.failover.witnesses import Failing, desired_pods
from member.outcome import Outcome, Waiting
from member.polling import next_poll

_REASON = "DMMasterFailover"


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
        pods = [*desired_pods(self.ctx, MASTER), *substitutes(self.ctx, MASTER)]
        return {pod: members[pod] for pod in pods if pod in members}

    def is_over(self, record: DMFailureMember, own: Mapping[str, PDMember], lost: Sequence[Failing]) -> bool:
        return record.pod_name in own and all(each.pod != record.pod_name for each in lost)

    def record(self, lost: Failing) -> tuple[str, DMFailureMember]:
        (claim,) = [*claim_uids(self.ctx, MASTER, lost.pod), ""][:1]
        created_at = stamp(self.ctx.deps.clock.wall())
        return lost.pod, DMFailureMember(pod_name=lost.pod, member_id=lost.key, pvc_uid=claim, created_at=created_at)

    async def replace(self, record: DMFailureMember, _: Situation[DMFailureMember]) -> Outcome:
        return await _replace(self.ctx, record)


async def failover(ctx: DMContext) -> Outcome:
    """Replace lost masters, one step per reconcile. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    return await _MasterFailover(ctx).step()


def replaced(ctx: DMContext) -> set[str]:
    """See `MemberFailover`."""
    return _MasterFailover(ctx).replaced()


def ignored_pods(ctx: DMContext) -> set[str]:
    """See `MemberFailover`."""
    return _MasterFailover(ctx).ignored_pods()


async def _replace(ctx: DMContext, record: DMFailureMember) -> Outcome:
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
    lost = next((each for each in found if each.id == record.member_id), None)
    if lost and (waiting := well_unseen(ctx, MASTER, [record.pod_name])):
        return waiting
    if lost and (waiting := await _remove(ctx, masters, found, lost, recorded)):
        return waiting
    gone = master_gone(ctx, record.pod_name)
    if gone is None:
        what = f"waiting for the masters to remove that of pod {record.pod_name}"
        return Waiting(_REASON, what, next_poll(ctx, MASTER))
    await clean_up(ctx, MASTER, record.pod_name, {record.pvc_uid} - {""}, gone)
    record.member_deleted = True
    return Waiting(_REASON, f"the master of pod {record.pod_name} was removed; starting another in its place")


async def _remove(
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
