"""TidbClusters for tests: built from the JSON a user would write, as the controller builds them."""

import json
from collections.abc import Iterator
from typing import Any

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from tests.apis.field_trees import SHARED


def tree(spec: Json, *, status: Json | None = None, **metadata: Any) -> Json:
    """A TidbCluster `basic` in the namespace `ns`."""
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": "basic", "namespace": "ns", **metadata},
        "spec": spec,
        "status": status or {},
    }


def cluster(spec: Json, *, status: Json | None = None, **metadata: Any) -> TidbCluster:
    """The clusters of `golden_clusters`, decoded and defaulted."""
    return with_defaults(decode(tree(spec, status=status, **metadata), TidbCluster))


def minimal(**parts: Json) -> Json:
    """The spec of the smallest useful cluster, `parts` laid onto its components."""
    spec: Json = {
        "version": "v8.5.2",
        "pd": {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {}},
        "tikv": {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {}},
        "tidb": {"replicas": 2, "config": {}},
    }
    return {**spec, **{name: {**spec.get(name, {}), **part} for name, part in parts.items()}}


def golden() -> Iterator[tuple[str, Json]]:
    """Every object of the recordings of v1.6, with the name of its file; nothing where these aren't there."""
    for path in sorted((SHARED / "golden").glob("*.json")):
        for item in json.loads(path.read_text(encoding="utf-8"))["items"]:
            yield path.stem, item


def golden_clusters() -> list[tuple[str, Json]]:
    """The TidbClusters in the manifests, with their names."""
    return [(f"{name}/{item['metadata']['name']}", item) for name, item in golden() if item["kind"] == "TidbCluster"]
