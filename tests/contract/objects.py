"""The objects that the contract speaks of."""

from collections.abc import Mapping
from typing import Any

from kube.objects import Json

IMAGE = "registry.example/idle:v1"


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> Json:
    """A pod with one container, which ends promptly on SIGTERM."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(**spec)}


def pod_spec(**spec: Any) -> Json:
    """One container."""
    return {"containers": [{"name": "main", "image": IMAGE}], "terminationGracePeriodSeconds": 1, **spec}


def stateful_set(name: str, replicas: int = 2, **spec: Any) -> Json:
    """A StatefulSet of such pods."""
    return {"apiVersion": "apps/v1", "kind": "StatefulSet"} | _workload(name, replicas, serviceName=name, **spec)


def deployment(name: str, replicas: int = 2, **spec: Any) -> Json:
    """A Deployment of such pods."""
    return {"apiVersion": "apps/v1", "kind": "Deployment"} | _workload(name, replicas, **spec)


def claim_template(name: str) -> Json:
    """A claim as StatefulSets create it."""
    return {"metadata": {"name": name}, "spec": claim_spec()}


def claim(name: str, **spec: Any) -> Json:
    """A claim of a gigabyte of the default class."""
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim_spec(**spec)}


def claim_spec(**spec: Any) -> Json:
    """The spec of such a claim."""
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}


def tidb_cluster(name: str, **spec: Any) -> Json:
    """A TidbCluster with PD only."""
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": name},
        "spec": {"version": "v8.5.0", "pd": {"replicas": 1, "requests": {"storage": "1Gi"}}, **spec},
    }


def owned_by(owner: Json, body: Json, *, blocking: bool = False) -> Json:
    """The object with `owner` as its controller."""
    meta: Mapping[str, Any] = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    reference |= {"controller": True, "blockOwnerDeletion": blocking}
    return body | {"metadata": body["metadata"] | {"ownerReferences": [reference]}}


def _workload(name: str, replicas: int, **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }
