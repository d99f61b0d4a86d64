"""The conditions of a TidbCluster: Ready tells whether it serves, Progressing what the operator waits for.

Ready is v1.6's, reason by reason (lifecycle.md 2.3), and better in two points: a status left from a failed
observation is unknown, not good (F7), and the message goes on with Progressing's, since `kubectl get tc -o wide`
shows it as Status. Progressing is ours:

    True     the operator is at work or waits for something that is under way
    False    the cluster is as its spec wants it (reason `Done`), or the operator can't go on without the user
"""

from collections.abc import Mapping
from datetime import datetime

from apis.accessor import workloads
from apis.components import component_type
from apis.predicates import all_members_ready, status_of
from apis.tidbcluster import TidbCluster, TidbClusterCondition
from member.outcome import DONE, Done, Failed, Outcome, Refused, Waiting

READY = "Ready"
PROGRESSING = "Progressing"


def ready(tc: TidbCluster) -> tuple[bool, str, str]:
    """Whether the cluster serves, with reason and message; `tc.status` is what this reconcile observed."""
    revisions = [status.stateful_set or {} for each in workloads(tc) if (status := status_of(tc, each.name))]
    if any(each.get("currentRevision") != each.get("updateRevision") for each in revisions):
        return False, "StatefulSetNotUpToDate", "Statefulset(s) are in progress"
    judged = sorted((each.type.unready.rank, each.name) for each in workloads(tc) if each.type.unready)
    unready = next((name for _, name in judged if not all_members_ready(tc, name)), None)
    return component_ready(tc, unready) if unready else (True, READY, "TiDB cluster is fully up and running")


def component_ready(tc: TidbCluster, component: str) -> tuple[bool, str, str]:
    """Whether a component that the spec has serves, with reason and message."""
    if all_members_ready(tc, component):
        return True, READY, "all requested replicas are serving"
    unready = component_type(component).unready
    if unready is None:
        return False, "MembersNotReady", f"{component} members are not healthy"
    return False, unready.reason, unready.message


def with_story(value: tuple[bool, str, str], news: tuple[bool, str, str]) -> tuple[bool, str, str]:
    """A readiness whose message goes on with what is being done, where something is."""
    holds, reason, message = value
    return value if news[1] == DONE else (holds, reason, f"{message}; {news[2]}")


def progressing(outcomes: Mapping[str, Outcome]) -> tuple[bool, str, str]:
    """What the operator is doing: the first stage that needs the user, else the first that is not done."""
    for kind in (Refused, Failed, Waiting):
        for stage, outcome in outcomes.items():
            if not isinstance(outcome, Done) and isinstance(outcome, kind):
                return kind is not Refused, outcome.reason, f"{stage}: {outcome.message}"
    if resting := {stage: outcome for stage, outcome in outcomes.items() if outcome.reason != DONE}:
        first = next(iter(resting.values()))
        return False, first.reason, f"{', '.join(resting)}: {first.message}"
    return False, DONE, "everything is as the spec wants it"


def with_condition(
    conditions: list[TidbClusterCondition], kind: str, value: tuple[bool, str, str], now: datetime
) -> list[TidbClusterCondition]:
    """The conditions with one of them set; times move only when status, or else reason or message, change."""
    holds, reason, message = value
    status = "True" if holds else "False"
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    old = next((c for c in conditions if c.type == kind), None)
    if old and (old.status, old.reason, old.message) == (status, reason, message):
        return conditions
    new = TidbClusterCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_update_time=stamp,
        last_transition_time=old.last_transition_time if old and old.status == status else stamp,
    )
    if old is None:
        return [*conditions, new]
    return [new if c is old else c for c in conditions]
