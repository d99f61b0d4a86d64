"""Failover in a quorum, for PD members and DM masters (lifecycle.md 9.2, other-resources.md 6.7).

A loss is recorded → the member is removed, then its pod and volumes → one more pod is wanted. Once all members that the
spec asks for are healthy, the operator drops the records, and with them the extra pods.

One member is replaced at a time, and only with a majority of healthy members before and after: `member.failover.quorum`
decides.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from apis.accessor import component as component_of
from apis.components import component_type
from apis.shared import PDMember
from apis.times import parse_time, stamp
from member.context import ClusterContext
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
    clear_requested,
    given_up,
    ignorable,
    limit,
    limit_reached,
    named,
    record_event,
    serving_instead,
    still_waiting,
    substitute_lost,
    substitutes,
    well_unseen,
)
from member.failover.witnesses import Failing, PodState, desired_pods, failing, is_cut_off, testimony
from member.naming import ordinal_of
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll


class FailureMember(Protocol):
    """The record of a lost member; `member_deleted` once the member, its pod and its volumes are gone."""

    pod_name: str
    member_id: str
    member_deleted: bool


C = TypeVar("C", bound=ClusterContext)
R = TypeVar("R", bound=FailureMember)


class MemberStatus(Protocol[R]):
    """The status of a component whose members form a quorum."""

    synced: bool
    members: dict[str, PDMember]
    failure_members: dict[str, R]


class MemberFailover(ABC, Generic[C, R]):
    """The failover of one component's members in one reconcile.

    The string attributes are mostly the reasons of outcomes and events.
    """

    component: str
    noun: str
    unhealthy: str
    member_unhealthy: str
    peer_unhealthy: str = ""
    in_progress: str
    failed_over: str
    quorum_lost: str
    quorum_way_out: str

    def __init__(self, ctx: C) -> None:
        self.ctx = ctx

    # What differs between components

    @property
    @abstractmethod
    def status(self) -> MemberStatus[R]:
        """The working copy of the status."""

    @property
    @abstractmethod
    def period(self) -> float:
        """Seconds for which a member must be lost before it is replaced."""

    @property
    @abstractmethod
    def max_failover_count(self) -> int | None:
        """The number of members that may be replaced at a time, from the spec."""

    @abstractmethod
    def own(self) -> dict[str, PDMember]:
        """The members of the pods that the spec and failover ask for, by pod."""

    @abstractmethod
    def is_over(self, record: R, own: Mapping[str, PDMember], lost: Sequence[Failing]) -> bool:
        """True if a member recorded for removal is no longer lost.

        A member that the component no longer lists still counts as lost: its removal has begun.
        """

    @abstractmethod
    def record(self, lost: Failing) -> tuple[str, R]:
        """The key and the record of a loss. Raises ApiError, TransportError."""

    @abstractmethod
    async def replace(self, record: R, situation: Situation[R]) -> Outcome:
        """Remove the member, pod and volumes of a record; each removal can be repeated (R04)."""

    def everyone(self, status: Any) -> Mapping[str, PDMember]:
        """All voters by name, from a status of this component."""
        members: dict[str, PDMember] = status.members
        return members

    def silent(self) -> Outcome:
        """The outcome while the members do not report their state."""
        verdict = self.ctx.unavailable.get(self.component)
        if verdict is not None:
            return self._quorum_lost(verdict.failed)
        return self._quorum_lost({pod for pod in self.own() if not self._is_ready(pod)})

    # What components share

    async def step(self) -> Outcome:
        """Take the next step to replace a lost member. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
        ctx, status = self.ctx, self.status
        if await clear_requested(ctx, self.component, bool(status.failure_members)):
            status.failure_members = {}
        kept = {name: each for name, each in status.failure_members.items() if not self._is_given_up(each)}
        if len(kept) < len(status.failure_members):
            status.failure_members = kept
        if not status.synced:
            ctx.memory.failure_timers.reset(self.component)
            return self.silent()
        await self._record_transitions()
        situation = self._situation()
        if situation.has_majority:
            ctx.memory.failure_timers.reset(self._no_majority)
        return await self._carry_out(next_step(situation), situation)

    def _is_given_up(self, record: R) -> bool:
        """True if a delete slot takes the place of a lost member, which a scale-in then removes."""
        return given_up(self.ctx, self.component, record.pod_name)

    def replaced(self) -> set[str]:
        """The pods whose members were removed as lost; substitutes serve in their place."""
        removed = {record.pod_name for record in self.status.failure_members.values() if record.member_deleted}
        return removed - self.own().keys() if removed else removed

    def ignored_pods(self) -> set[str]:
        """The pods that a roll ignores: lost ones that are recorded and replaced, and substitutes that never joined."""
        records = self.status.failure_members.values()
        if not records:
            return set()
        own = self.own()
        ill = {record.pod_name for record in records if record.pod_name not in own or not own[record.pod_name].health}
        return ignorable(self.ctx, self.component, ill, own)

    def _situation(self) -> Situation[R]:
        ctx, records, own = self.ctx, self.status.failure_members.values(), self.own()
        ill = {pod: member for pod, member in own.items() if not member.health}
        since = {member.id: parse_time(member.last_transition_time or "") for member in ill.values()}
        everywhere = failing(ctx, self.component, {member.id: pod for pod, member in ill.items()}, since.get)
        lost = [each for each in everywhere if each.pod in desired_pods(ctx, self.component)]
        open_record = next((record for record in records if not record.member_deleted), None)
        everyone = self.everyone(self.status)
        return Situation(
            lost=lost,
            failing=[each for each in lost if not self._is_recorded(each) and not is_cut_off(ctx, self.component)],
            recorded={record.pod_name for record in records},
            open_record=open_record,
            open_record_is_over=open_record is not None and self.is_over(open_record, own, lost),
            all_healthy=not lost and bool(records) and self._all_healthy(own),
            enough_serve=sum(member.health for member in own.values())
            >= component_of(ctx.tc, self.component).workload.replicas,
            lost_substitutes=[each for each in everywhere if each not in lost],
            awaited=self._awaited(own),
            has_majority=sum(member.health for member in everyone.values()) * 2 > len(everyone),
            limit=limit(ctx, self.max_failover_count),
            period=self.period,
        )

    def _is_recorded(self, lost: Failing) -> bool:
        """True if the loss has its record; a record of the pod's previous, deleted member does not count."""
        records = (record for record in self.status.failure_members.values() if record.pod_name == lost.pod)
        return any(not record.member_deleted or record.member_id == lost.key for record in records)

    def _awaited(self, own: Collection[str]) -> str:
        """The substitutes that do not run yet, for which the removal of another member waits; empty if none."""
        joining = {pod for pod in substitutes(self.ctx, self.component) if pod not in own}
        pods = [pod for pod in pods_of(self.ctx, self.component) if pod.metadata.name in joining] if joining else ()
        pending = [pod.metadata.name for pod in pods if not pod.decode_as(Pod).has_started(self.component)]
        names = ", ".join(named(self.ctx, self.component, name) for name in sorted(pending, key=ordinal_of))
        return f"{names} runs" if names else ""

    def _all_healthy(self, own: Mapping[str, PDMember]) -> bool:
        """True if all members that the spec asks for serve, so that no substitute is needed (F41)."""
        desired = desired_pods(self.ctx, self.component)
        return all_ready(self.ctx, self.component) and all(pod in own and own[pod].health for pod in desired)

    async def _carry_out(self, step: Step[R], situation: Situation[R]) -> Outcome:
        ctx, component, records = self.ctx, self.component, self.status.failure_members
        outcome: Outcome = Done()
        match step:
            case Nothing() if situation.enough_serve and not situation.open_record:
                way_back = "the extra pod will be removed once the lost one is a healthy member again"
                outcome = serving_instead(ctx, component, self.failed_over, self.replaced(), way_back)
            case Recover():
                names = ", ".join(record.pod_name for record in records.values())
                self.status.failure_members = {}
                recovered = f"all requested {self.noun}s are healthy again, including {names}"
                await record_event(ctx, RECOVERY, recovered, is_warning=False)
            case DropRecord(record):
                self.status.failure_members = {name: each for name, each in records.items() if each != record}
            case Replace(record):
                outcome = await self.replace(record, situation)
            case RecordFailure(lost):
                outcome = await self._record_failure(lost)
            case Wait():
                outcome = still_waiting(ctx, component, self.unhealthy, situation.failing, situation.period)
            case Postpone(lost, until):
                since = stamp(lost.since)
                what = f"pod {lost.pod} has been lost since {since}; waiting until {until} before replacing it"
                outcome = Waiting(self.unhealthy, what, next_poll(ctx, component))
            case LimitReached(lost):
                outcome = limit_reached(ctx, component, len(situation.recorded), lost)
            case SubstituteLost(lost):
                outcome = substitute_lost(ctx, component, lost)
            case QuorumLost():
                outcome = self._quorum_lost({pod for pod, member in self.own().items() if not member.health})
        return outcome

    async def _record_failure(self, lost: Failing) -> Outcome:
        """Record what will be removed; the removal waits until the record is stored (I23, F45)."""
        if waiting := well_unseen(self.ctx, self.component, [lost.pod]):
            return waiting
        name, record = self.record(lost)
        others = {key: each for key, each in self.status.failure_members.items() if each.pod_name != lost.pod}
        self.status.failure_members = {**others, name: record}
        what = f"pod {lost.pod} has been lost since {stamp(lost.since)} and will be replaced"
        return Waiting(self.in_progress, what)

    @property
    def _no_majority(self) -> str:
        """The kind of failure timer for a lost majority."""
        return f"{self.component} quorum"

    def _quorum_lost(self, lost: Collection[str]) -> Outcome:
        """The refusal to replace members of a lost quorum: only an administrator can repair it (R29, I24)."""
        timers, kind, total = self.ctx.memory.failure_timers, self._no_majority, len(self.everyone(self.status))
        if not lost or (total - len(lost)) * 2 > total:
            timers.reset(kind)
            return Done()
        (seen,) = timers.update(kind, [kind], self.ctx.deps.clock).values()
        if seen.seconds < self.period:
            return Done(retry_after=self.period - seen.seconds)
        names = ", ".join(named(self.ctx, self.component, pod) for pod in sorted(lost))
        what = (
            f"{len(lost)} of {total} {self.noun}s are lost: {names}; without a quorum none is replaced; "
            f"{self.quorum_way_out}"
        )
        return Refused(self.quorum_lost, what)

    async def _record_transitions(self) -> None:
        """Emit an event for each member that was healthy in the stored status and no longer is (15)."""
        ill = [member for member in self.everyone(self.status).values() if not member.health]
        if not ill:
            return
        before = self.everyone(component_type(self.component).status(self.ctx.stored_status))
        pods = {member.name: pod for pod, member in self.own().items()}
        for member in ill:
            if member.name in before and before[member.name].health and not self._is_restarted(pods.get(member.name)):
                what = f"{self.noun} {member.name} (id {member.id}) is not healthy"
                is_own = member.name in self.status.members
                await record_event(self.ctx, self.member_unhealthy if is_own else self.peer_unhealthy, what)

    def _is_restarted(self, name: str | None) -> bool:
        """True if a roll or a deletion restarts this pod on purpose, so that its member will return."""
        if name is None or self.ctx.memory.rolls.announced.get(self.component) == name:
            return name is not None
        pod = next((each for each in pods_of(self.ctx, self.component) if each.metadata.name == name), None)
        if pod is None or pod.metadata.deletion_timestamp:
            return True
        return not pod.decode_as(Pod).has_started(self.component)

    def _is_ready(self, name: str) -> bool:
        pod = next((each for each in pods_of(self.ctx, self.component) if each.metadata.name == name), None)
        return testimony(self.ctx, self.component, pod) is PodState.READY
