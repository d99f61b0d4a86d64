"""The priority of a new pod, from its class (admission)."""

from kube.objects import Json
from kube.resources import PODS
from sandbox.apiserver.kinds import PRIORITY_CLASSES
from sandbox.apiserver.refusals import forbidden
from sandbox.apiserver.world import World

_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""


def give_priority(world: World, pod: Json) -> None:
    """Set the priority of a new pod, in place. Raises Refusal (403) if its class does not exist."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    if not name:
        return
    stored = world.storage.get(str(PRIORITY_CLASSES), name)
    if stored is None and name not in _SYSTEM:
        raise forbidden(PODS, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found")
    found: Json = stored.tree() if stored is not None else {"value": _SYSTEM[name]}
    spec["priority"] = found.get("value", 0)
    spec["preemptionPolicy"] = found.get("preemptionPolicy") or "PreemptLowerPriority"
