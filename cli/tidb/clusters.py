"""Look-up of clusters by users' names: TidbClusters and DMClusters."""

from collections.abc import Mapping
from dataclasses import dataclass

from apis.cluster import Cluster
from apis.cluster_kinds import CLUSTER_MODELS
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from cli.failures import Failure
from kube.client import Client
from kube.errors import NotFound
from kube.objects import Json, Object
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, Resource

SHORT: Mapping[str, Resource] = {"tc": TIDB_CLUSTERS, "dc": DM_CLUSTERS}
"""The prefixes of cluster names, as in `tc/basic`."""

KINDS = (TIDB_CLUSTERS, DM_CLUSTERS)


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster as read: the object, and its decoded form with defaults."""

    resource: Resource
    object: Object
    cluster: Cluster

    @property
    def text(self) -> str:
        """The unambiguous name for users, e.g. `tc/basic`."""
        short = next(short for short, resource in SHORT.items() if resource == self.resource)
        return f"{short}/{self.object.metadata.name}"

    @property
    def name(self) -> str:
        """The name in kubectl's messages."""
        return f"{self.resource.kind.lower()}/{self.object.metadata.name}"

    @property
    def identity(self) -> Json:
        """The identity in documents."""
        meta = self.object.metadata
        return {"kind": self.resource.kind, "namespace": meta.namespace, "name": meta.name}


def find_cluster(client: Client, namespace: str, text: str) -> Found:
    """The cluster of a name, or of `tc/name`, `dc/name` if both kinds have it.

    Raises Failure if it does not exist or cannot be decoded, ApiError, TransportError.
    """
    short, _, name = text.rpartition("/")
    if short and short not in SHORT:
        raise Failure(f"{text}: a cluster is named NAME, or {' or '.join(f'{each}/NAME' for each in SHORT)}")
    kinds = (SHORT[short],) if short else KINDS
    found = [(kind, each) for kind in kinds if (each := _find(client, kind, name, namespace)) is not None]
    if len(found) > 1:
        raise Failure(f"{name} is a TidbCluster and a DMCluster; write tc/{name} or dc/{name}")
    if not found:
        what = " or ".join(kind.kind for kind in kinds)
        raise Failure(f"no {what} {name} in namespace {namespace}{_others(client, namespace)}")
    return read_cluster(*found[0])


def read_cluster(resource: Resource, found: Object) -> Found:
    """Decode an object. Raises Failure."""
    try:
        return Found(resource, found, with_defaults(decode(found.decode(), CLUSTER_MODELS[resource.kind])))
    except InvalidField as error:
        raise Failure(f"{resource.kind} {found.key} cannot be read: {error}") from None


def clusters_of(client: Client, namespace: str) -> list[tuple[Resource, Object]]:
    """All clusters of a namespace, or of all if it is empty, by name. Raises ApiError, TransportError, Failure."""
    found = [(kind, item) for kind in KINDS for item in client.list_page(kind, namespace).items]
    return sorted(found, key=lambda each: each[1].key)


def _find(client: Client, kind: Resource, name: str, namespace: str) -> Object | None:
    try:
        return client.find(kind, name, namespace)
    except NotFound:
        raise Failure(f"this API server has no {kind.plural}.{kind.group}: the CRDs are not installed there") from None


def _others(client: Client, namespace: str) -> str:
    names = [each.metadata.name for _, each in clusters_of(client, namespace)]
    return f"; there is {', '.join(names)}" if names else "; there is no cluster in it, name another one with -n"


def spec_patch(cluster: Cluster, spec: Json) -> Json:
    """A merge patch for the spec of exactly this cluster, which fails for a recreated one."""
    return {"metadata": {"uid": cluster.metadata.uid}, "spec": spec}
