"""Objects that a status reads, as JSON."""

from collections.abc import Iterable

import msgspec

from cli.tidb.clusters import Found, read_cluster
from cli.tidb.pods import ClusterPod
from cli.tidb.status.facts import Facts
from kube.objects import Json, Object
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS
from member.observed.pod import Pod

LONG_AGO = "2026-01-01T00:00:00Z"


def cluster(name: str = "shop", spec: Json | None = None, status: Json | None = None) -> Found:
    """A TidbCluster with a PD and three TiKV, or with another `spec`."""
    usual = {
        "version": "v8.5.2",
        "pd": {"replicas": 1, "requests": {"storage": "1Gi"}},
        "tikv": {"replicas": 3, "requests": {"storage": "1Gi"}},
    }
    tree = {
        "apiVersion": TIDB_CLUSTERS.api_version,
        "kind": TIDB_CLUSTERS.kind,
        "metadata": {"name": name, "namespace": "default", "uid": "1", "creationTimestamp": LONG_AGO},
        "spec": spec or usual,
        "status": status or {},
    }
    return read_cluster(TIDB_CLUSTERS, Object(msgspec.json.encode(tree)))


def dm_cluster(status: Json) -> Found:
    """A DMCluster with a master and a worker."""
    tree = {
        "apiVersion": DM_CLUSTERS.api_version,
        "kind": DM_CLUSTERS.kind,
        "metadata": {"name": "sync", "namespace": "default", "uid": "2"},
        "spec": {"version": "v8.5.2", "master": {"replicas": 1}, "worker": {"replicas": 1}},
        "status": status,
    }
    return read_cluster(DM_CLUSTERS, Object(msgspec.json.encode(tree)))


def pod(component: str, name: str, status: Json | None = None, node: str = "node-1", **metadata: object) -> ClusterPod:
    """A pod that is Ready, or has another `status`."""
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {"app.kubernetes.io/component": component}
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels, **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": running if status is None else status,
    }
    found = Object(msgspec.json.encode(tree))
    return ClusterPod(component, found, found.decode_as(Pod))


def facts(found: Found, pods: Iterable[ClusterPod] = (), **others: list[Json]) -> Facts:
    """The objects read about a cluster."""
    made = Facts(found, list(pods))
    for name, trees in others.items():
        setattr(made, name, trees)
    return made


def condition(kind: str, reason: str, message: str = "", *, holds: bool = True) -> Json:
    """A condition."""
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": LONG_AGO}


def store(number: int, state: str = "Up", leaders: int = 10) -> Json:
    """A TiKV store in the pod of that ordinal."""
    return {"id": str(number), "podName": f"shop-tikv-{number}", "ip": "", "leaderCount": leaders, "state": state}
