"""Conditions that clusters of every kind have, and their components: whether they serve (lifecycle.md 2.3).

Ready is v1.6's, reason by reason, and better in three points: a status left from a failed observation is unknown, not
good (F7), pods to which no Service leads do not serve, whatever their servers say, and the message goes on with
Progressing's, since `kubectl get -o wide` shows it as Status. For Progressing
see `controllers.conditions`.
"""

from datetime import datetime

from apis.accessor import component, workloads
from apis.cluster import Cluster
from apis.components import component_type
from apis.ordinals import desired_replicas
from apis.predicates import all_members_ready, status_of
from apis.shared import ComponentStatus
from controllers.conditions import PROGRESSING, READY, ConditionValue, with_condition
from member.context import ClusterContext
from member.objects.stateful_set import ON_DELETE
from member.observed.status import UPGRADE
from member.outcome import DONE, Failed, Waiting


def ready(tc: Cluster, what_runs: str = "TiDB cluster") -> ConditionValue:
    """Whether the cluster serves; `tc.status` is what this reconcile observed."""
    statuses = {each.name: status for each in workloads(tc) if (status := status_of(tc, each.name))}
    outdated = ", ".join(f"{told} of {name}" for name, status in statuses.items() if (told := _outdated(status)))
    if outdated or any(_is_rolling(tc, name, status) for name, status in statuses.items()):
        what = "Statefulset(s) are in progress"
        return False, "StatefulSetNotUpToDate", f"{what}: {outdated} are outdated" if outdated else what
    judged = sorted((each.type.unready.rank, each.name) for each in workloads(tc) if each.type.unready)
    unready = next((name for _, name in judged if not _serves(tc, name)), None)
    return component_ready(tc, unready) if unready else (True, READY, f"{what_runs} is fully up and running")


def component_ready(tc: Cluster, name: str) -> ConditionValue:
    """Whether a component that the spec has serves."""
    if _serves(tc, name):
        status = status_of(tc, name)
        outdated = _outdated(status) if status else ""
        what = "all requested replicas are serving"
        return True, READY, f"{what}; {outdated} are outdated" if outdated else what
    unready = component_type(name).unready
    if unready is None:
        return False, "MembersNotReady", f"{name} members are not healthy"
    return False, unready.reason, unready.message


def _serves(tc: Cluster, name: str) -> bool:
    """Whether all members of a component are well, and all pods that are wanted Ready."""
    status = status_of(tc, name)
    if status is not None and status.stateful_set and status.ready_replicas < desired_replicas(tc, name):
        return False
    return all_members_ready(tc, name)


def _is_rolling(tc: Cluster, name: str, status: ComponentStatus) -> bool:
    """Whether Kubernetes has yet to call the newest revision the current one, which under OnDelete it never does."""
    live = status.stateful_set or {}
    if live.get("currentRevision") == live.get("updateRevision"):
        return False
    by_hand = component(tc, name).stateful_set_update_strategy == ON_DELETE
    return not by_hand or live.get("updatedReplicas", 0) < live.get("replicas", 0)


def _outdated(status: ComponentStatus) -> str:
    """How many pods a rolling restart has yet to reach, however long it waits, in words; empty when there are none."""
    live = status.stateful_set or {}
    total, updated = live.get("replicas", 0), live.get("updatedReplicas", 0)
    return f"{total - updated} of {total} pods" if status.phase == UPGRADE and updated < total else ""


def with_progress(value: ConditionValue, news: ConditionValue) -> ConditionValue:
    """A readiness whose message goes on with what is being done, where something is."""
    holds, reason, message = value
    return value if news[1] == DONE else (holds, reason, f"{message}; {news[2]}")


def set_component_conditions(ctx: ClusterContext, now: datetime) -> None:
    """Set the conditions of components in the working copy of the status."""
    for name in (each.name for each in workloads(ctx.tc)):
        outcome, part = ctx.outcomes.get(name), status_of(ctx.tc, name)
        if outcome is None or part is None:
            continue
        news = (isinstance(outcome, Waiting | Failed), outcome.reason, outcome.message)
        changed = with_condition(part.conditions, PROGRESSING, news, now)
        part.conditions = with_condition(changed, READY, component_ready(ctx.tc, name), now)
