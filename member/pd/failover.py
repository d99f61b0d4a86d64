"""The replacement of lost PD members (lifecycle.md 9.2): the part that differs from `member.failover.members`."""

from collections.abc import Mapping, Sequence
from typing import Any

from apis.component_statuses import PDFailureMember, PDStatus
from apis.identity import FORCE_PD_BOOTSTRAP, is_abandoned, known_cluster_ids
from apis.shared import PDMember
from apis.times import stamp
from dataplane.pd import LiveMember, LiveMembership
from kube.objects import Object
from kube.resources import PODS
from member import api_clients
from member.actions import RemoveMember
from member.context import ReconcileContext
from member.evidence import Evidence, majority_without, member_gone
from member.failover.members import MemberFailover
from member.failover.node_failure import handle_failed_hosts, wait_for_replacement
from member.failover.quorum import Situation
from member.failover.steps import claim_uids, clean_up, live_status, record_event, well_unseen
from member.failover.witnesses import Failing
from member.lifecycle import pod_removal
from member.naming import ordinal_of
from member.observed.claims import claimed_ids
from member.observed.nodes import NodeState, node_state
from member.observed.pod import Pod
from member.observed.pods import wanted_pods
from member.outcome import Outcome, Refused, Waiting
from member.ownership import members_by_pod, own_member
from member.polling import next_poll, seconds_since

_BOOTSTRAP = "pd-bootstrap"
"""The failure timer for a PD cluster that exists without a serving member."""
_OVERDUE = 60.0
"""Seconds that the operator waits for a pod beyond its grace period."""


class _PDFailover(MemberFailover[ReconcileContext, PDFailureMember]):
    component = "pd"
    noun = "PD member"
    unhealthy = member_unhealthy = "PDMemberUnhealthy"
    peer_unhealthy = "PDPeerMemberUnhealthy"
    in_progress = "PDFailover"
    failed_over = "PDFailedOver"
    quorum_lost = "PDQuorumLost"
    quorum_way_out = "restore a majority manually, or recover PD"

    @property
    def status(self) -> PDStatus:
        return self.ctx.status.pd

    @property
    def period(self) -> float:
        return self.ctx.settings.failover.pd_period

    @property
    def max_failover_count(self) -> int | None:
        return self.ctx.tc.spec.pd.max_failover_count if self.ctx.tc.spec.pd else None

    def own(self) -> dict[str, PDMember]:
        return _own(self.ctx)

    def everyone(self, status: Any) -> Mapping[str, PDMember]:
        return _all(status)

    def is_over(self, record: PDFailureMember, own: Mapping[str, PDMember], lost: Sequence[Failing]) -> bool:
        return is_over(self.ctx, record, own, lost)

    def record(self, lost: Failing) -> tuple[str, PDFailureMember]:
        return self.own()[lost.pod].name, PDFailureMember(
            pod_name=lost.pod,
            member_id=lost.key,
            pvc_uid_set=claim_uids(self.ctx, "pd", lost.pod),
            created_at=stamp(self.ctx.deps.clock.wall()),
        )

    async def replace(self, record: PDFailureMember, situation: Situation[PDFailureMember]) -> Outcome:
        return await _replace(self.ctx, record, situation.lost)

    def silent(self) -> Outcome:
        return _bootstrap_refused(self.ctx) or super().silent()


async def failover(ctx: ReconcileContext) -> Outcome:
    """Replace lost members, one step per reconcile. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    return await _PDFailover(ctx).step()


def replaced(ctx: ReconcileContext) -> set[str]:
    """See `MemberFailover`."""
    return _PDFailover(ctx).replaced()


def ignored_pods(ctx: ReconcileContext) -> set[str]:
    """See `MemberFailover`."""
    return _PDFailover(ctx).ignored_pods()


async def _replace(ctx: ReconcileContext, record: PDFailureMember, lost: Sequence[Failing]) -> Outcome:
    """Remove member, pod and volumes of a record; steps that are already done have no effect (R04)."""
    name = next(name for name, each in ctx.status.pd.failure_members.items() if each == record)
    recorded = live_status(ctx)
    if recorded.status.pd.failure_members.get(name) != record:
        return Waiting(
            "CacheOutdated",
            f"waiting for the operator's cache to show the failure record of pod {record.pod_name}",
            0.5,
        )
    if waiting := await handle_failed_hosts(ctx, "pd", {name: record}, lost) or wait_for_replacement(ctx, "pd", record):
        return waiting
    if has_volumes(ctx, record) and (waiting := well_unseen(ctx, "pd", [record.pod_name])):
        return waiting
    if waiting := await _take_away(ctx, record, recorded):
        return waiting
    record.member_deleted = True
    return Waiting(
        "PDFailover", f"the member of pod {record.pod_name} was removed from PD; starting another in its place"
    )


async def _take_away(ctx: ReconcileContext, record: PDFailureMember, recorded: Evidence) -> Waiting | None:
    """Remove member, pod and volumes; None if none of them is left, nor a pod that could join again."""
    pd = api_clients.pd(ctx)
    members = pd.members()
    begun = not has_volumes(ctx, record)
    if begun and (waiting := end_of_pod(ctx, record, members)):
        return waiting
    member = members.member(int(record.member_id))
    if member and (waiting := await _remove(ctx, member, members, record, recorded)):
        return waiting
    gone = member_gone(ctx, record.pod_name)
    if gone is None:
        # the next pod has already joined, or PD has not removed the member yet
        what = f"waiting for PD to remove the member of pod {record.pod_name}"
        return None if begun else Waiting("PDFailover", what, next_poll(ctx, "pd"))
    await clean_up(ctx, "pd", record.pod_name, recorded_claims(record), gone)
    return end_of_pod(ctx, record, members)


async def _remove(
    ctx: ReconcileContext, member: LiveMember, found: LiveMembership, record: PDFailureMember, recorded: Evidence
) -> Waiting | None:
    """Remove a lost member from PD; returns the wait if that is not possible yet."""
    pd = api_clients.pd(ctx)
    expendable = majority_without(pd, member, found.members)
    if expendable is None:
        what = f"waiting for a healthy majority of PD members before removing the lost member of pod {record.pod_name}"
        return Waiting("PDFailover", what, next_poll(ctx, "pd"))
    await RemoveMember(pd, member, recorded & expendable)
    await record_event(
        ctx, "PDMemberDeleted", f"member {record.member_id} of pod {record.pod_name} was removed from PD"
    )
    return None


def _bootstrap_refused(ctx: ReconcileContext) -> Refused | None:
    """The refusal to bootstrap if an id or data show that the PD cluster exists, while no member serves (F40).

    Pods without data wait meanwhile: Discovery lets none of them begin another cluster.
    """
    ids, stores = known_cluster_ids(ctx.tc, claimed_ids(ctx)), ctx.status.tikv.stores
    if not (ids or stores) or is_abandoned(ctx.tc, ids) or _own(ctx):
        ctx.memory.failure_timers.reset(_BOOTSTRAP)
        return None
    (seen,) = ctx.memory.failure_timers.update(_BOOTSTRAP, [_BOOTSTRAP], ctx.deps.clock).values()
    if seen.seconds < ctx.settings.failover.pd_period:
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


def _own(ctx: ReconcileContext) -> dict[str, PDMember]:
    """The members of the pods that spec and failover require, by pod."""
    found = members_by_pod(ctx.tc, ctx.status.pd.members.values())
    return {pod: found[ordinal] for pod in wanted_pods(ctx, "pd") if (ordinal := ordinal_of(pod)) in found}


def _all(pd: PDStatus) -> dict[str, PDMember]:
    return pd.members | pd.peer_members


def recorded_claims(record: PDFailureMember) -> set[str]:
    """The UIDs of a lost member's volume claims."""
    return {*record.pvc_uid_set, record.pvc_uid} - {""}


def has_volumes(ctx: ReconcileContext, record: PDFailureMember) -> bool:
    """True if the pod of a lost member still has all its recorded volumes, according to the caches."""
    live = ctx.stateful_set("pd")
    if live is None:
        return True
    claims = pod_removal.cached(ctx, "pd", live.decode(), ordinal_of(record.pod_name)).claims
    return recorded_claims(record) <= {claim.metadata.uid for claim in claims if not claim.metadata.deletion_timestamp}


def is_over(
    ctx: ReconcileContext, record: PDFailureMember, own: Mapping[str, PDMember], lost: Sequence[Failing]
) -> bool:
    """True if a member whose removal was planned is no longer lost. If PD no longer lists it, the removal is half done.

    After its volumes were given up a member does not return: the member of the next pod takes its place.
    """
    member = own.get(record.pod_name)
    if member is None:
        return False
    if has_volumes(ctx, record):
        return all(failing.key != record.member_id for failing in lost)
    pod = ctx.listers.pods.get(ctx.namespace, record.pod_name)
    ends = pod is None or pod.metadata.deletion_timestamp
    return member.health and member.id != record.member_id and not ends


def end_of_pod(ctx: ReconcileContext, record: PDFailureMember, found: LiveMembership) -> Waiting | None:
    """The wait until a given-up pod has ended. If the pod has left another member, records its id for removal.

    A pod whose start script still runs receives the request to end, and may join PD in its grace period (F29). It then
    leaves a member without data, which keeps later pods of its name from joining. Only until the next pod runs can the
    operator distinguish the two members. `found` was read earlier: a member in it that cannot be the next pod's is
    recorded. Raises ApiError, TransportError.
    """
    pod = ctx.deps.client.find(PODS, record.pod_name, ctx.namespace)
    again = own_member(ctx.tc, found.members, ordinal_of(record.pod_name))
    if again and str(again.id) != record.member_id and not _may_be_of(pod, named=bool(again.name)):
        record.member_id = str(again.id)
        what = f"pod {record.pod_name} joined PD once more while it ended; its member {again.id} will be removed"
        return Waiting("PDFailover", what, 0.5)
    if pod is None or not _is_ending(ctx, pod):
        return None
    what = f"the member of pod {record.pod_name} was removed from PD; waiting for the pod to end"
    return Waiting("PDFailover", what, next_poll(ctx, "pd"))


def _may_be_of(pod: Object | None, *, named: bool) -> bool:
    """True if a member may belong to the pod that follows the given-up pod.

    A member with a name has started, by which time Kubernetes has also reported the start of its container.
    """
    if pod is None or pod.metadata.deletion_timestamp:
        return False
    return pod.decode_as(Pod).has_started("pd") or not named


def _is_ending(ctx: ReconcileContext, pod: Object) -> bool:
    """True if a pod is about to end; one on a lost node, or long overdue, may never end."""
    until = pod.metadata.deletion_timestamp
    if not until or node_state(ctx, pod) is NodeState.NOT_READY:
        return False
    return seconds_since(until, ctx.deps.clock.wall()) < _OVERDUE
