"""The node lifecycle controller: taints nodes that are not ready, marks their pods, collects pods of missing nodes."""

from collections.abc import Hashable, Set

from kube.objects import Json
from kube.resources import NODES, PODS
from sandbox.cluster import Cluster
from sandbox.conditions import condition, holds, with_condition
from sandbox.owners import is_deleted
from sandbox.stamps import stamp

_NOT_READY = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}
"""The taint of a node, by its Ready condition."""
_CORDONED = "node.kubernetes.io/unschedulable"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_OWN = {*_NOT_READY.values(), _CORDONED}
_QUARANTINE = 40.0
"""Seconds before the pods of a missing node are deleted."""


class NodeLifecycle:
    """Keeps taints and pods consistent with the Ready condition of their nodes."""

    name = "node-lifecycle"
    watches: tuple[Hashable, ...] = (NODES, PODS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._registered: set[str] = set()
        self._missing_since: dict[str, float] = {}

    def step(self) -> float | None:
        """Check every node; return when pods of a missing node are due."""
        nodes = self._cluster.list(NODES)
        seen = [node for node in nodes if node.get("status", {}).get("conditions")]
        for node in seen:
            self._register(node)
            self._taint(node, evicts=any(holds(each, "Ready") for each in seen))
            self._mark(node)
            self._give_up(node)
        return self._collect({node["metadata"]["name"] for node in nodes})

    def _collect(self, known: Set[str]) -> float | None:
        """Force-delete the pods of missing nodes after the quarantine."""
        now = self._cluster.clock.now()
        lost = [pod for pod in self._cluster.list(PODS) if pod["spec"].get("nodeName", "") not in ("", *known)]
        names = [pod["spec"]["nodeName"] for pod in lost]
        self._missing_since = {name: self._missing_since.get(name, now) for name in names}
        for pod in lost:
            if now >= self._missing_since[pod["spec"]["nodeName"]] + _QUARANTINE:
                self._cluster.delete(PODS, pod, grace=0)
        waiting = [since + _QUARANTINE for since in self._missing_since.values() if since + _QUARANTINE > now]
        return min(waiting, default=None)

    def _give_up(self, node: Json) -> None:
        """Force-delete terminating pods on a node that a user has tainted as out of service."""
        taints = (each["key"] for each in node["spec"].get("taints") or ())
        if holds(node, "Ready") or _OUT_OF_SERVICE not in taints:
            return
        for pod in self._cluster.list(PODS):
            if pod["spec"].get("nodeName") == node["metadata"]["name"] and is_deleted(pod):
                self._cluster.delete(PODS, pod, grace=0)

    def _taint(self, node: Json, *, evicts: bool) -> None:
        """Taint a node according to its state. If no node is ready, the cause is assumed elsewhere and no pod is
        evicted.
        """
        ready = condition(node["status"]["conditions"], "Ready")
        key = _NOT_READY.get(ready["status"] if ready is not None else "Unknown")
        wanted = [(key, effect) for effect in ("NoSchedule", "NoExecute") if key and (evicts or effect == "NoSchedule")]
        if node["spec"].get("unschedulable"):
            wanted.append((_CORDONED, "NoSchedule"))
        before: list[Json] = node["spec"].get("taints") or []
        own = {(each["key"], each["effect"]) for each in before if each["key"] in _OWN}
        if own != set(wanted):
            others = [each for each in before if each["key"] not in _OWN]
            taints = [*others, *({"key": key, "effect": effect} for key, effect in wanted)]
            self._cluster.patch(NODES, node, {"spec": {"taints": taints or None}})

    def _register(self, node: Json) -> None:
        """Record that a node is new."""
        meta = node["metadata"]
        if meta["uid"] in self._registered:
            return
        self._registered.add(meta["uid"])
        message = f"Node {meta['name']} event: Registered Node {meta['name']} in Controller"
        self._cluster.event(node, "Normal", "RegisteredNode", message)

    def _mark(self, node: Json) -> None:
        """Mark the pods of a node that is not ready as not ready."""
        if holds(node, "Ready"):
            return
        now, name = stamp(self._cluster.clock.wall()), node["metadata"]["name"]
        for pod in self._cluster.list(PODS):
            if pod["spec"].get("nodeName") == name and holds(pod, "Ready"):
                status: Json = pod["status"]
                conditions = with_condition(status["conditions"], "Ready", False, now)
                self._cluster.set_status(PODS, pod, status | {"conditions": conditions})
                self._cluster.event(pod, "Warning", "NodeNotReady", "Node is not ready")
