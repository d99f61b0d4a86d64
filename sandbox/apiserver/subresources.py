"""Subresources outside the object itself: scale, binding, eviction."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kube.objects import Json
from kube.resources import NODES, Resource
from sandbox.apiserver import schemas
from sandbox.apiserver.deletion import DeleteOptions, Deletion
from sandbox.apiserver.kinds import POD_DISRUPTION_BUDGETS, Kind, ScalePaths
from sandbox.apiserver.refusals import Refusal, bad_request, conflict, modified, not_found, shown
from sandbox.apiserver.routes import Target
from sandbox.apiserver.storage import Stored
from sandbox.apiserver.world import World
from sandbox.apiserver.writes import Writes
from sandbox.selectors import matches

BINDINGS = Resource("", "v1", "pods/binding", "Binding")
EVICTIONS = Resource("policy", "v1", "pods/eviction", "Eviction")
SCALES = Resource("autoscaling", "v1", "scale", "Scale")
_ENDED = ("Succeeded", "Failed")
_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def parent(target: Target) -> Target:
    """The object that a subresource belongs to."""
    return replace(target, subresource="")


def scale_of(kind: Kind, stored: Stored) -> Json:
    """The Scale of an object."""
    return _scale(kind, stored.tree())


def scaling(target: Target, scale: Json) -> Callable[[Json], Json]:
    """The change of the parent that a whole Scale requests."""

    def change(tree: Json) -> Json:
        version = (scale.get("metadata") or {}).get("resourceVersion")
        if version and version != tree["metadata"]["resourceVersion"]:
            raise modified(target.kind.resource, target.name)
        return _with_replicas(_paths(target.kind), tree, scale)

    return change


def scale_patching(kind: Kind, patch: Callable[[Json], Json]) -> Callable[[Json], Json]:
    """The change of the parent that a patch of its Scale requests."""

    def change(tree: Json) -> Json:
        scale = patch(_scale(kind, tree))
        schemas.check_types(scale, SCALES)
        return _with_replicas(_paths(kind), tree, scale)

    return change


def bind(world: World, writes: Writes, target: Target, binding: Json) -> None:
    """Bind a pod to a node and copy its zone and region labels. Raises Refusal: 404, 409 if it is bound already."""
    if (binding.get("metadata") or {}).get("name") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    node = (binding.get("target") or {}).get("name")
    if not node:
        raise bad_request("binding: target.name is required")

    def place(tree: Json) -> Json:
        if assigned := tree["spec"].get("nodeName"):
            name = target.name
            raise conflict(BINDINGS, name, f'pod {name} is already assigned to node "{assigned}"')
        tree["spec"]["nodeName"] = node
        if topology := _topology(world, node):
            tree["metadata"]["labels"] = (tree["metadata"].get("labels") or {}) | topology
        now = world.timestamp()
        status = tree.setdefault("status", {})
        others = [condition for condition in status.get("conditions") or () if condition["type"] != "PodScheduled"]
        status["conditions"] = [*others, {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}]
        return tree

    writes.overwrite(target, place)


def _topology(world: World, node: str) -> dict[str, str]:
    stored = world.storage.get(NODES.plural, node)
    labels = stored.labels if stored else {}
    return {name: labels[name] for name in _TOPOLOGY if name in labels}


def evict(world: World, deletion: Deletion, target: Target, options: DeleteOptions) -> None:
    """Delete a pod unless a budget forbids it. Raises Refusal: 404, 429 if a budget is exhausted."""
    with world.storage.lock:
        stored = world.storage.get(target.kind.key, target.key)
        if stored is None:
            raise not_found(target.kind.resource, target.name)
        if stored.fields.get("status.phase") not in _ENDED:
            _spend_budgets(world, stored)
        deletion.delete(target.kind, target.key, options)


def _spend_budgets(world: World, pod: Stored) -> None:
    kind = world.registry.of(POD_DISRUPTION_BUDGETS)
    for stored in world.storage.objects(kind.key, pod.namespace):
        budget = stored.tree()
        if not matches(budget["spec"].get("selector"), pod.labels):
            continue
        status = budget.get("status") or {}
        if status.get("disruptionsAllowed", 0) < 1:
            raise _over_budget(stored.name, status)
        status["disruptionsAllowed"] -= 1
        world.write(kind, budget)


def _over_budget(name: str, status: Json) -> Refusal:
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    message = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    return Refusal(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        {"causes": [{"reason": "DisruptionBudget", "message": message}]},
    )


def _paths(kind: Kind) -> ScalePaths:
    assert kind.scale is not None, "routes lead here only for kinds with a scale"
    return kind.scale


def _scale(kind: Kind, tree: Json) -> Json:
    paths, meta = _paths(kind), tree["metadata"]
    if kind.custom and _at(tree, paths.spec_replicas) is None:
        field = "." + ".".join(paths.spec_replicas)
        what = f"Internal error occurred: the spec replicas field {shown(field)} does not exist"
        raise Refusal(500, "InternalError", what, {"causes": [{"message": what.partition(": ")[2]}]})
    identity = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    status: Json = {"replicas": _at(tree, paths.status_replicas) or 0}
    if paths.selector and (selector := _selector_text(_at(tree, paths.selector))):
        status["selector"] = selector
    spec = {"replicas": _at(tree, paths.spec_replicas) or 0}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": identity, "spec": spec, "status": status}


def _with_replicas(paths: ScalePaths, tree: Json, scale: Json) -> Json:
    *parents, last = paths.spec_replicas
    place = tree
    for key in parents:
        place = place.setdefault(key, {})
    place[last] = (scale.get("spec") or {}).get("replicas", 0)
    return tree


def _at(tree: Json, path: tuple[str, ...]) -> Any:
    value: Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _selector_text(selector: Any) -> str:
    if isinstance(selector, str):
        return selector
    terms = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for expression in (selector or {}).get("matchExpressions") or ():
        values = ",".join(sorted(expression.get("values") or ()))
        match expression["operator"]:
            case "In" | "NotIn" as operator:
                terms.append(f"{expression['key']} {operator.lower()} ({values})")
            case "Exists":
                terms.append(expression["key"])
            case _:
                terms.append(f"!{expression['key']}")
    return ",".join(terms)
