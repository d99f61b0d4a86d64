"""The scheduler: binds pending pods to nodes, or reports the reason."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from http import HTTPStatus

import msgspec

from kube.objects import Json
from kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from ports import quantity
from ports.transport import Request
from sandbox.cluster import Cluster
from sandbox.conditions import condition, with_condition
from sandbox.controllers.volumes import NO_PROVISIONER
from sandbox.dataplane.program import Handler
from sandbox.kubelet.faults import matches_any
from sandbox.owners import is_deleted
from sandbox.placement import Preference, Refused, Situation, is_reachable, place
from sandbox.stamps import stamp
from sandbox.timings import Timings

_NAME = "default-scheduler"
"""The scheduler of pods that name no other."""

_SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Scheduler:
    """Binds pods; claims that wait for their first consumer get the chosen node first."""

    name = "scheduler"
    watches: tuple[Hashable, ...] = (PODS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES)

    def __init__(self, cluster: Cluster, timings: Timings, extenders: Mapping[str, Handler] | None = None) -> None:
        """`extenders` answers for the nodes of pods that ask for a scheduler of that name."""
        self._cluster = cluster
        self._volume_check = timings.volume_check
        self._extenders = extenders or {}
        self._chosen_at: dict[str, float] = {}
        """When nodes were chosen for pods whose volumes are being made, by UID."""
        self._bound_at: dict[str, float] = {}
        """When it sees that these volumes are there, by UID."""
        self.held: set[str] = set()
        """A fault: globs on `namespace/name` of pods that find no node."""
        self.preferred: Mapping[str, str] = {}
        """The nodes for pods that fit on several, by `namespace/name`."""
        self.former: Mapping[str, str] = {}
        """The nodes that pods of another world ran on, by `namespace/name`: kube-scheduler, which judges nodes in one
        order, is likely to choose the same one again for their successors.
        """

    def step(self) -> float | None:
        """Try every pending pod once, each with regard to the previous ones."""
        pods = self._cluster.list(PODS)
        bound = [pod for pod in pods if pod["spec"].get("nodeName") and not _finished(pod)]
        for pod in pods:
            if pod["spec"].get("nodeName") or is_deleted(pod):
                continue
            if pod["spec"].get("schedulerName", _NAME) not in (_NAME, *self._extenders):
                continue
            if matches_any(self.held, pod):
                self._refuse(pod, f"0/{len(self._cluster.list(NODES))} nodes are available: held back by a fault.")
                continue
            node = self._schedule(pod, Situation(self._cluster.list(NODES), bound))
            if node:
                bound.append(pod | {"spec": pod["spec"] | {"nodeName": node}})
        now = self._cluster.clock.now()
        self._bound_at = {uid: at for uid, at in self._bound_at.items() if at > now}
        return min(self._bound_at.values(), default=None)

    def _schedule(self, pod: Json, situation: Situation) -> str:
        """The pod's node, or an empty text; the pod is bound once its claims are."""
        claims = self._claims(pod)
        if claims is None:
            return ""
        bound = [claim for claim in claims if claim["spec"].get("volumeName")]
        volumes = [self._cluster.get(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"]) for claim in bound]
        chosen = self._chosen(claims)
        nodes = [node for node in situation.nodes if not chosen or node["metadata"]["name"] == chosen]
        there = [volume for volume in volumes if volume is not None]
        ask = partial(self._judge, pod, [each for each in claims if each not in bound])
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        preference = Preference(self.preferred.get(name, ""), self.former.get(name, ""))
        verdict = place(pod, there, Situation(nodes, situation.pods), ask, preference)
        if not verdict.node:
            if chosen:
                # the node no longer fits: choose again before the volume is provisioned
                self._select(claims, None)
            self._refuse(pod, verdict.reason)
            return ""
        if len(bound) < len(claims):
            self._select(claims, verdict.node)
            if self._volume_check:
                self._chosen_at.setdefault(pod["metadata"]["uid"], self._cluster.clock.now())
            return verdict.node
        if all(claim.get("status", {}).get("phase") == "Bound" for claim in claims) and self._sees_volumes(pod):
            self._cluster.bind(pod, verdict.node)
            meta = pod["metadata"]
            message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {verdict.node}"
            self._cluster.event(pod, "Normal", "Scheduled", message, "Binding")
        return verdict.node

    def _sees_volumes(self, pod: Json) -> bool:
        """True if the volumes of a pod are known to be there: new ones are seen at the next check after their node."""
        uid, now = pod["metadata"]["uid"], self._cluster.clock.now()
        if uid in self._chosen_at:
            began = self._chosen_at.pop(uid)
            self._bound_at[uid] = began + ((now - began) // self._volume_check + 1) * self._volume_check
        return now >= self._bound_at.get(uid, now)

    def _judge(self, pod: Json, unbound: Sequence[Json], nodes: Sequence[Json]) -> Mapping[str, str]:
        """The reasons against fitting nodes: no volume for the pod, or the extender. Raises Refused."""
        static = [each for each in unbound if self._class(each).get("provisioner") == NO_PROVISIONER]
        lacking = {
            node["metadata"]["name"]: "node(s) didn't find available persistent volumes to bind"
            for node in nodes
            if not all(self._volumes_for(claim, node) for claim in static)
        }
        left = [node for node in nodes if node["metadata"]["name"] not in lacking]
        return {**lacking, **(self._ask(pod, left) if left else {})}

    def _volumes_for(self, claim: Json, node: Json) -> list[Json]:
        """The free volumes of a class without provisioner that fit a claim on a node, smallest first."""
        wanted = quantity.parse(claim["spec"]["resources"]["requests"]["storage"])
        free = [
            volume
            for volume in self._cluster.list(PERSISTENT_VOLUMES)
            if volume.get("status", {}).get("phase") == "Available"
            and volume["spec"].get("storageClassName") == claim["spec"]["storageClassName"]
            and quantity.parse(volume["spec"]["capacity"]["storage"]) >= wanted
            and is_reachable(volume, node)
        ]
        return sorted(free, key=lambda volume: quantity.parse(volume["spec"]["capacity"]["storage"]))

    def _ask(self, pod: Json, nodes: Sequence[Json]) -> Mapping[str, str]:
        """The answer of the pod's extender, called like kube-scheduler does. Raises Refused."""
        extender = self._extenders.get(pod["spec"].get("schedulerName", _NAME))
        if extender is None:
            return {}
        body = msgspec.json.encode({"Pod": pod, "Nodes": {"items": nodes}, "NodeNames": None})
        answer = extender(Request("POST", "/scheduler/filter", {"content-type": "application/json"}, body))
        result = msgspec.json.decode(answer.body)
        if answer.status != HTTPStatus.OK or result["Error"]:
            raise Refused(result.get("Error") or f"the extender answered {answer.status}: {result}")
        refused: Mapping[str, str] = result["FailedNodes"]
        return refused

    def _claims(self, pod: Json) -> list[Json] | None:
        """The pod's claims; None, with the reason on the pod, if one is missing or must be bound first."""
        found = []
        for volume in pod["spec"].get("volumes") or ():
            if "persistentVolumeClaim" not in volume:
                continue
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = self._cluster.get(PERSISTENT_VOLUME_CLAIMS, pod["metadata"]["namespace"], name)
            if claim is None:
                self._refuse(pod, f'persistentvolumeclaim "{name}" not found')
                return None
            if is_deleted(claim):
                self._refuse(pod, f'persistentvolumeclaim "{name}" is being deleted')
                return None
            if not claim["spec"].get("volumeName") and not self._waits(claim):
                self._refuse(pod, "pod has unbound immediate PersistentVolumeClaims")
                return None
            found.append(claim)
        return found

    def _waits(self, claim: Json) -> bool:
        """True if the claim's class waits for its first consumer."""
        return self._class(claim).get("volumeBindingMode") == "WaitForFirstConsumer"

    def _class(self, claim: Json) -> Json:
        """The storage class of a claim; empty if there is none."""
        name = claim["spec"].get("storageClassName")
        return (self._cluster.get(STORAGE_CLASSES, "", name) if name else None) or {}

    def _chosen(self, claims: list[Json]) -> str:
        for claim in claims:
            if not claim["spec"].get("volumeName"):
                node: str = (claim["metadata"].get("annotations") or {}).get(_SELECTED_NODE, "")
                if node:
                    return node
        return ""

    def _select(self, claims: list[Json], node: str | None) -> None:
        for claim in (each for each in claims if not each["spec"].get("volumeName")):
            current = (claim["metadata"].get("annotations") or {}).get(_SELECTED_NODE)
            if node and self._class(claim).get("provisioner") == NO_PROVISIONER:
                self._take(claim, node)
            elif current != node:
                chosen = {"metadata": {"annotations": {_SELECTED_NODE: node}}}
                self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, claim, chosen)

    def _take(self, claim: Json, node: str) -> None:
        """Bind a claim to a volume that a user has prepared; kube-controller-manager does the rest."""
        meta, tree = claim["metadata"], self._cluster.get(NODES, "", node)
        free = self._volumes_for(claim, tree) if tree is not None else []
        if free:
            reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            reference |= {key: meta[key] for key in ("namespace", "name", "uid")}
            self._cluster.patch(PERSISTENT_VOLUMES, free[0], {"spec": {"claimRef": reference}})

    def _refuse(self, pod: Json, message: str) -> None:
        before: Json = pod.get("status", {})
        known = condition(before.get("conditions"), "PodScheduled")
        if known is not None and known.get("message") == message:
            return
        conditions = with_condition(
            before.get("conditions"),
            "PodScheduled",
            False,
            stamp(self._cluster.clock.wall()),
            reason="Unschedulable",
            message=message,
        )
        if self._cluster.set_status(PODS, pod, before | {"conditions": conditions}) is not None:
            self._cluster.event(pod, "Warning", "FailedScheduling", message, "Scheduling")


def _finished(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
