"""Pods and claims of the cluster `demo` in `ns` (tests.member.clusters), as the API server holds them."""

import msgspec

from kube.objects import Json, Object
from member.labels import COMPONENT, INSTANCE, MANAGED_BY, NAME, POD_NAME

NODE = "node-1"


def base(kind: str) -> dict[str, str]:
    return {NAME: "tidb-cluster", MANAGED_BY: "tidb-operator", INSTANCE: "demo", COMPONENT: kind}


def pod(
    name: str,
    kind: str,
    *,
    node: str = NODE,
    ready: bool = True,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **meta: object,
) -> Object:
    """A pod with its data volume."""
    volumes = [{"name": kind, "persistentVolumeClaim": {"claimName": f"{kind}-{name}"}}, {"name": "config"}]
    body: Json = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "labels": base(kind) | (labels or {}),
            "annotations": annotations or {},
        }
        | meta,
        "spec": {"nodeName": node, "volumes": volumes},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    return Object(msgspec.json.encode(body))


def claim(
    pod_name: str,
    kind: str,
    *,
    bound: bool = True,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **meta: object,
) -> Object:
    """The claim of a pod's data volume, with `annotations` and the pod's name."""
    name = f"{kind}-{pod_name}"
    body: Json = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "labels": base(kind) | (labels or {}),
            "annotations": {POD_NAME: pod_name} | (annotations or {}),
        }
        | meta,
        "spec": {"volumeName": "pv-1" if bound else ""},
        "status": {"phase": "Bound" if bound else "Pending"},
    }
    return Object(msgspec.json.encode(body))
