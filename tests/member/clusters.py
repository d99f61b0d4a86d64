"""Clusters for tests: the smallest of each kind, changed by a test where it matters."""

from typing import Any

import msgspec

from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from kube.objects import Json

PD: Json = {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {}}
TIKV: Json = {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {}}
TIDB: Json = {"replicas": 2, "config": {}}
TLS: Json = {"enabled": True}
TLS_CLIENT: Json = {"enabled": True}


def cluster(
    *,
    pd: Json | None = None,
    tikv: Json | None = None,
    tidb: Json | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    status: Json | None = None,
    without: tuple[str, ...] = (),
    **spec: Any,
) -> TidbCluster:
    """A defaulted cluster `demo` in `ns` with PD, TiKV and TiDB, each with the given fields on top; see `without`."""
    components = {"pd": PD | (pd or {}), "tikv": TIKV | (tikv or {}), "tidb": TIDB | (tidb or {})}
    body = {
        "metadata": {
            "name": "demo",
            "namespace": "ns",
            "uid": "uid-1",
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {"version": "v8.5.0"} | {k: v for k, v in components.items() if k not in without} | spec,
        "status": status or {},
    }
    return with_defaults(msgspec.convert(body, TidbCluster))


def pod_of(stateful_set: Json) -> Json:
    """The pod spec of a StatefulSet or Deployment."""
    pod: Json = stateful_set["spec"]["template"]["spec"]
    return pod


def container_of(stateful_set: Json, name: str) -> Json:
    """A container of its pods."""
    container: Json = next(c for c in pod_of(stateful_set)["containers"] if c["name"] == name)
    return container


def names(items: list[Json]) -> list[str]:
    """The names of containers, volumes, mounts, variables or objects, in order."""
    return [item["metadata"]["name"] if "metadata" in item else item["name"] for item in items]


def values(container: Json) -> dict[str, str | None]:
    """The variables of a container that have a plain value."""
    return {entry["name"]: entry.get("value") for entry in container["env"] if "valueFrom" not in entry}
