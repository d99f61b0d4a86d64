"""Reads for a drain: the node, the clusters' pods on it, their clusters and volumes."""

from collections.abc import Iterator, Mapping

from apis.components import component_types
from cli.failures import Failure
from cli.tidb.clusters import KINDS, Found, read_cluster
from cli.tidb.drain.plan import Candidate, claims_of, local_claims
from cli.tidb.pods import ClusterPod
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS
from member.labels import COMPONENT, MANAGED_BY, TIDB_OPERATOR
from member.observed.pod import Pod


def find_node(client: Client, name: str) -> Object:
    """The node. Raises Failure if it does not exist, ApiError, TransportError."""
    node = client.find(NODES, name)
    if node is None:
        known = ", ".join(item.metadata.name for item in client.list_page(NODES).items)
        raise Failure(f"no node {name}; there is {known}")
    return node


def candidates(client: Client, node: str, namespace: str) -> list[Candidate]:
    """The clusters' pods on a node, in one namespace or all. Raises ApiError, TransportError, Failure."""
    on_node = f"spec.nodeName={node}"
    ours = f"{MANAGED_BY}={TIDB_OPERATOR}"
    pods = client.list_page(PODS, namespace, label_selector=ours, field_selector=on_node).items
    clusters: dict[tuple[str, str], Found | None] = {}
    found = []
    for pod in pods:
        for component, name in _owners(pod):
            key = pod.metadata.namespace, name
            if key not in clusters:
                clusters[key] = _cluster(client, *key)
            if cluster := clusters[key]:
                member = ClusterPod(component, pod, pod.decode_as(Pod))
                found.append(Candidate(member, cluster, tuple(_local(client, pod))))
    return found


def _owners(pod: Object) -> Iterator[tuple[str, str]]:
    """The component of a pod, and the possible names of its cluster."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != STATEFUL_SETS.kind or pod.metadata.deletion_timestamp:
        return
    for row in (row for kind in KINDS for row in component_types(kind.kind)):
        of_component = pod.metadata.labels.get(COMPONENT) == row.label
        if of_component and owner.name.endswith(f"-{row.name}"):
            yield row.name, owner.name.removesuffix(f"-{row.name}")


def _cluster(client: Client, namespace: str, name: str) -> Found | None:
    """The cluster with this name, or None."""
    for kind in KINDS:
        if (found := client.find(kind, name, namespace)) is not None:
            return read_cluster(kind, found)
    return None


def _local(client: Client, pod: Object) -> Iterator[str]:
    tree = pod.decode()
    return local_claims(tree, _volumes(client, tree))


def _volumes(client: Client, pod: Json) -> Mapping[str, Json]:
    """The volumes of a pod, by the names of their claims."""
    found, namespace = {}, pod["metadata"]["namespace"]
    for name in claims_of(pod):
        claim = client.find(PERSISTENT_VOLUME_CLAIMS, name, namespace)
        bound = claim.decode()["spec"].get("volumeName") if claim else None
        volume = client.find(PERSISTENT_VOLUMES, bound) if bound else None
        if volume is not None:
            found[name] = volume.decode()
    return found
