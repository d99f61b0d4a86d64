"""What the decisions read of the Kubernetes cluster.

Pods, claims and the TidbCluster are read live, a few requests for one pod: what a cache has not seen yet would be one
pod too many on a node. The labels of nodes, of which there may be thousands, come from a cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from kube.client import Client
from kube.objects import Object
from kube.reading import Lister
from kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS, Resource
from member.labels import COMPONENT, INSTANCE, MANAGED_BY, NAME, TIDB_CLUSTER, TIDB_OPERATOR


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that looks for a node: that of a component in the StatefulSet of a TidbCluster."""

    pod: Object
    component: str
    instance: str
    cluster: str

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.pod.metadata.namespace

    @property
    def name(self) -> str:
        """Its name."""
        return self.pod.metadata.name

    @property
    def claim(self) -> str:
        """The name of the claim of its data."""
        return claim_of(self.component, self.name)

    @property
    def selector(self) -> dict[str, str]:
        """The labels of its component's pods and claims."""
        return {
            NAME: TIDB_CLUSTER,
            MANAGED_BY: TIDB_OPERATOR,
            INSTANCE: self.instance,
            COMPONENT: self.component,
        }


def claim_of(component: str, pod: str) -> str:
    """The name of the claim of a pod's data."""
    return f"{component}-{pod}"


def candidate(pod: Object) -> Candidate | None:
    """The pod as one of a TidbCluster; None for any other, whatever its labels say."""
    labels, owner = pod.metadata.labels, pod.metadata.controller
    component, instance = labels.get(COMPONENT, ""), labels.get(INSTANCE, "")
    if not component or not instance or owner is None or owner.kind != "StatefulSet":
        return None
    cluster = owner.name.removesuffix(f"-{component}")
    return Candidate(pod, component, instance, cluster) if cluster != owner.name else None


class ClusterState:
    """Reads. All raise ApiError and TransportError."""

    def __init__(self, client: Client, nodes: Lister | None = None) -> None:
        """`nodes` is a cache of them, of their metadata at least; without it they are read one by one."""
        self._client = client
        self._nodes = nodes

    def tidb_cluster(self, of: Candidate) -> TidbCluster | None:
        """The cluster; None when it is gone. Raises InvalidField, too."""
        found = self._client.find(TIDB_CLUSTERS, of.cluster, of.namespace)
        return decode(found.decode(), TidbCluster) if found is not None else None

    def claims_and_pods(self, of: Candidate) -> tuple[dict[str, Object], dict[str, Object]]:
        """The claims and the pods of the component, each by name.

        Claims come first: the mark of a turn goes when its pod has a node, which pods that are read later show. Who has
        made a claim beforehand need not have labelled it, so what the list lacks is looked for by name.
        """
        claims, pods = self._list(PERSISTENT_VOLUME_CLAIMS, of), self._list(PODS, of)
        lacking = sorted({claim_of(of.component, pod) for pod in (of.name, *pods)} - set(claims))
        unlabelled = {name: claim for name in lacking if (claim := self.claim(of.namespace, name)) is not None}
        return (claims | unlabelled, self._list(PODS, of)) if unlabelled else (claims, pods)

    def claim(self, namespace: str, name: str) -> Object | None:
        """A claim, or None."""
        return self._client.find(PERSISTENT_VOLUME_CLAIMS, name, namespace)

    def pod(self, namespace: str, name: str) -> Object | None:
        """A pod, or None."""
        return self._client.find(PODS, name, namespace)

    def annotate_claim(self, claim: Object, annotations: Mapping[str, str | None]) -> Object:
        """Set annotations, and remove those that are None. Raises Conflict when it has changed since it was read."""
        meta = claim.metadata
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid, "annotations": dict(annotations)}
        }
        return self._client.patch(PERSISTENT_VOLUME_CLAIMS, meta.name, meta.namespace, patch)

    def node_labels(self, name: str, given: Mapping[str, Object] | None = None) -> Mapping[str, str]:
        """The labels of a node, of those that were `given` or that exist; none of one that is gone."""
        node = (given or {}).get(name) or (self._nodes.get("", name) if self._nodes else None)
        node = node or self._client.find(NODES, name)
        return node.metadata.labels if node is not None else {}

    def _list(self, resource: Resource, of: Candidate) -> dict[str, Object]:
        selector = ",".join(f"{key}={value}" for key, value in of.selector.items())
        items = self._client.list_page(resource, of.namespace, label_selector=selector).items
        return {item.metadata.name: item for item in items}
