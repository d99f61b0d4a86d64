"""What the control plane does about nodes that are not ready: taint them, mark their pods, evict after a while."""

from collections.abc import Hashable, Set

from kube.objects import Json
from kube.resources import NODES, PODS
from sandbox.cluster import Cluster
from sandbox.conditions import condition, holds, with_condition
from sandbox.owners import is_deleted
from sandbox.stamps import parse, stamp

UNREACHABLE = "node.kubernetes.io/unreachable"
_EFFECTS = ("NoSchedule", "NoExecute")
_QUARANTINE = 40.0
"""Seconds that the pods of a node without an object are left alone."""

_TOLERATED = 300.0
"""Seconds that pods stay bound to an unreachable node, the default toleration of Kubernetes."""


class NodeLifecycle:
    """Keeps taints and pods true to the Ready condition of their nodes."""

    name = "node-lifecycle"
    watches: tuple[Hashable, ...] = (NODES, PODS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._registered: set[str] = set()
        self._missing_since: dict[str, float] = {}

    def step(self) -> float | None:
        """Look at every node; return when the next eviction is due."""
        nodes = self._cluster.list(NODES)
        due = [self._sync(node) for node in nodes if node.get("status", {}).get("conditions")]
        due.append(self._collect({node["metadata"]["name"] for node in nodes}))
        return min((time for time in due if time is not None), default=None)

    def _collect(self, known: Set[str]) -> float | None:
        """Pods of nodes that no longer exist are deleted by force after a quarantine."""
        now = self._cluster.clock.now()
        lost = [pod for pod in self._cluster.list(PODS) if pod["spec"].get("nodeName", "") not in ("", *known)]
        names = [pod["spec"]["nodeName"] for pod in lost]
        self._missing_since = {name: self._missing_since.get(name, now) for name in names}
        for pod in lost:
            if now >= self._missing_since[pod["spec"]["nodeName"]] + _QUARANTINE:
                self._cluster.delete(PODS, pod, grace=0)
        waiting = [since + _QUARANTINE for since in self._missing_since.values() if since + _QUARANTINE > now]
        return min(waiting, default=None)

    def _sync(self, node: Json) -> float | None:
        self._register(node)
        ready = holds(node, "Ready")
        taints: list[Json] = node["spec"].get("taints") or []
        others = [taint for taint in taints if taint["key"] != UNREACHABLE]
        if ready:
            if len(others) < len(taints):
                self._cluster.patch(NODES, node, {"spec": {"taints": others or None}})
            return None
        if len(others) == len(taints):
            added = [{"key": UNREACHABLE, "effect": effect} for effect in _EFFECTS]
            self._cluster.patch(NODES, node, {"spec": {"taints": [*others, *added]}})
        return self._mark(node)

    def _register(self, node: Json) -> None:
        """Say that a node was seen for the first time."""
        meta = node["metadata"]
        if meta["uid"] in self._registered:
            return
        self._registered.add(meta["uid"])
        message = f"Node {meta['name']} event: Registered Node {meta['name']} in Controller"
        self._cluster.event(node, "Normal", "RegisteredNode", message)

    def _mark(self, node: Json) -> float | None:
        """Pods of a lost node are not Ready; after the tolerated time they are deleted."""
        wall = self._cluster.clock.wall()
        lost = condition(node["status"]["conditions"], "Ready")
        since = parse(lost["lastTransitionTime"]) if lost is not None else wall
        left = _TOLERATED - (wall - since).total_seconds()
        pods = [each for each in self._cluster.list(PODS) if each["spec"].get("nodeName") == node["metadata"]["name"]]
        for pod in pods:
            status: Json = pod.get("status", {})
            if holds(pod, "Ready"):
                conditions = with_condition(status["conditions"], "Ready", False, stamp(wall), reason="NodeNotReady")
                self._cluster.set_status(PODS, pod, status | {"conditions": conditions})
            if left <= 0 and not is_deleted(pod):
                self._cluster.delete(PODS, pod)
        return self._cluster.clock.now() + left if left > 0 and pods else None
