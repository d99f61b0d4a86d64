"""Reads of the Kubernetes cluster for the decisions.

Pods, claims and the TidbCluster are read live, with a few requests per pod: a pod that a cache had not received yet
would be missing from the count of a node. The labels of nodes, which may number thousands, come from a cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apis.decoding import decode
from apis.ordinals import gated
from apis.tidbcluster import TidbCluster
from kube.client import Client
from kube.objects import Object
from kube.reading import Lister
from kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS, Resource
from member.labels import COMPONENT, INSTANCE, MANAGED_BY, NAME, TIDB_CLUSTER, TIDB_OPERATOR
from member.observed.pod import is_in_advanced


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod to schedule: a component's pod in a StatefulSet of a TidbCluster."""

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
        """The name of the claim with its data."""
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
    """The name of the claim with a pod's data."""
    return f"{component}-{pod}"


def candidate(pod: Object) -> Candidate | None:
    """The pod as a pod of a TidbCluster; None if it is not one, whatever its labels are."""
    labels, owner = pod.metadata.labels, pod.metadata.controller
    component, instance = labels.get(COMPONENT, ""), labels.get(INSTANCE, "")
    if not component or not instance or owner is None or owner.kind != "StatefulSet":
        return None
    cluster = owner.name.removesuffix(f"-{component}")
    return Candidate(pod, component, instance, cluster) if cluster != owner.name else None


class ClusterState:
    """Reads. All raise ApiError and TransportError."""

    def __init__(self, client: Client, nodes: Lister | None = None) -> None:
        """`nodes` caches at least the metadata of nodes; without it, nodes are read one by one."""
        self._client = client
        self._nodes = nodes

    def tidb_cluster(self, of: Candidate) -> TidbCluster | None:
        """The cluster, or None if it is gone; delete slots count if its pods are in Advanced StatefulSets.

        Also raises InvalidField.
        """
        found = self._client.find(TIDB_CLUSTERS, of.cluster, of.namespace)
        return gated(decode(found.decode(), TidbCluster), is_in_advanced(of.pod)) if found is not None else None

    def claims_and_pods(self, of: Candidate) -> tuple[dict[str, Object], dict[str, Object]]:
        """The claims and the pods of the component, by name.

        Claims are read first: the mark of a turn is removed once its pod has a node, which the later read of pods then
        shows. A claim that a user created beforehand may lack labels, so claims missing from the list are read by name.
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
        """Set annotations (None removes one). Raises Conflict if the claim has changed since it was read."""
        meta = claim.metadata
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid, "annotations": dict(annotations)}
        }
        return self._client.patch(PERSISTENT_VOLUME_CLAIMS, meta.name, meta.namespace, patch)

    def node_labels(self, name: str, given: Mapping[str, Object] | None = None) -> Mapping[str, str]:
        """The labels of a node, from `given` or from the cluster; empty if it is gone."""
        node = (given or {}).get(name) or (self._nodes.get("", name) if self._nodes else None)
        node = node or self._client.find(NODES, name)
        return node.metadata.labels if node is not None else {}

    def _list(self, resource: Resource, of: Candidate) -> dict[str, Object]:
        selector = ",".join(f"{key}={value}" for key, value in of.selector.items())
        items = self._client.list_page(resource, of.namespace, label_selector=selector).items
        return {item.metadata.name: item for item in items}
