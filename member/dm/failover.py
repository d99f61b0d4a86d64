"""Replacing masters that are lost (other-resources.md 6.7): as PD's members are (lifecycle.md 9.2).

recorded → taken out of DM, then its pod and volume → one more pod is wanted → when all that the spec asks for are well
again, the records go, and with them the extra pods.
"""

from collections.abc import Sequence

from apis.dm_components import DMFailureMember, DMMasterStatus
from apis.shared import PDMember
from apis.times import parse_time, stamp
from dataplane.dm import DMMasterClient, LiveMaster
from member import api_clients
from member.context import DMContext
from member.dm.masters import MASTER
from member.evidence import Evidence, delete_master, master_gone, masters_without
from member.failover.quorum import (
    DropRecord,
    LimitReached,
    Nothing,
    Postpone,
    QuorumLost,
    RecordFailure,
    Recover,
    Replace,
    Situation,
    Step,
    SubstituteLost,
    Wait,
    next_step,
)
from member.failover.steps import (
    RECOVERY,
    all_ready,
    claim_uids,
    clean_up,
    clear_requested,
    ignorable,
    limit,
    limit_reached,
    live_status,
    named,
    record_event,
    serving_instead,
    still_waiting,
    stored_status,
    substitute_lost,
    substitutes,
)
from member.failover.witnesses import Failing, desired_pods, failing, is_cut_off
from member.observed.pods import Pod, pods_of
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll

_QUORUM = "dm-master-quorum"
"""The kind of failure timer that there is no majority."""

_REASON = "DMMasterFailover"


def failover(ctx: DMContext) -> Outcome:
    """Replace what is lost, a step a reconcile. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    status = ctx.status.master
    if clear_requested(ctx, MASTER, bool(status.failure_members)):
        status.failure_members = {}
    if not status.synced:
        ctx.failure_timers.reset(MASTER)
        return _quorum_lost(ctx, {name for name in status.members if name not in _ready(ctx)})
    _record_transitions(ctx, status)
    situation = _situation(ctx, status)
    if situation.has_majority:
        ctx.failure_timers.reset(_QUORUM)
    return _carry_out(ctx, next_step(situation), situation)


def replaced(ctx: DMContext) -> set[str]:
    """The pods that are no masters any more because they were taken out as lost: another is to take their place."""
    records = ctx.status.master.failure_members.values()
    return {each.pod_name for each in records if each.member_deleted and each.pod_name not in ctx.status.master.members}


def ignored_pods(ctx: DMContext) -> set[str]:
    """The pods that a roll ignores: lost ones that are recorded and replaced, and substitutes that never joined."""
    status = ctx.status.master
    if not status.failure_members:
        return set()
    lost = {record.pod_name for record in status.failure_members.values()}
    ill = {pod for pod in lost if pod not in status.members or not status.members[pod].health}
    return ignorable(ctx, MASTER, ill, status.members)


def _situation(ctx: DMContext, status: DMMasterStatus) -> Situation[DMFailureMember]:
    spec, own = ctx.tc.spec.master, _own(ctx)
    ill = {pod: member for pod, member in own.items() if not member.health}
    since = {member.id: parse_time(member.last_transition_time or "") for member in ill.values()}
    desired = desired_pods(ctx, MASTER)
    everywhere = failing(ctx, MASTER, {member.id: pod for pod, member in ill.items()}, since.get)
    lost = [each for each in everywhere if each.pod in desired]
    recorded = {record.pod_name for record in status.failure_members.values()}
    open_record = next((record for record in status.failure_members.values() if not record.member_deleted), None)
    healthy = sum(status.health)
    return Situation(
        lost=lost,
        failing=[each for each in lost if not _is_recorded(status, each) and not is_cut_off(ctx, MASTER)],
        recorded=recorded,
        open_record=open_record,
        open_record_is_over=open_record is not None and _is_over(open_record, own, lost),
        all_healthy=not lost and bool(recorded) and _all_healthy(ctx, own),
        enough_serve=healthy >= (spec.replicas if spec else 0),
        lost_substitutes=[each for each in everywhere if each not in lost],
        awaited=_awaited(ctx, own),
        has_majority=healthy * 2 > len(status.members),
        limit=limit(ctx, spec.max_failover_count if spec else 0),
        period=ctx.settings.failover.dm_master_period,
    )


def _is_recorded(status: DMMasterStatus, lost: Failing) -> bool:
    records = (record for record in status.failure_members.values() if record.pod_name == lost.pod)
    return any(not record.member_deleted or record.member_id == lost.key for record in records)


def _is_over(record: DMFailureMember, own: dict[str, PDMember], lost: Sequence[Failing]) -> bool:
    """Whether a master whose removal was intended is no longer lost; one that is not listed is removed half-way."""
    member = own.get(record.pod_name)
    return member is not None and all(each.pod != record.pod_name for each in lost)


def _awaited(ctx: DMContext, own: dict[str, PDMember]) -> str:
    """What comes before the removal of another master: substitutes that do not even run need more than that."""
    pods = {pod.metadata.name: pod.decode_as(Pod) for pod in pods_of(ctx, MASTER)}
    joining = (pod for pod in substitutes(ctx, MASTER) if pod in pods and pod not in own)
    pending = [named(ctx, MASTER, pod) for pod in joining if pods[pod].status.phase == "Pending"]
    return f"{', '.join(pending)} runs" if pending else ""


def _all_healthy(ctx: DMContext, own: dict[str, PDMember]) -> bool:
    """Whether all that the spec asks for serve, so that no substitute is needed any more (F41)."""
    return all_ready(ctx, MASTER) and all(pod in own and own[pod].health for pod in desired_pods(ctx, MASTER))


def _carry_out(ctx: DMContext, step: Step[DMFailureMember], situation: Situation[DMFailureMember]) -> Outcome:
    status = ctx.status.master
    outcome: Outcome = Done()
    match step:
        case Nothing() if situation.enough_serve and not situation.open_record:
            way_back = "the extra pod will be removed once the lost one is a healthy master again"
            outcome = serving_instead(ctx, MASTER, "DMMasterFailedOver", replaced(ctx), way_back)
        case Recover():
            names = ", ".join(record.pod_name for record in status.failure_members.values())
            status.failure_members = {}
            record_event(ctx, RECOVERY, f"all requested masters are healthy again, including {names}", is_warning=False)
        case DropRecord(record):
            status.failure_members = {pod: each for pod, each in status.failure_members.items() if each != record}
        case Replace(record):
            outcome = _replace(ctx, record)
        case RecordFailure(lost):
            outcome = _record_failure(ctx, lost)
        case Wait():
            outcome = still_waiting(ctx, MASTER, "DMMasterUnhealthy", situation.failing, situation.period)
        case Postpone(lost, until):
            what = f"pod {lost.pod} has been lost since {stamp(lost.since)}; waiting until {until} before replacing it"
            outcome = Waiting("DMMasterUnhealthy", what, next_poll(ctx, MASTER))
        case LimitReached(lost):
            outcome = limit_reached(ctx, MASTER, len(situation.recorded), lost)
        case SubstituteLost(lost):
            outcome = substitute_lost(ctx, MASTER, lost)
        case QuorumLost():
            outcome = _quorum_lost(ctx, {pod for pod, member in status.members.items() if not member.health})
    return outcome


def _record_failure(ctx: DMContext, lost: Failing) -> Outcome:
    """Write down what is going to be removed; nothing is until that is stored (I23, F45)."""
    status = ctx.status.master
    (claim,) = [*claim_uids(ctx, MASTER, lost.pod), ""][:1]
    status.failure_members = status.failure_members | {
        lost.pod: DMFailureMember(
            pod_name=lost.pod, member_id=lost.key, pvc_uid=claim, created_at=stamp(ctx.deps.clock.wall())
        )
    }
    record_event(ctx, "Unhealthy", f"master {lost.key} of pod {lost.pod} has been lost since {stamp(lost.since)}")
    return Waiting(_REASON, f"pod {lost.pod} has been lost since {stamp(lost.since)} and will be replaced")


def _replace(ctx: DMContext, record: DMFailureMember) -> Outcome:
    """Remove member, pod and volume of a record; each was done already or is done again (R04)."""
    recorded = live_status(ctx)
    if recorded.status.master.failure_members.get(record.pod_name) != record:
        return Waiting(_REASON, f"waiting for the cache to show the failure record of pod {record.pod_name}", 0.5)
    masters = api_clients.dm_masters(ctx)
    found = masters.masters()
    lost = next((each for each in found if each.id == record.member_id), None)
    if lost and (waiting := _remove(ctx, masters, found, lost, recorded)):
        return waiting
    gone = master_gone(ctx, record.pod_name)
    if gone is None:
        what = f"waiting for the masters to remove that of pod {record.pod_name}"
        return Waiting(_REASON, what, next_poll(ctx, MASTER))
    clean_up(ctx, MASTER, record.pod_name, {record.pvc_uid} - {""}, gone)
    record.member_deleted = True
    return Waiting(_REASON, f"the master of pod {record.pod_name} was removed; starting another in its place")


def _remove(
    ctx: DMContext, masters: DMMasterClient, found: Sequence[LiveMaster], lost: LiveMaster, recorded: Evidence
) -> Waiting | None:
    """Take a lost master out; what it waits for, if it does."""
    expendable = masters_without(found, lost)
    if expendable is None:
        what = f"waiting for a majority of masters to be alive before removing the lost one of pod {lost.name}"
        return Waiting(_REASON, what, next_poll(ctx, MASTER))
    delete_master(masters, lost, recorded & expendable)
    record_event(ctx, "DMMasterMemberDeleted", f"master {lost.id} of pod {lost.name} was removed from DM")
    return None


def _quorum_lost(ctx: DMContext, lost: set[str]) -> Outcome:
    """The refusal when the masters can't decide any more: only an administrator can help then (R29, I24)."""
    total = len(ctx.status.master.members)
    if not lost or (total - len(lost)) * 2 > total:
        ctx.failure_timers.reset(_QUORUM)
        return Done()
    (seen,) = ctx.failure_timers.update(_QUORUM, [_QUORUM], ctx.deps.clock).values()
    if seen.lasted < ctx.settings.failover.dm_master_period:
        return Done()
    names = ", ".join(named(ctx, MASTER, pod) for pod in sorted(lost))
    what = (
        f"{len(lost)} of {total} masters are lost: {names}; without a quorum none is replaced; restore a majority, or "
        "give up their data: suspend the masters, delete their PVCs, and resume"
    )
    return Refused("DMMasterQuorumLost", what)


def _record_transitions(ctx: DMContext, status: DMMasterStatus) -> None:
    """Record an event for each master that was healthy in the stored status and is not now."""
    ill = [member for member in status.members.values() if not member.health]
    before = stored_status(ctx).master.members if ill else {}
    for member in ill:
        if member.name in before and before[member.name].health and member.name in _ready(ctx):
            record_event(ctx, "MasterMemberUnhealthy", f"master {member.name} (id {member.id}) is not healthy")


def _own(ctx: DMContext) -> dict[str, PDMember]:
    """The masters of the pods that the spec and failover ask for, by pod."""
    members = ctx.status.master.members
    pods = [*desired_pods(ctx, MASTER), *substitutes(ctx, MASTER)]
    return {pod: members[pod] for pod in pods if pod in members}


def _ready(ctx: DMContext) -> set[str]:
    return {pod.metadata.name for pod in pods_of(ctx, MASTER) if pod.decode_as(Pod).is_ready}
