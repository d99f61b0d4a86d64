"""The nodes that a pod may run on: pure predicates over one snapshot of nodes and pods."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from kube.objects import Json
from ports import quantity
from sandbox.cluster import labels_of
from sandbox.conditions import holds
from sandbox.kubelet.stored_images import full_name
from sandbox.selectors import matches, requirement_holds

_ZONE = "topology.kubernetes.io/zone"
_RESOURCES = ("cpu", "memory")

_CORDONED: Sequence[Json] = ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},)
"""The toleration that a pod needs for a cordoned node that lacks the taint."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Nodes, and the pods that are bound and not finished."""

    nodes: Sequence[Json]
    pods: Sequence[Json]

    def on(self, node: Json) -> list[Json]:
        """The pods of a node."""
        name = node["metadata"]["name"]
        return [pod for pod in self.pods if pod["spec"].get("nodeName") == name]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The chosen node, or the scheduler's reason why there is none."""

    node: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of several nodes that fit a pod gets: `node`, or `former` before others with as few siblings of the pod."""

    node: str = ""
    former: str = ""


NO_PREFERENCE = Preference()

Ask = Callable[[Sequence[Json]], Mapping[str, str]]
"""Asks an extender about nodes that fit; returns the reasons against some, by name. Raises Refused."""


class Refused(Exception):
    """Raised if an extender has no answer for a pod; the message gives the reason."""


def place(
    pod: Json,
    volumes: Iterable[Json],
    situation: Situation,
    ask: Ask = lambda _nodes: {},
    preference: Preference = NO_PREFERENCE,
) -> Verdict:
    """Choose a node for a pod with the bound `volumes` among those that fit.

    As kube-scheduler weighs them: few pods of the same workload, images that are there already, few pods at all.
    """
    reasons: Counter[str] = Counter()
    fitting = []
    spread = [_Spread(rule, pod, situation) for rule in pod["spec"].get("topologySpreadConstraints") or ()]
    affinities = [volume["spec"].get("nodeAffinity") for volume in volumes]
    for node in situation.nodes:
        reason = _refusal(pod, affinities, spread, node, situation)
        if reason:
            reasons[reason] += 1
        else:
            fitting.append(node)
    if fitting:
        try:
            refused = ask(fitting)
        except Refused as error:
            return Verdict(reason=str(error))
        reasons.update(refused.values())
        fitting = [node for node in fitting if node["metadata"]["name"] not in refused]
    if not fitting:
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return Verdict(reason=f"0/{len(situation.nodes)} nodes are available: {listed or 'no nodes'}.")
    best = min(fitting, key=_Ranks(pod, situation, preference).of)
    return Verdict(node=best["metadata"]["name"])


def is_reachable(volume: Json, node: Json) -> bool:
    """True if a volume can be used on a node."""
    return _terms_match((volume["spec"].get("nodeAffinity") or {}).get("required"), labels_of(node))


def _refusal(
    pod: Json, volumes: Sequence[Json | None], spread: Iterable["_Spread"], node: Json, situation: Situation
) -> str:
    """Why a node does not fit; empty if it does."""
    labels, spec, machine = labels_of(node), pod["spec"], node["spec"]
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    wanted = selector.items() <= labels.items() and _terms_match(_required(spec, "nodeAffinity"), labels)
    reachable = all(_terms_match((affinity or {}).get("required"), labels) for affinity in volumes)
    checks = (
        (not machine.get("unschedulable") or _tolerates(spec, _CORDONED), "node(s) were unschedulable"),
        (holds(node, "Ready") and _tolerates(spec, machine.get("taints") or ()), "node(s) had untolerated taint(s)"),
        (wanted, "node(s) didn't match Pod's node affinity/selector"),
        (reachable, "node(s) didn't match PersistentVolume's node affinity"),
        (not _repelled(pod, node, situation), "node(s) didn't match pod anti-affinity rules"),
        (all(rule.holds(node) for rule in spread), "node(s) didn't match pod topology spread constraints"),
    )
    return next((reason for fits, reason in checks if not fits), "") or _insufficient(spec, node, situation)


def _tolerates(spec: Json, taints: Iterable[Json]) -> bool:
    forbidding = [each for each in taints if each["effect"] != "PreferNoSchedule"]
    tolerations: list[Json] = spec.get("tolerations") or []
    return all(any(covers(toleration, taint) for toleration in tolerations) for taint in forbidding)


def covers(toleration: Json, taint: Json) -> bool:
    """True if a toleration matches a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return bool(toleration.get("key") in (None, "", taint["key"]))
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))


def _required(spec: Json, kind: str) -> Json | None:
    rules: Json = (spec.get("affinity") or {}).get(kind) or {}
    required: Json | None = rules.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required


def _terms_match(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """True if one of a node selector's terms matches, or there is no selector."""
    if selector is None:
        return True
    return any(
        all(requirement_holds(each, labels) for each in term.get("matchExpressions") or ())
        for term in selector["nodeSelectorTerms"]
    )


def _insufficient(spec: Json, node: Json, situation: Situation) -> str:
    free: Json = node.get("status", {}).get("allocatable") or {}
    there = situation.on(node)
    if "pods" in free and len(there) >= int(free["pods"]):
        return "Too many pods"
    for resource in _RESOURCES:
        if resource not in free:
            continue
        used = sum((requested(each["spec"], resource) for each in there), Decimal())
        if used + requested(spec, resource) > quantity.parse(free[resource]):
            return f"Insufficient {resource}"
    return ""


def requested(spec: Json, resource: str) -> Decimal:
    """A pod's request for a resource: the sum of its containers, or the largest init container."""

    def of(container: Json) -> Decimal:
        resources = container.get("resources") or {}
        asked = (resources.get("requests") or {}).get(resource, (resources.get("limits") or {}).get(resource, "0"))
        return quantity.parse(asked)

    running = sum((of(each) for each in spec["containers"]), Decimal())
    return max([running, *(of(each) for each in spec.get("initContainers") or ())])


def _repelled(pod: Json, node: Json, situation: Situation) -> bool:
    """True if required pod anti-affinity excludes the node's domain."""
    rules: Json = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        neighbours = _in_domain(term["topologyKey"], node, situation)
        if any(_selects(term, pod, other) for other in neighbours):
            return True
    return False


def _selects(term: Json, pod: Json, other: Json) -> bool:
    namespaces = term.get("namespaces") or [pod["metadata"]["namespace"]]
    return other["metadata"]["namespace"] in namespaces and matches(term.get("labelSelector"), labels_of(other))


def _in_domain(key: str, node: Json, situation: Situation) -> list[Json]:
    value = labels_of(node).get(key)
    names = {each["metadata"]["name"] for each in situation.nodes if labels_of(each).get(key) == value}
    return [pod for pod in situation.pods if pod["spec"].get("nodeName") in names]


class _Spread:
    """A topology spread constraint of a pod; with ScheduleAnyway it always holds."""

    def __init__(self, rule: Json, pod: Json, situation: Situation) -> None:
        self._key: str = rule["topologyKey"]
        self._binds = rule.get("whenUnsatisfiable") != "ScheduleAnyway"
        selector, namespace = rule.get("labelSelector"), pod["metadata"]["namespace"]
        labelled = [node for node in situation.nodes if self._key in labels_of(node)]
        domains = {node["metadata"]["name"]: labels_of(node)[self._key] for node in labelled}
        self._counts: Counter[str] = Counter(dict.fromkeys(domains.values(), 0))
        for other in situation.pods if self._binds else ():
            domain = domains.get(other["spec"].get("nodeName", ""))
            same = other["metadata"]["namespace"] == namespace
            if domain is not None and same and matches(selector, labels_of(other)):
                self._counts[domain] += 1
        own = int(matches(selector, labels_of(pod)))
        self._most = min(self._counts.values(), default=0) + rule.get("maxSkew", 1) - own

    def holds(self, node: Json) -> bool:
        """True if the constraint still holds with the pod on the node."""
        if not self._binds:
            return True
        domain = labels_of(node).get(self._key)
        return domain is not None and self._counts[domain] <= self._most


class _Ranks:
    """The order of nodes for a pod. First of all, the pods of a workload spread over nodes and zones."""

    def __init__(self, pod: Json, situation: Situation, preference: Preference) -> None:
        mine = _owners(pod)
        siblings = [other["spec"].get("nodeName") for other in situation.pods if mine & _owners(other)]
        zones = {node["metadata"]["name"]: labels_of(node).get(_ZONE) for node in situation.nodes}
        self._pod, self._situation, self._preference = pod, situation, preference
        self._on_nodes, self._in_zones = Counter(siblings), Counter(map(zones.get, siblings))

    def of(self, node: Json) -> tuple[bool, int, int, bool, int, int, str]:
        """The rank of a node; the lowest is the best."""
        name = node["metadata"]["name"]
        return (
            name != self._preference.node,
            self._on_nodes[name],
            self._in_zones[labels_of(node).get(_ZONE)],
            name != self._preference.former,
            _lacking(self._pod, node),
            len(self._situation.on(node)),
            name,
        )


def _owners(pod: Json) -> set[tuple[str, str, str]]:
    """The owners by name: the pods of a StatefulSet that was recreated have the labels of its successor's, too."""
    meta = pod["metadata"]
    return {(meta["namespace"], owner["kind"], owner["name"]) for owner in meta.get("ownerReferences") or ()}


def _lacking(pod: Json, node: Json) -> int:
    """The number of the pod's images that the node does not list."""
    listed = {name for each in node.get("status", {}).get("images") or () for name in each.get("names") or ()}
    return sum(full_name(container["image"]) not in listed for container in pod["spec"]["containers"])
