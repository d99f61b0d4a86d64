"""A static Kubernetes, and the extender in front of it."""

import json
from collections.abc import Sequence
from typing import Any

from apis.crd import TIDB_CLUSTER, definition
from kube.objects import Json, Object
from kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from member.labels import POD_SCHEDULING
from ports.clock import FakeClock
from ports.randomness import Randomness, SeededRandomness
from sandbox.world import World
from scheduler.cluster_state import ClusterState
from scheduler.extender import Extender
from scheduler.protocol import Answer, Question

NAMESPACE = "default"
HOST = "kubernetes.io/hostname"


def body(tree: Json) -> bytes:
    """The JSON of a request."""
    return json.dumps(tree).encode()


def node(name: str, **labels: str) -> Json:
    """A node with the given labels and its host name."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOST: name} | labels}}


def pod(name: str, component: str = "pd", **metadata: Any) -> Json:
    """A pod of the cluster `db`, as its StatefulSet creates it."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": f"db-{component}", "uid": "1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels(component),
            "ownerReferences": [owner],
            **metadata,
        },
        "spec": {"schedulerName": "tidb-scheduler", "containers": [{"name": component, "image": "pingcap/pd"}]},
    }


def shuffled(names: Sequence[str], draws: Randomness) -> list[str]:
    """The names in random order."""
    return sorted(names, key=lambda _name: draws.uniform(0, 1))


def labels(component: str) -> dict[str, str]:
    """The labels of the component's pods and claims."""
    own = {"name": "tidb-cluster", "managed-by": "tidb-operator", "instance": "db", "component": component}
    return {f"app.kubernetes.io/{key}": value for key, value in own.items()}


class Recorded:
    """Records events instead of sending them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def event(self, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        """Record an event."""
        self.events.append((about.metadata.name, type, reason, message))


class ExtenderWorld:
    """Nodes a, b, c, a cluster `db`, and its pods."""

    def __init__(self, *nodes: Json, **spec: Json) -> None:
        self.clock = FakeClock()
        self.world = World(self.clock, SeededRandomness(1), crds=[definition(TIDB_CLUSTER)], nodes=())
        self.user = self.world.client("extender")
        self.admin = self.world.client()
        self.events = Recorded()
        self.extender = Extender(ClusterState(self.user), self.events, self.clock)
        self.nodes = [each["metadata"]["name"] for each in nodes or (node("a"), node("b"), node("c"))]
        for each in nodes or (node("a"), node("b"), node("c")):
            self.admin.create(NODES, each)
        self.admin.create(TIDB_CLUSTERS, cluster(**spec), NAMESPACE)

    def add(self, name: str, component: str = "pd", *, on: str = "", metadata: Json | None = None) -> None:
        """Add a pod and its claim; `metadata` is merged into the claim's."""
        self.admin.create(PERSISTENT_VOLUME_CLAIMS, claim(name, component, metadata or {}), NAMESPACE)
        self.add_pod(name, component, on=on)

    def add_pod(self, name: str, component: str = "pd", *, on: str = "") -> None:
        """Add a pod, on a node or without one."""
        tree = pod(name, component)
        if on:
            tree["spec"]["nodeName"] = on
        self.admin.create(PODS, tree, NAMESPACE)

    def bind(self, name: str, to: str) -> None:
        """Bind a pod, as kube-scheduler does after an answer."""
        self.admin.delete(PODS, name, NAMESPACE, grace_period_seconds=0)
        self.add_pod(name, name.split("-")[1], on=to)

    def ask(self, name: str, *nodes: str) -> Answer:
        """The answer about a pod and nodes, by default all."""
        found = self.admin.get(PODS, name, NAMESPACE)
        return self.extender.filter(Question(found, nodes or self.nodes))

    def marked(self) -> list[str]:
        """The claims of the pods whose turn it is."""
        claims = self.admin.list_page(PERSISTENT_VOLUME_CLAIMS, NAMESPACE).items
        return [each.metadata.name for each in claims if each.metadata.annotations.get(POD_SCHEDULING)]

    def set_phase(self, claim: str, phase: str) -> None:
        """Set the phase of a claim."""
        self.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE, {"status": {"phase": phase}}, subresource="status")

    def set_status(self, status: Json) -> None:
        """Set the status of the cluster."""
        self.admin.patch(TIDB_CLUSTERS, "db", NAMESPACE, {"status": status}, subresource="status")


def cluster(**spec: Json) -> Json:
    """The cluster `db` of three PDs, three TiKVs and two TiDBs."""
    storage = {"requests": {"storage": "1Gi"}}
    components: Json = {"pd": storage | {"replicas": 3}, "tikv": storage | {"replicas": 3}, "tidb": {"replicas": 2}}
    made = {name: each | {"baseImage": f"pingcap/{name}"} | spec.get(name, {}) for name, each in components.items()}
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": "db", "namespace": NAMESPACE},
        "spec": {"version": "v8.5.2", **made},
    }


def claim(name: str, component: str, metadata: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{component}-{name}", "namespace": NAMESPACE, "labels": labels(component), **metadata},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
