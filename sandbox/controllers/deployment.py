"""The Deployment and ReplicaSet controllers: Recreate, RollingUpdate, status, conditions."""

from collections.abc import Hashable

from kube.errors import Forbidden, Invalid
from kube.objects import Json
from kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from sandbox.cluster import Cluster, labels_of
from sandbox.conditions import condition, holds, with_condition
from sandbox.controllers.revisions import template_hash
from sandbox.owners import controller_reference, controller_uid, is_deleted
from sandbox.selectors import matches
from sandbox.stamps import stamp

_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"
_FAILURE = "ReplicaFailure"
"""The condition of a ReplicaSet, and of its Deployment, that the API server rejects a pod."""
_RETRY = 10.0
"""Seconds before a rejected pod is created again."""


class Deployments:
    """Keeps one ReplicaSet per template and shifts replicas between them."""

    name = "deployment"
    watches: tuple[Hashable, ...] = (DEPLOYMENTS, REPLICA_SETS, PODS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def step(self) -> float | None:
        """Advance every Deployment by one step."""
        for deployment in self._cluster.list(DEPLOYMENTS):
            if not is_deleted(deployment):
                self._sync(deployment)
        return None

    def _sync(self, deployment: Json) -> None:
        meta = deployment["metadata"]
        owned = [
            each for each in self._cluster.list(REPLICA_SETS, meta["namespace"]) if self._is_owned(deployment, each)
        ]
        name = f"{meta['name']}-{template_hash(deployment['spec']['template'])}"
        current = next((each for each in owned if each["metadata"]["name"] == name), None)
        former = [each for each in owned if each is not current]
        revision = str(1 + max((_number(each) for each in former), default=0))
        if current is None:
            fresh = self._drained(deployment, former)
            replicas = deployment["spec"].get("replicas", 1) if fresh else 0
            current = self._cluster.create(REPLICA_SETS, _replica_set(deployment, name, revision, replicas))
            if current is None:
                return
        if _number(current) < int(revision) and former:
            current = self._cluster.patch(REPLICA_SETS, current, {"metadata": {"annotations": {_REVISION: revision}}})
            if current is None:
                return
        self._shift(deployment, current, former)
        self._annotate(deployment, current)
        self._report(deployment, current, former)

    def _is_owned(self, deployment: Json, replica_set: Json) -> bool:
        """True if the Deployment controls the ReplicaSet; an orphan that matches the selector is adopted."""
        owner = controller_uid(replica_set)
        if owner or is_deleted(replica_set) or not matches(deployment["spec"]["selector"], labels_of(replica_set)):
            return bool(owner == deployment["metadata"]["uid"])
        references = [*(replica_set["metadata"].get("ownerReferences") or ()), controller_reference(deployment)]
        patch = {"metadata": {"ownerReferences": references}}
        return self._cluster.patch(REPLICA_SETS, replica_set, patch) is not None

    def _drained(self, deployment: Json, former: list[Json]) -> bool:
        """True if the new ReplicaSet may start pods: with Recreate only after the old pods are gone."""
        if (deployment["spec"].get("strategy") or {}).get("type") != "Recreate":
            return True
        owners = {each["metadata"]["uid"] for each in former}
        return not any(controller_uid(pod) in owners for pod in self._cluster.list(PODS))

    def _shift(self, deployment: Json, current: Json, former: list[Json]) -> None:
        wanted = deployment["spec"].get("replicas", 1)
        recreate = (deployment["spec"].get("strategy") or {}).get("type") == "Recreate"
        settled = current.get("status", {}).get("readyReplicas", 0) >= wanted
        for replica_set in former:
            if replica_set["spec"].get("replicas", 0) and (recreate or settled):
                self._cluster.patch(REPLICA_SETS, replica_set, {"spec": {"replicas": 0}})
        if current["spec"].get("replicas") != wanted and self._drained(deployment, former):
            self._cluster.patch(REPLICA_SETS, current, {"spec": {"replicas": wanted}})

    def _annotate(self, deployment: Json, current: Json) -> None:
        revision = current["metadata"].get("annotations", {}).get(_REVISION, "1")
        if (deployment["metadata"].get("annotations") or {}).get(_REVISION) != revision:
            self._cluster.patch(DEPLOYMENTS, deployment, {"metadata": {"annotations": {_REVISION: revision}}})

    def _report(self, deployment: Json, current: Json, former: list[Json]) -> None:
        wanted = deployment["spec"].get("replicas", 1)
        sets = [current, *former]
        total = sum(stateful_set.get("status", {}).get("replicas", 0) for stateful_set in sets)
        ready = sum(stateful_set.get("status", {}).get("readyReplicas", 0) for stateful_set in sets)
        updated = current.get("status", {}).get("replicas", 0)
        now = stamp(self._cluster.clock.wall())
        available = ready >= wanted
        complete = available and updated == total == wanted
        before: Json = deployment.get("status", {})
        conditions = with_condition(
            before.get("conditions"),
            "Available",
            available,
            now,
            reason="MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable",
            message=f"Deployment {'has' if available else 'does not have'} minimum availability.",
        )
        conditions = with_condition(
            conditions,
            "Progressing",
            True,
            now,
            reason="NewReplicaSetAvailable" if complete else "ReplicaSetUpdated",
            message=f'ReplicaSet "{current["metadata"]["name"]}" '
            + ("has successfully progressed." if complete else "is progressing."),
        )
        failure = condition((current.get("status") or {}).get("conditions"), _FAILURE)
        conditions = [each for each in conditions if each["type"] != _FAILURE] + ([failure] if failure else [])
        conditions = [{"lastUpdateTime": now} | each for each in conditions]
        counts = {
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(wanted - ready, 0),
        }
        others = {key: value for key, value in before.items() if key not in counts}
        status = others | {key: count for key, count in counts.items() if count}
        status |= {"observedGeneration": deployment["metadata"].get("generation", 0), "conditions": conditions}
        self._cluster.set_status(DEPLOYMENTS, deployment, status)


class ReplicaSets:
    """Keeps the desired number of pods for each ReplicaSet."""

    name = "replica-set"
    watches: tuple[Hashable, ...] = (REPLICA_SETS, PODS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def step(self) -> float | None:
        """Bring every ReplicaSet to its count."""
        refused = False
        for replica_set in self._cluster.list(REPLICA_SETS):
            if not is_deleted(replica_set):
                refused = self._sync(replica_set) or refused
        return self._cluster.clock.now() + _RETRY if refused else None

    def _sync(self, replica_set: Json) -> bool:
        """Create and delete pods; True if the API server rejected one, which is reported as event and condition."""
        meta = replica_set["metadata"]
        pods = [pod for pod in self._cluster.list(PODS, meta["namespace"]) if controller_uid(pod) == meta["uid"]]
        pods = [pod for pod in pods if pod.get("status", {}).get("phase") not in ("Failed", "Succeeded")]
        staying = sorted((pod for pod in pods if not is_deleted(pod)), key=lambda pod: not holds(pod, "Ready"))
        wanted = replica_set["spec"].get("replicas", 1)
        refused = self._create(replica_set, wanted - len(staying))
        for pod in staying[wanted:]:
            self._cluster.delete(PODS, pod)
        ready = sum(holds(pod, "Ready") for pod in staying)
        counts = {"replicas": len(staying), "readyReplicas": ready, "availableReplicas": ready}
        others = {key: value for key, value in replica_set.get("status", {}).items() if key not in counts}
        status = others | {key: count for key, count in counts.items() if count or key == "replicas"}
        status["observedGeneration"] = meta.get("generation", 0)
        status["conditions"] = self._conditions(replica_set, refused)
        self._cluster.set_status(REPLICA_SETS, replica_set, {key: each for key, each in status.items() if each != []})
        return bool(refused)

    def _conditions(self, replica_set: Json, refused: str) -> list[Json]:
        """The conditions of the status: a failure keeps its first message until it is resolved."""
        before: list[Json] = (replica_set.get("status") or {}).get("conditions") or []
        if refused and condition(before, _FAILURE) is None:
            now = stamp(self._cluster.clock.wall())
            return with_condition(before, _FAILURE, True, now, reason="FailedCreate", message=refused)
        return before if refused else [each for each in before if each["type"] != _FAILURE]

    def _create(self, replica_set: Json, count: int) -> str:
        """Create `count` pods; return why the API server rejected one, or an empty text."""
        for _ in range(count):
            try:
                self._cluster.create(PODS, self._pod(replica_set))
            except (Invalid, Forbidden) as error:
                self._cluster.event(replica_set, "Warning", "FailedCreate", f"Error creating: {error.message}")
                return str(error)
        return ""

    def _pod(self, replica_set: Json) -> Json:
        template = replica_set["spec"]["template"]
        meta = dict(template.get("metadata") or {}) | {
            "name": f"{replica_set['metadata']['name']}-{self._cluster.suffix()}",
            "generateName": f"{replica_set['metadata']['name']}-",
            "namespace": replica_set["metadata"]["namespace"],
            "ownerReferences": [controller_reference(replica_set)],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def _replica_set(deployment: Json, name: str, revision: str, replicas: int) -> Json:
    spec, meta = deployment["spec"], deployment["metadata"]
    label = {_HASH: name.removeprefix(f"{meta['name']}-")}
    template_meta = spec["template"].get("metadata") or {}
    labels = (template_meta.get("labels") or {}) | label
    selector = spec["selector"] | {"matchLabels": (spec["selector"].get("matchLabels") or {}) | label}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {_REVISION: revision},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": spec["template"] | {"metadata": template_meta | {"labels": labels}},
        },
    }


def _number(replica_set: Json) -> int:
    return int(replica_set["metadata"].get("annotations", {}).get(_REVISION, "0"))
