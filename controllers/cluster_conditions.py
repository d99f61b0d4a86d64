"""The conditions Ready and Observed of clusters of every kind, and of their components (lifecycle.md 2.3).

Ready has the reasons of v1.6 and improves on it in four points:

- an outage is named by its cause (`member.availability`);
- a status left over from a failed observation counts as unknown, not as good (F7);
- pods that no Service selects do not serve, whatever their servers report;
- the message continues with the message of Progressing, because `kubectl get -o wide` shows it in the column Status.

For Progressing see `controllers.conditions`. v1.6 has no Observed; a component gets it when the operator cannot read
its members for the first time:

    False    the members or stores in the status are those last seen; lastTransitionTime says since when
    True     the operator read the members in the last reconcile

A cluster gets ChangesPending when a new version of the operator would first change it (`member.lifecycle.own_changes`):

    True     the message names the components that get the change with their next restart, and the first difference
    False    all components have been restarted since
"""

from collections.abc import Mapping
from datetime import datetime

from apis.accessor import Component, component, workloads
from apis.cluster import CHANGES_PENDING, OBSERVED, Cluster
from apis.components import component_type
from apis.predicates import all_members_ready, status_of
from apis.shared import ComponentStatus
from controllers.conditions import PROGRESSING, READY, ConditionValue, with_condition
from kube.events import NORMAL, WARNING
from kube.objects import Json, condition_of, stored_condition
from member.availability import NO_PD, NO_SUCH_CLUSTER, REASONS, Verdict
from member.context import ClusterContext
from member.failover.outages import ANSWERS
from member.lifecycle.rolling import STANDS_STILL
from member.objects.stateful_set import ON_DELETE
from member.observed.status import UPGRADE
from member.outcome import DONE, Failed, NotDone, Waiting

_AGAIN = 600.0
"""Seconds for which trouble that ends and begins again is not recorded as an event once more."""

_ENDED = "ServingAgain"
"""The reason of the event that reports the end of an outage."""


def ready(
    tc: Cluster,
    parts: Mapping[str, ConditionValue],
    verdict: Verdict | None = None,
    what_runs: str = "TiDB cluster",
) -> ConditionValue:
    """The value of Ready for a cluster, from the status that this reconcile observed.

    `parts` are the values for its components. `verdict` is the outage that explains all others; None if there is none.
    """
    if verdict:
        return False, verdict.reason, verdict.message
    statuses = {name: status for name in parts if (status := status_of(tc, name))}
    outdated = ", ".join(f"{pods} of {name}" for name, status in statuses.items() if (pods := _outdated(status)))
    if outdated or any(_is_rolling(tc, name, status) for name, status in statuses.items()):
        what = "Statefulset(s) are in progress"
        return False, "StatefulSetNotUpToDate", f"{what}: {outdated} are outdated" if outdated else what
    judged = sorted([(row.unready.rank, row.name) for row in map(component_type, parts) if row.unready])
    unready = next((parts[name] for _, name in judged if not parts[name][0]), None)
    return unready or (True, READY, f"{what_runs} is fully up and running")


def headline(ctx: ClusterContext) -> Verdict | None:
    """The outage that causes the others: of the cluster that this one joins, else of the most needed component."""
    for outcome in (*ctx.outcomes.values(), *ctx.observations.values()):
        if outcome.reason in (NO_SUCH_CLUSTER, NO_PD):
            return Verdict("pd", outcome.reason, f"{outcome.message}.")
    components = (
        [workload for workload in workloads(ctx.tc) if workload.name in ctx.unavailable] if ctx.unavailable else []
    )
    first = min(components, key=_rank_as_cause, default=None)
    return ctx.unavailable[first.name] if first else None


def _rank_as_cause(component: Component) -> tuple[bool, int]:
    """The sort key of a component: the outage of the one with the lowest key is the headline."""
    row = component.type
    return not (row.outage and row.outage.stops_all), row.unready.rank if row.unready else 0


def components_ready(tc: Cluster) -> dict[str, ConditionValue]:
    """The value of Ready for each component of the spec."""
    return {own.name: component_ready(tc, own.name) for own in workloads(tc)}


def component_ready(tc: Cluster, name: str) -> ConditionValue:
    """The value of Ready for a component of the spec."""
    status = status_of(tc, name)
    if _serves(tc, name, status):
        outdated = _outdated(status) if status else ""
        what = "all requested replicas are serving"
        return True, READY, f"{what}; {outdated} are outdated" if outdated else what
    unready = component_type(name).unready
    if unready is None:
        return False, "MembersNotReady", f"{name} members are not healthy"
    return False, unready.reason, unready.message


def _serves(tc: Cluster, name: str, status: ComponentStatus | None) -> bool:
    """True if all members of a component are healthy and all desired pods are Ready."""
    if not all_members_ready(tc, name):
        return False
    # as many members as wanted are healthy; a recreated StatefulSet may have no status yet
    return status is None or status.ready_replicas >= len(status.health)


def _is_rolling(tc: Cluster, name: str, status: ComponentStatus) -> bool:
    """True while a StatefulSet rolls to its newest revision.

    Under OnDelete Kubernetes never makes the newest revision the current one: only the number of updated pods counts.
    """
    live = status.stateful_set or {}
    if live.get("currentRevision") == live.get("updateRevision"):
        return False
    by_hand = component(tc, name).stateful_set_update_strategy == ON_DELETE
    return not by_hand or live.get("updatedReplicas", 0) < live.get("replicas", 0)


def _outdated(status: ComponentStatus) -> str:
    """The number of pods that a rolling restart has not reached, e.g. "2 of 3 pods"; empty if there are none."""
    live = status.stateful_set or {}
    total, updated = live.get("replicas", 0), live.get("updatedReplicas", 0)
    return f"{total - updated} of {total} pods" if status.phase == UPGRADE and updated < total else ""


def with_progress(value: ConditionValue, news: ConditionValue) -> ConditionValue:
    """The value of Ready with the message of Progressing appended, unless that is done or says the same."""
    holds, reason, message = value
    sentence = message.removesuffix(".")
    return value if news[1] == DONE or sentence in news[2] else (holds, reason, f"{sentence}; {news[2]}")


def set_component_conditions(ctx: ClusterContext, parts: Mapping[str, ConditionValue], now: datetime) -> None:
    """Set the components' conditions in the working copy of the status; `parts` are their values of Ready.

    Records events when outages begin or end, and when a rolling restart begins to stand still.
    """
    for name in parts:
        part = status_of(ctx.tc, name)
        if part is None:
            continue
        if observed := _observed(ctx, name, part):
            part.conditions = with_condition(part.conditions, OBSERVED, observed, now, times_status=True)
        outcome, verdict = ctx.outcomes.get(name), ctx.unavailable.get(name)
        if outcome is None:
            continue
        news = (isinstance(outcome, Waiting | Failed), outcome.reason, outcome.message)
        serves = (False, verdict.reason, verdict.message) if verdict else parts[name]
        _report(ctx, name, condition_of(part.conditions, READY), verdict)
        if outcome.reason == STANDS_STILL != condition_of(part.conditions, PROGRESSING).get("reason"):
            _record(ctx, name, WARNING, STANDS_STILL, outcome.message)
        changed = with_condition(part.conditions, PROGRESSING, news, now)
        part.conditions = with_condition(changed, READY, serves, now)


def _observed(ctx: ClusterContext, name: str, part: ComponentStatus) -> ConditionValue | None:
    """The value of Observed for a component; None while the operator has always been able to read its members.

    It is also None before members are read for the first time: then the status holds nothing that could be outdated.
    """
    seen, known = ctx.observations.get(name), condition_of(part.conditions, OBSERVED)
    if isinstance(seen, NotDone) and seen.reason not in ANSWERS:
        before = component_type(name).status(ctx.stored_status)
        is_outdated = bool(known or part.health or (before and before.health))
        return (False, seen.reason, seen.message) if is_outdated else None
    return (True, OBSERVED, "its members were read in the last reconcile") if known else None


def pending_changes(ctx: ClusterContext) -> Mapping[str, ConditionValue]:
    """The condition ChangesPending; absent if no change has ever waited, or while one is unknown in this process."""
    known, stored = ctx.memory.own_changes, stored_condition(ctx.owner, CHANGES_PENDING)
    if stored is None and not any(known.values()):
        return {}
    running = [own.name for own in workloads(ctx.tc) if ctx.stateful_set(own.name)]
    if not all(name in known for name in running):
        return {}
    waiting = [f"{name} ({known[name]})" for name in running if known[name]]
    if not waiting:
        return {CHANGES_PENDING: (False, DONE, "no change of the operator waits for a restart")}
    what = "changes of this version of the operator come with the next restart that you make"
    return {CHANGES_PENDING: (True, CHANGES_PENDING, f"{what}: {'; '.join(waiting)}")}


def _report(ctx: ClusterContext, name: str, before: Json, verdict: Verdict | None) -> None:
    """Record an event when an outage of a component begins or ends."""
    was = str(before.get("reason") or "") if before.get("status") == "False" else ""
    if verdict is None and was in REASONS:
        title = component_type(name).title
        _record(ctx, name, NORMAL, _ENDED, f"{title} is out of service no longer: {was} is over")
    elif verdict is not None and verdict.reason != was:
        _record(ctx, name, WARNING, verdict.reason, verdict.message)


def _record(ctx: ClusterContext, name: str, of_type: str, reason: str, message: str) -> None:
    if ctx.memory.stopwatches.is_due("outage event", f"{name} {reason}", _AGAIN, ctx.deps.clock):
        ctx.deps.recorder.event(ctx.owner, of_type, reason, message)
