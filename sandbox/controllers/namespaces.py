"""Namespaces: creates the ServiceAccount and root certificate of each. The API server empties deleted ones."""

from collections.abc import Hashable

from kube.objects import Json
from kube.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from sandbox.cluster import Cluster
from sandbox.owners import is_deleted

_DESCRIPTION = "kubernetes.io/description"
_ABOUT_ROOT = "Would verify the API server, but the sandbox speaks plain HTTP on loopback and needs no certificate."


class Namespaces:
    """Fills new namespaces."""

    name = "namespace"
    watches: tuple[Hashable, ...] = (NAMESPACES, SERVICE_ACCOUNTS, CONFIG_MAPS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def step(self) -> float | None:
        """Advance every namespace by one step."""
        for namespace in self._cluster.list(NAMESPACES):
            if not is_deleted(namespace):
                self._fill(namespace["metadata"]["name"])
        return None

    def _fill(self, name: str) -> None:
        if self._cluster.get(SERVICE_ACCOUNTS, name, "default") is None:
            meta = {"name": "default", "namespace": name}
            self._cluster.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        if self._cluster.get(CONFIG_MAPS, name, "kube-root-ca.crt") is None:
            described: Json = {"name": "kube-root-ca.crt", "namespace": name}
            described["annotations"] = {_DESCRIPTION: _ABOUT_ROOT}
            root = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": described, "data": {"ca.crt": ""}}
            self._cluster.create(CONFIG_MAPS, root)
