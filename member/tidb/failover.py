"""The replacement of lost TiDB servers (lifecycle.md 9.4).

The operator records the loss, which adds one pod at once. When the lost server answers again, the operator removes the
record, and with it the extra pod. It does not replace a pod that cannot be scheduled: another one could not either.
"""

from apis.component_statuses import TiDBFailureMember
from apis.times import stamp
from kube.objects import Object
from member.context import ReconcileContext
from member.failover.steps import (
    RECOVERY,
    UNHEALTHY,
    clear_requested,
    ignorable,
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
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Done, Outcome, Waiting


async def failover(ctx: ReconcileContext) -> Outcome:
    """Replace lost servers. Raises ApiError, TransportError, OwnerGone."""
    tidb = ctx.status.tidb
    if await clear_requested(ctx, "tidb", bool(tidb.failure_members)):
        tidb.failure_members = {}
    await _drop_recovered(ctx)
    spec, period = ctx.tc.spec.tidb, ctx.settings.failover.tidb_period
    recorded = {record.pod_name for record in tidb.failure_members.values()}
    lost = [each for each in failing(ctx, "tidb", _ill(ctx)) if each.pod not in recorded]
    most = limit(ctx, spec.max_failover_count if spec else 0)
    if not lost:
        return _serving_instead(ctx)
    if not most or is_cut_off(ctx, "tidb"):
        return Done()
    if new := to_record(lost, len(recorded), most, period):
        return well_unseen(ctx, "tidb", [new[0].pod]) or await _record(ctx, new[0])
    if over := to_record(lost, 0, len(lost), period):
        return limit_reached(ctx, "tidb", len(recorded), over[0])
    return still_waiting(ctx, "tidb", "TiDBMemberUnhealthy", lost, period)


def ignored_pods(ctx: ReconcileContext) -> set[str]:
    """The pods that a roll ignores: lost pods that are recorded and replaced, and substitutes without a node."""
    records = ctx.status.tidb.failure_members
    if not records:
        return set()
    placed = {pod.metadata.name for pod in pods_of(ctx, "tidb") if _is_scheduled(pod)}
    return ignorable(ctx, "tidb", {record.pod_name for record in records.values()}, placed)


def _ill(ctx: ReconcileContext) -> dict[str, str]:
    """The wanted servers that do not answer although their pods have a node, without substitutes (F39)."""
    members = ctx.status.tidb.members
    if all(member.health for member in members.values()):
        return {}
    placed = {pod.metadata.name for pod in pods_of(ctx, "tidb") if _is_scheduled(pod)}
    wanted = placed.intersection(desired_pods(ctx, "tidb"))
    return {name: name for name, member in members.items() if not member.health and name in wanted}


async def _record(ctx: ReconcileContext, lost: Failing) -> Waiting:
    """Record one lost server; called at most once per reconcile."""
    now = stamp(ctx.deps.clock.wall())
    record = TiDBFailureMember(pod_name=lost.pod, created_at=now)
    ctx.status.tidb.failure_members = ctx.status.tidb.failure_members | {lost.key: record}
    what = f"pod {lost.pod} has not answered since {stamp(lost.since)}; replacing it"
    await record_event(ctx, UNHEALTHY, what)
    return Waiting("TiDBFailover", f"pod {lost.pod} is lost; starting another pod in its place")


def _serving_instead(ctx: ReconcileContext) -> Outcome:
    tidb = ctx.status.tidb
    lost = [record.pod_name for record in tidb.failure_members.values()]
    if not all(pod in tidb.members and tidb.members[pod].health for pod in remaining(ctx, "tidb", lost)):
        return Done()
    return serving_instead(
        ctx, "tidb", "TiDBFailedOver", lost, "the extra pod will be removed once the lost one answers again"
    )


async def _drop_recovered(ctx: ReconcileContext) -> None:
    """Drop the records of servers that have recovered, or that the spec no longer wants (9.4, F33)."""
    tidb, wanted = ctx.status.tidb, set(desired_pods(ctx, "tidb"))
    well = {name for name, member in tidb.members.items() if member.health}
    recovered = [key for key, record in tidb.failure_members.items() if record.pod_name in well]
    if recovered:
        await record_event(ctx, RECOVERY, f"{', '.join(recovered)} recovered", is_warning=False)
    tidb.failure_members = {
        key: record
        for key, record in tidb.failure_members.items()
        if record.pod_name in wanted and record.pod_name not in well
    }


def _is_scheduled(pod: Object) -> bool:
    return bool(pod.decode_as(Pod).spec.node_name)
