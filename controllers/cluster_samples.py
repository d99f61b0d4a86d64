"""Metric samples of a cluster of any kind and of its components, computed from its status. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import structlog

from apis.cluster import OBSERVED
from apis.shared import ComponentStatus, Json
from controllers.conditions import PROGRESSING, READY
from controllers.other_operators import OPERATOR_CONFLICT
from kube.objects import Object, condition_of
from member.availability import NO_PD, NO_SUCH_CLUSTER, REASONS
from meta.certificates import CERTIFICATES_VALID

log = structlog.get_logger(__name__)

Sample: TypeAlias = tuple[str, tuple[str, ...], float]
"""The metric family, the label values after namespace and name, and the value."""

_OURS = frozenset({READY, PROGRESSING, OBSERVED, OPERATOR_CONFLICT, CERTIFICATES_VALID})


def of_status(status: Json) -> Iterator[Sample]:
    """The samples of a cluster: Ready, an outage of PD, and each condition."""
    conditions = ours(status.get("conditions"))
    ready = condition_of(conditions, READY)
    yield "ready", (), holds(ready)
    if ready.get("reason") in (NO_SUCH_CLUSTER, NO_PD):
        yield "unavailable", ("pd", ready["reason"]), 1
    for condition in conditions:
        yield "condition", (condition["type"], str(condition.get("reason") or "")), holds(condition)


def of_members(status: ComponentStatus, component: str) -> Iterator[Sample]:
    """The samples of a component: its members, if the operator could read them, and an outage."""
    observed, ready = condition_of(status.conditions, OBSERVED), condition_of(status.conditions, READY)
    is_observed = observed.get("status") != "False"
    yield "observed", (component,), is_observed
    if is_observed:
        yield "members", (component,), len(status.health)
        yield "healthy_members", (component,), sum(status.health)
    if ready.get("status") == "False" and ready.get("reason") in REASONS:
        yield "unavailable", (component, ready["reason"]), 1


def readable(cluster: Object, samples: Callable[[Object], Iterator[Sample]]) -> list[Sample]:
    """The samples of a cluster; none if its status is malformed, which must not hide the other clusters."""
    try:
        return list(samples(cluster))
    except Exception:
        log.exception("the metrics of a cluster cannot be read from it", cluster=cluster.key)
        return []


def ours(conditions: object) -> Sequence[Json]:
    """The conditions that the operator writes. Foreign conditions would add an unbounded number of label values."""
    listed = conditions if isinstance(conditions, list) else []
    found = [each for each in listed if isinstance(each, dict) and str(each.get("type")) in _OURS]
    return list({each["type"]: each for each in found}.values())


def holds(condition: Json) -> bool:
    """True if the status of a condition is "True"."""
    return bool(condition.get("status") == "True")
