"""Replacing PD members that are lost (lifecycle.md 9.2).

recorded → its member is removed from PD, then its pod and volumes → one more pod is wanted → when all that the spec
asks for are well again, the records go, and with them the extra pods.

One at a time, and only where PD has a majority of healthy members before and after.
"""

from collections.abc import Sequence

from apis.component_statuses import PDFailureMember, PDStatus
from apis.identity import FORCE_PD_BOOTSTRAP, is_abandoned, known_cluster_ids
from apis.shared import PDMember
from apis.times import parse_time, stamp
from dataplane.pd import LiveMember, PDClient
from member import api_clients
from member.context import ReconcileContext
from member.evidence import Evidence, delete_member, majority_without, member_gone
from member.failover.node_failure import handle_failed_hosts, wait_for_replacement
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
from member.failover.witnesses import Failing, PodState, desired_pods, failing, is_cut_off, testimony
from member.naming import ordinal_of
from member.observed.claims import claimed_ids
from member.observed.pods import Pod, pods_of
from member.outcome import Done, Outcome, Refused, Waiting
from member.ownership import own_member
from member.pd.given_up import end_of_pod, has_volumes, is_over, recorded_claims
from member.polling import next_poll

_QUORUM = "pd-quorum"
"""The kind of failure timer that there is no majority."""

_BOOTSTRAP = "pd-bootstrap"
"""The kind of failure timer that no member of a PD that exists is serving."""


def failover(ctx: ReconcileContext) -> Outcome:
    """Replace what is lost, a step a reconcile. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    pd = ctx.status.pd
    if clear_requested(ctx, "pd", bool(pd.failure_members)):
        pd.failure_members = {}
    if not pd.synced:
        ctx.failure_timers.reset("pd")
        return _bootstrap_refused(ctx) or _quorum_lost(ctx, {pod for pod in _own(ctx) if not _is_ready(ctx, pod)})
    _record_transitions(ctx, pd)
    situation = _situation(ctx, pd)
    if situation.has_majority:
        ctx.failure_timers.reset(_QUORUM)
    return _carry_out(ctx, next_step(situation), situation)


def replaced(ctx: ReconcileContext) -> set[str]:
    """The pods that have no member any more because it was removed as lost: another pod is to take their place."""
    own = _own(ctx)
    records = ctx.status.pd.failure_members.values()
    return {record.pod_name for record in records if record.member_deleted and record.pod_name not in own}


def ignored_pods(ctx: ReconcileContext) -> set[str]:
    """The pods that a roll ignores: lost ones that are recorded and replaced, and substitutes that never joined."""
    if not ctx.status.pd.failure_members:
        return set()
    own = _own(ctx)
    lost = {record.pod_name for record in ctx.status.pd.failure_members.values()}
    ill = {pod for pod in lost if pod not in own or not own[pod].health}
    return ignorable(ctx, "pd", ill, own)


def _situation(ctx: ReconcileContext, pd: PDStatus) -> Situation[PDFailureMember]:
    own, settings = _own(ctx), ctx.settings.failover
    spec = ctx.tc.spec.pd
    ill = {pod: member for pod, member in own.items() if not member.health}
    since = {member.id: parse_time(member.last_transition_time or "") for member in ill.values()}
    desired = desired_pods(ctx, "pd")
    everywhere = failing(ctx, "pd", {member.id: pod for pod, member in ill.items()}, since.get)
    lost = [each for each in everywhere if each.pod in desired]
    recorded = {record.pod_name for record in pd.failure_members.values()}
    open_record = next((record for record in pd.failure_members.values() if not record.member_deleted), None)
    return Situation(
        lost=lost,
        failing=[each for each in lost if not _is_recorded(pd, each) and not is_cut_off(ctx, "pd")],
        recorded=recorded,
        open_record=open_record,
        open_record_is_over=open_record is not None and is_over(ctx, open_record, own, lost),
        all_healthy=not lost and bool(recorded) and _all_healthy(ctx, own),
        enough_serve=sum(member.health for member in own.values()) >= (spec.replicas if spec else 0),
        lost_substitutes=[each for each in everywhere if each not in lost],
        awaited=_awaited(ctx, own),
        has_majority=sum(member.health for member in _all(pd).values()) * 2 > len(_all(pd)),
        limit=limit(ctx, spec.max_failover_count if spec else 0),
        period=settings.pd_period,
    )


def _is_recorded(pd: PDStatus, lost: Failing) -> bool:
    """Whether a loss has its record; a pod that came back with another member, and lost that too, has none of it."""
    records = (record for record in pd.failure_members.values() if record.pod_name == lost.pod)
    return any(not record.member_deleted or record.member_id == lost.key for record in records)


def _awaited(ctx: ReconcileContext, own: dict[str, PDMember]) -> str:
    """What comes before the removal of another member: substitutes that do not even run need more than that."""
    pods = {pod.metadata.name: pod.decode_as(Pod) for pod in pods_of(ctx, "pd")}
    joining = (pod for pod in substitutes(ctx, "pd") if pod in pods and pod not in own)
    pending = [named(ctx, "pd", pod) for pod in joining if pods[pod].status.phase == "Pending"]
    return f"{', '.join(pending)} runs" if pending else ""


def _all_healthy(ctx: ReconcileContext, own: dict[str, PDMember]) -> bool:
    """Whether all that the spec asks for serve, so that no substitute is needed any more (F41)."""
    return all_ready(ctx, "pd") and all(pod in own and own[pod].health for pod in desired_pods(ctx, "pd"))


def _carry_out(ctx: ReconcileContext, step: Step[PDFailureMember], situation: Situation[PDFailureMember]) -> Outcome:
    records = ctx.status.pd.failure_members
    outcome: Outcome = Done()
    match step:
        case Nothing() if situation.enough_serve and not situation.open_record:
            way_back = "the extra pod will be removed once the lost one is a healthy member again"
            outcome = serving_instead(ctx, "pd", "PDFailedOver", replaced(ctx), way_back)
        case Recover():
            names = ", ".join(record.pod_name for record in records.values())
            ctx.status.pd.failure_members = {}
            recovered = f"all requested PD members are healthy again, including {names}"
            record_event(ctx, RECOVERY, recovered, is_warning=False)
        case DropRecord(record):
            ctx.status.pd.failure_members = {name: each for name, each in records.items() if each != record}
        case Replace(record):
            outcome = _replace(ctx, record, situation.lost)
        case RecordFailure(lost):
            outcome = _record_failure(ctx, lost)
        case Wait():
            outcome = still_waiting(ctx, "pd", "PDMemberUnhealthy", situation.failing, situation.period)
        case Postpone(lost, until):
            what = f"pod {lost.pod} has been lost since {stamp(lost.since)}; waiting until {until} before replacing it"
            outcome = Waiting("PDMemberUnhealthy", what, next_poll(ctx, "pd"))
        case LimitReached(lost):
            outcome = limit_reached(ctx, "pd", len(situation.recorded), lost)
        case SubstituteLost(lost):
            outcome = substitute_lost(ctx, "pd", lost)
        case QuorumLost():
            outcome = _quorum_lost(ctx, {pod for pod, member in _own(ctx).items() if not member.health})
    return outcome


def _record_failure(ctx: ReconcileContext, lost: Failing) -> Outcome:
    """Write down what is going to be removed; nothing is until that is stored (I23, F45)."""
    member = _own(ctx)[lost.pod]
    of_others = {name: each for name, each in ctx.status.pd.failure_members.items() if each.pod_name != lost.pod}
    ctx.status.pd.failure_members = of_others | {
        member.name: PDFailureMember(
            pod_name=lost.pod,
            member_id=lost.key,
            pvc_uid_set=claim_uids(ctx, "pd", lost.pod),
            created_at=stamp(ctx.deps.clock.wall()),
        )
    }
    return Waiting("PDFailover", f"pod {lost.pod} has been lost since {stamp(lost.since)} and will be replaced")


def _replace(ctx: ReconcileContext, record: PDFailureMember, lost: Sequence[Failing]) -> Outcome:
    """Remove member, pod and volumes of a record; each was done already or is done again (R04)."""
    name = next(name for name, each in ctx.status.pd.failure_members.items() if each == record)
    recorded = live_status(ctx)
    if recorded.status.pd.failure_members.get(name) != record:
        return Waiting("PDFailover", f"waiting for the cache to show the failure record of pod {record.pod_name}", 0.5)
    if waiting := handle_failed_hosts(ctx, "pd", {name: record}, lost) or wait_for_replacement(ctx, "pd", record):
        return waiting
    if waiting := _take_away(ctx, record, recorded):
        return waiting
    record.member_deleted = True
    return Waiting(
        "PDFailover", f"the member of pod {record.pod_name} was removed from PD; starting another in its place"
    )


def _take_away(ctx: ReconcileContext, record: PDFailureMember, recorded: Evidence) -> Waiting | None:
    """Remove member, pod and volumes; None when nothing is left of them, and no pod that could join once more."""
    pd = api_clients.pd(ctx)
    members = pd.members()
    begun = not has_volumes(ctx, record)
    if begun and (waiting := end_of_pod(ctx, record, members)):
        return waiting
    if (member := members.member(int(record.member_id))) and (waiting := _remove(ctx, pd, member, record, recorded)):
        return waiting
    gone = member_gone(ctx, record.pod_name)
    if gone is None:
        # the next pod has joined already, or PD still has to remove the member
        what = f"waiting for PD to remove the member of pod {record.pod_name}"
        return None if begun else Waiting("PDFailover", what, next_poll(ctx, "pd"))
    clean_up(ctx, "pd", record.pod_name, recorded_claims(record), gone)
    return end_of_pod(ctx, record, members)


def _remove(
    ctx: ReconcileContext, pd: PDClient, member: LiveMember, record: PDFailureMember, recorded: Evidence
) -> Waiting | None:
    """Take a lost member out of PD; what it waits for, if it does."""
    expendable = majority_without(pd, member, len(_all(ctx.status.pd)))
    if expendable is None:
        what = f"waiting for a healthy majority of PD members before removing the lost member of pod {record.pod_name}"
        return Waiting("PDFailover", what, next_poll(ctx, "pd"))
    delete_member(pd, member, recorded & expendable)
    record_event(ctx, "PDMemberDeleted", f"member {record.member_id} of pod {record.pod_name} was removed from PD")
    return None


def _quorum_lost(ctx: ReconcileContext, lost: set[str]) -> Outcome:
    """The refusal when PD can't decide any more: only an administrator can help then (R29, I24)."""
    total = len(_all(ctx.status.pd))
    if not lost or (total - len(lost)) * 2 > total:
        ctx.failure_timers.reset(_QUORUM)
        return Done()
    (seen,) = ctx.failure_timers.update(_QUORUM, [_QUORUM], ctx.deps.clock).values()
    if seen.lasted < ctx.settings.failover.pd_period:
        return Done()
    names = ", ".join(named(ctx, "pd", pod) for pod in sorted(lost))
    what = (
        f"{len(lost)} of {total} PD members are lost: {names}; without a quorum no member is replaced; restore a "
        "majority manually, or recover PD"
    )
    return Refused("PDQuorumLost", what)


def _bootstrap_refused(ctx: ReconcileContext) -> Refused | None:
    """What is said of a PD that exists, as its id or its data tells, while none of its members does (F40).

    Pods without data wait then: Discovery lets none of them begin another cluster.
    """
    ids, stores = known_cluster_ids(ctx.tc, claimed_ids(ctx)), ctx.status.tikv.stores
    if not (ids or stores) or is_abandoned(ctx.tc, ids) or _own(ctx):
        ctx.failure_timers.reset(_BOOTSTRAP)
        return None
    (seen,) = ctx.failure_timers.update(_BOOTSTRAP, [_BOOTSTRAP], ctx.deps.clock).values()
    if seen.lasted < ctx.settings.failover.pd_period:
        return None
    what = f"PD cluster {', '.join(ids)}" if ids else f"a PD cluster with store {', '.join(stores)}"
    match ids:
        case ():
            way_out = "restore status.clusterID"
        case (cluster_id,):
            way_out = f'abandon its data with the annotation {FORCE_PD_BOOTSTRAP}: "{cluster_id}"'
        case _:
            way_out = "delete the PVCs of all clusters but one"
    return Refused(
        "PDBootstrapRefused",
        f"{what} exists, but none of its members is serving, so no new cluster is bootstrapped; restore the volumes of "
        f"PD, or {way_out}",
    )


def _record_transitions(ctx: ReconcileContext, pd: PDStatus) -> None:
    """Record an event for each member that was healthy in the stored status and is not now (15)."""
    ill = [member for member in _all(pd).values() if not member.health]
    if not ill:
        return
    before, own = _all(stored_status(ctx).pd), {member.name: pod for pod, member in _own(ctx).items()}
    for member in ill:
        if member.name in before and before[member.name].health and not _is_restarted(ctx, own.get(member.name)):
            reason = "PDMemberUnhealthy" if member.name in pd.members else "PDPeerMemberUnhealthy"
            record_event(ctx, reason, f"PD member {member.name} (id {member.id}) is not healthy")


def _is_restarted(ctx: ReconcileContext, name: str | None) -> bool:
    """Whether a pod of ours was restarted on purpose: by a roll, or as somebody deleted it; its member comes back."""
    if name is None or ctx.rolls.told.get("pd") == name:
        return name is not None
    pod = next((each for each in pods_of(ctx, "pd") if each.metadata.name == name), None)
    return pod is None or bool(pod.metadata.deletion_timestamp) or pod.decode_as(Pod).status.phase == "Pending"


def _own(ctx: ReconcileContext) -> dict[str, PDMember]:
    """The members of the pods that the spec and failover ask for, by pod."""
    members = ctx.status.pd.members.values()
    pods = [*desired_pods(ctx, "pd"), *substitutes(ctx, "pd")]
    found = {pod: own_member(ctx.tc, members, ordinal_of(pod)) for pod in pods}
    return {pod: member for pod, member in found.items() if member is not None}


def _all(pd: PDStatus) -> dict[str, PDMember]:
    return pd.members | pd.peer_members


def _is_ready(ctx: ReconcileContext, name: str) -> bool:
    pod = next((each for each in pods_of(ctx, "pd") if each.metadata.name == name), None)
    return testimony(ctx, "pd", pod) is PodState.READY
