"""Taint-based eviction: deletes pods that do not tolerate a taint of their node."""

from collections.abc import Hashable, Iterator

from kube.objects import Json
from kube.resources import NODES, PODS
from sandbox.cluster import Cluster
from sandbox.conditions import with_condition
from sandbox.owners import is_deleted
from sandbox.placement import covers
from sandbox.stamps import stamp

_FOR_EVER = float("inf")


class TaintEviction:
    """Deletes pods from nodes with NoExecute taints, each as late as its tolerations allow."""

    name = "taint-eviction"
    watches: tuple[Hashable, ...] = (NODES, PODS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since: dict[str, float] = {}
        """When each pod was first seen on a node that it must leave, by UID."""

    def step(self) -> float | None:
        """Delete the pods that are due; return when the next one is."""
        now = self._cluster.clock.now()
        affected = list(self._affected())
        self._since = {pod["metadata"]["uid"]: self._since.get(pod["metadata"]["uid"], now) for pod, _ in affected}
        due = [(self._since[pod["metadata"]["uid"]] + tolerated, pod) for pod, tolerated in affected]
        for when, pod in due:
            if when <= now:
                self._evict(pod)
        return min((when for when, _ in due if when > now), default=None)

    def _affected(self) -> Iterator[tuple[Json, float]]:
        """The pods that must leave their nodes, each with the seconds that it may stay."""
        taints = {node["metadata"]["name"]: _evicting(node) for node in self._cluster.list(NODES)}
        if not any(taints.values()):
            return
        for pod in self._cluster.list(PODS):
            there = taints.get(pod["spec"].get("nodeName", ""))
            if there and not is_deleted(pod) and (tolerated := _tolerated(pod["spec"], there)) < _FOR_EVER:
                yield pod, tolerated

    def _evict(self, pod: Json) -> None:
        meta, status = pod["metadata"], pod.get("status") or {}
        now = stamp(self._cluster.clock.wall())
        why = {"reason": "DeletionByTaintManager", "message": "Taint manager: deleting due to NoExecute taint"}
        conditions = with_condition(status.get("conditions"), "DisruptionTarget", True, now, **why)
        self._cluster.event(
            pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {meta['namespace']}/{meta['name']}"
        )
        self._cluster.set_status(PODS, pod, status | {"conditions": conditions})
        self._cluster.delete(PODS, pod)


def _evicting(node: Json) -> list[Json]:
    return [each for each in node["spec"].get("taints") or () if each["effect"] == "NoExecute"]


def _tolerated(spec: Json, taints: list[Json]) -> float:
    """The seconds that a pod may stay beside all of the taints; for each taint its first toleration counts."""
    tolerations: list[Json] = spec.get("tolerations") or []
    found = [next((toleration for toleration in tolerations if covers(toleration, taint)), None) for taint in taints]
    granted = [0.0 if each is None else _seconds(each) for each in found]
    return min(granted)


def _seconds(toleration: Json) -> float:
    seconds = toleration.get("tolerationSeconds")
    return _FOR_EVER if seconds is None else max(0.0, float(seconds))
