"""Problems of PD, the stores and the other members, as last observed by the operator."""

from collections.abc import Iterator
from datetime import timedelta

from apis.component_statuses import PUMP_ONLINE
from apis.components import component_names
from apis.dm_components import OFFLINE
from cli.doctor.causes.availability import is_observed, part_of
from cli.doctor.facts import NETWORK_POLICIES, Facts, component_of, pod_model
from cli.doctor.finding import Cause, Severity, Sign
from controllers.conditions import READY
from kube.objects import Json, condition_of
from member.observed.status import UPGRADE

_PATIENCE = timedelta(minutes=1)
"""How long members and stores may be away during a restart."""

_RESTART = timedelta(minutes=5)
"""How long they may be away while the operator itself restarts the component's pods."""
_RECONNECT = timedelta(seconds=10)
"""How long a store may be Disconnected, i.e. without heartbeats for more than 20 seconds."""
_NO_RESTART = timedelta(seconds=20)
"""How long a member may be away without a restart."""

_UNREACHABLE = frozenset(
    {"PDUnreachable", "PDNotAnswering", "DataPlaneUnreachable", "Unavailable", "DMMasterUnreachable"}
)
"""Reasons of Progressing while the operator gets no answers."""


def _observed_part(facts: Facts, component: str) -> Json:
    """The status of a component with current members: an old observation proves nothing."""
    part = part_of(facts, component)
    return part if is_observed(component, part) else {}


def _outlasts_restart(facts: Facts, part: Json, since: object) -> bool:
    """True if a member has been away for longer than a restart would take."""
    restarts = part.get("phase") == UPGRADE
    if restarts and facts.age(since) is None:
        return False
    return facts.lasts(since, _RESTART if restarts else _NO_RESTART)


def _sick_members(facts: Facts) -> Iterator[Sign]:
    for component in component_names(of=facts.kind):
        part = _observed_part(facts, component)
        for name, since in _sick(part):
            if _outlasts_restart(facts, part, since):
                message = " ".join(filter(None, ("has not been healthy", facts.text_of_age(since))))
                yield Sign(f"Pod {name.partition('.')[0]}", message, *_where(component))


def _where(component: str) -> tuple[str, str]:
    """The field of the status that reports a member as unhealthy, and its value."""
    if component == "dm-worker":
        return "status.worker.members.stage", OFFLINE
    return f"status.{component.removeprefix('dm-')}.members.health", "false"


def _sick(part: Json) -> Iterator[tuple[str, str]]:
    """Names or hosts of unhealthy members, and since when.

    Pumps and captures of TiCDC have no time of their own; the component's is used.
    """
    ready = condition_of(part.get("conditions") or (), READY)
    since = str(ready.get("lastTransitionTime") or "") if ready.get("status") == "False" else ""
    members = part.get("members") or {}
    if isinstance(members, list):
        # members of PD's microservices are addresses: a registered one serves
        nodes = (member for member in members if isinstance(member, dict))
        yield from ((str(node.get("host")), since) for node in nodes if node.get("state") != PUMP_ONLINE)
        return
    yield from ((name, since) for name, each in (part.get("captures") or {}).items() if not each.get("ready"))
    for name, each in members.items():
        # DM's masters report a stage of each worker instead
        if not each.get("health") and each.get("stage", OFFLINE) == OFFLINE:
            yield name, str(each.get("lastTransitionTime") or "")


def _stores(facts: Facts) -> Iterator[Sign]:
    for component in component_names(lambda row: row.is_store):
        part = _observed_part(facts, component)
        for store in (part.get("stores") or {}).values():
            state = str(store.get("state", ""))
            patience = _RESTART if part.get("phase") == UPGRADE else _RECONNECT
            lasts = facts.lasts(store.get("lastTransitionTime"), patience)
            if state == "Down" or (state == "Disconnected" and lasts):
                message = f"PD does not hear of its store {store.get('id', '')}: it is {state}"
                yield Sign(f"Pod {store.get('podName', '')}", message, f"status.{component}.stores.state", state)


def _unreachable(facts: Facts) -> Iterator[Sign]:
    """Pods of PD serve, but the operator gets no answer."""
    condition = facts.condition("Progressing")
    if condition.get("reason") not in _UNREACHABLE:
        return
    ready = [pod for pod in facts.pods if component_of(pod) == "pd" and pod_model(pod).is_ready]
    if ready and all(facts.lasts(pod_model(each).ready_since, _PATIENCE) for each in ready):
        policies = ", ".join(sorted(facts.names(NETWORK_POLICIES)))
        message = f"its pods are Ready, and the operator does not reach them: {condition.get('message', '')}"
        yield Sign(facts.title, message, "NetworkPolicy" if policies else "", policies)


def _failed_over(facts: Facts) -> Iterator[Sign]:
    """Substitutes of TiKV and TiFlash stay until the user removes them (scheduler-deployment.md 12.9)."""
    for component in component_names(lambda row: row.is_store):
        part = _observed_part(facts, component)
        failed = part.get("failureStores") or {}
        stores = (part.get("stores") or {}).values()
        pods = {str(each.get("podName")) for each in failed.values()}
        back = {str(store.get("podName")) for store in stores if store.get("state") == "Up"}
        if failed and pods <= back:
            named = ", ".join(sorted(pods))
            message = f"{named} is back, and the substitute stays until you send it away"
            path = f"spec.{component}.recoverFailover"
            yield Sign(facts.title, message, path, "false")


CAUSES = (
    Cause(
        "DataPlaneUnreachable",
        "Allow the operator's namespace in the NetworkPolicies of the cluster; check DNS and proxy variables.",
        _unreachable,
    ),
    Cause(
        "StoreDown",
        "Look at its pod and node. It is replaced after the failover period, if failover is on.",
        _stores,
    ),
    Cause(
        "MemberUnhealthy",
        "`kubectl logs` of its pod. It is replaced after the failover period, if failover is on.",
        _sick_members,
    ),
    Cause(
        "FailoverLeft",
        "Set `recoverFailover: true`, and the substitutes are scaled in.",
        _failed_over,
        Severity.WARNING,
    ),
)
