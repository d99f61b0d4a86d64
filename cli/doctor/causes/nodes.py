"""Problems of the nodes that the cluster's pods run on, and obstacles to draining them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from apis.components import component_names
from cli.doctor.facts import (
    POD_DISRUPTION_BUDGETS,
    Facts,
    component_of,
    containers_of,
    field_of,
    is_true,
    labels_of,
    name_of,
    pod,
)
from cli.doctor.finding import Cause, Severity, Sign
from kube.objects import Json, condition_of
from kube.resources import NODES

_PRESSURES = ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")
_QUORUM = 3
"""The number of members from which one node should not hold half of them."""


def _by_node(facts: Facts) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in facts.pods:
        if node := str(each["spec"].get("nodeName") or ""):
            found.setdefault(node, []).append(name_of(each))
    return found


def _not_ready(facts: Facts) -> Iterator[Sign]:
    for node, pods in _by_node(facts).items():
        tree = facts.nodes.get(node)
        if tree is not None and not is_true(tree, "Ready"):
            ready = condition_of((tree.get("status") or {}).get("conditions") or (), "Ready")
            why = f"{ready.get('reason', '')}: {ready.get('message', '')}".strip(": ")
            message = f"is not Ready ({why}); it runs {', '.join(pods)}"
            yield Sign(f"Node {node}", message, "Ready", ready.get("status", ""))


def _gone(facts: Facts) -> Iterator[Sign]:
    for node, pods in _by_node(facts).items():
        if facts.knows(NODES) and node not in facts.nodes:
            yield Sign(f"Node {node}", f"no longer exists; it ran {', '.join(pods)}")


def _under_pressure(facts: Facts) -> Iterator[Sign]:
    for node, pods in _by_node(facts).items():
        for kind in _PRESSURES:
            if is_true(facts.nodes.get(node, {}), kind):
                yield Sign(f"Node {node}", f"has {kind}; it runs {', '.join(pods)}", kind, "True")


def _blocked_drains(facts: Facts) -> Iterator[Sign]:
    cordoned = {name for name, tree in facts.nodes.items() if (tree.get("spec") or {}).get("unschedulable")}
    for budget in facts.all(POD_DISRUPTION_BUDGETS):
        if (budget.get("status") or {}).get("disruptionsAllowed", 1):
            continue
        for each in facts.pods:
            if each["spec"].get("nodeName") in cordoned and _selects(budget["spec"].get("selector"), each):
                node = each["spec"]["nodeName"]
                message = f"lets no pod go, so a drain of node {node} waits for {name_of(each)}"
                yield Sign(f"PodDisruptionBudget {name_of(budget)}", message, "status.disruptionsAllowed", "0")


def _selects(selector: Json | None, tree: Json) -> bool:
    """True if a selector matches the labels of a pod; expressions count as matching."""
    wanted: Mapping[str, str] = (selector or {}).get("matchLabels") or {}
    return wanted.items() <= labels_of(tree).items()


def _crowded(facts: Facts) -> Iterator[Sign]:
    """PD members or TiKV stores that one node could take down: half of the members, or two copies of the data."""
    for component in component_names(lambda row: row.claims.hold_data, facts.kind):
        pods = [each for each in facts.pods if component_of(each) == component and each["spec"].get("nodeName")]
        for node, count in Counter(each["spec"]["nodeName"] for each in pods).items():
            most = (len(pods) - 1) // 2 if component in ("pd", "dm-master") else -(-len(pods) // _QUORUM)
            if len(pods) >= _QUORUM and count > most:
                message = f"runs {count} of {len(pods)} {component} pods: without it, they lose their majority"
                path = field_of(facts, pods[0], "topologySpreadConstraints")
                yield Sign(f"Node {node}", message, path)


def _not_guaranteed(facts: Facts) -> Iterator[Sign]:
    """Requests equal limits (scheduler-deployment.md 12.3)."""
    for each in facts.pods:
        quality = str((each.get("status") or {}).get("qosClass") or "")
        if component_of(each) in component_names(lambda row: row.replaceable, facts.kind) and quality in _ENDED:
            yield Sign(pod(each), _ENDED[quality], field_of(facts, each, "limits"), _limits(each))


_ENDED = {
    "BestEffort": "BestEffort: Kubernetes ends it first when the node runs out of memory.",
    "Burstable": "Burstable: Kubernetes ends it before pods that are Guaranteed when the node runs out of memory.",
}
"""The consequence of a quality of service other than Guaranteed for a database."""


def _limits(tree: Json) -> str:
    """The finding about the first container whose requests differ from its limits."""
    for container in containers_of(tree):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        if not {"cpu", "memory"} <= limits.keys() or requests != limits:
            set_values = [
                f"{kind}.{key}={value}" for kind, part in resources.items() for key, value in (part or {}).items()
            ]
            return f"{', '.join(set_values) or 'not set'} (container {container['name']})"
    return ""


CAUSES = (
    Cause(
        "NodeNotReady",
        "Bring it back. If it is gone for good, delete its Node object: then its pods get another one.",
        _not_ready,
    ),
    Cause(
        "NodeGone",
        "Nothing: Kubernetes deletes them within a minute. Local volumes are lost with it.",
        _gone,
    ),
    Cause(
        "NodeUnderPressure",
        "Free it: delete images and logs, move other pods away; set requests and limits.",
        _under_pressure,
    ),
    Cause(
        "DrainBlocked",
        "Get the other pods of the component Ready, or drain as docs/operations.md says.",
        _blocked_drains,
        Severity.WARNING,
    ),
    Cause(
        "OneNodeTakesTheMajority",
        "Set `topologySpreadConstraints`, or use our scheduler (docs/scheduling.md).",
        _crowded,
        Severity.WARNING,
    ),
    Cause(
        "QoSNotGuaranteed",
        "Set `requests` and `limits` of CPU and memory to the same values, in sidecars, too.",
        _not_guaranteed,
        Severity.WARNING,
    ),
)
