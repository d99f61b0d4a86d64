"""The conditions of a TidbCluster: Ready tells whether it serves, Progressing what the operator waits for.

Ready is v1.6's, reason by reason (lifecycle.md 2.3), and better in two points: a status left from a failed
observation is unknown, not good (F7), and the message goes on with Progressing's, since `kubectl get tc -o wide`
shows it as Status. Progressing is ours:

    True     the operator is at work or waits for something that is under way
    False    the cluster is as its spec wants it (reason `Done`), or the operator can't go on without the user
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from apis import predicates
from apis.tidbcluster import TidbCluster, TidbClusterCondition
from member.outcome import DONE, Done, Failed, Outcome, Refused, Waiting

READY = "Ready"
PROGRESSING = "Progressing"

_READINESS: tuple[tuple[str, Callable[[TidbCluster], bool], str, str], ...] = (
    ("pd", predicates.pd_all_members_ready, "PDUnhealthy", "PD(s) are not healthy"),
    ("tikv", predicates.tikv_all_stores_ready, "TiKVStoreNotUp", "TiKV store(s) are not up"),
    ("tidb", predicates.tidb_all_members_ready, "TiDBUnhealthy", "TiDB(s) are not healthy"),
    ("tiflash", predicates.tiflash_all_stores_ready, "TiFlashStoreNotUp", "TiFlash store(s) are not up"),
    ("ticdc", predicates.ticdc_all_captures_ready, "TiCDCCaptureNotReady", "TiCDC capture(s) are not up"),
    ("tiproxy", predicates.tiproxy_all_members_ready, "TiProxyUnhealthy", "TiProxy(s) are not healthy"),
)
"""What the spec may have, when it is ready, and what is said when it is not; the first row that fails wins."""


def ready(tc: TidbCluster) -> tuple[bool, str, str]:
    """Whether the cluster serves, with reason and message; `tc.status` is what this reconcile observed."""
    status = tc.status
    revisions = [part.stateful_set for part in (status.pd, status.tikv, status.tidb, status.tiflash)]
    if any(s and s.get("currentRevision") != s.get("updateRevision") for s in revisions):
        return False, "StatefulSetNotUpToDate", "Statefulset(s) are in progress"
    for component, is_ready, reason, message in _READINESS:
        if getattr(tc.spec, component) is not None and not is_ready(tc):
            return False, reason, message
    return True, READY, "TiDB cluster is fully up and running"


def component_ready(tc: TidbCluster, component: str) -> tuple[bool, str, str]:
    """Whether a component that the spec has serves, with reason and message."""
    is_ready, reason, message = next(row[1:] for row in _READINESS if row[0] == component)
    return (True, READY, "all that is wanted serves") if is_ready(tc) else (False, reason, message)


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
