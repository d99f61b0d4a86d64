"""The objects of a running cluster, as the Kubernetes API returns them to a user.

A cluster belongs together with those that share its PD. Of Secrets only the names are read. Advanced StatefulSets are
read where the API serves them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apis.identity import INSTANCE_LABEL
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    Resource,
)

_NEEDED = (STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS, SERVICES, CONFIG_MAPS)
_OPTIONAL = (CONTROLLER_REVISIONS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, SECRETS)
_OF_ALL = (NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES)

WORKLOADS = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS)
"""StatefulSets, native and Advanced ones."""

READ: Sequence[Resource] = (TIDB_CLUSTERS, *_NEEDED, *_OPTIONAL, *_OF_ALL)
"""The resources that are listed. Without the optional ones, a recording has gaps."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A cluster, and what surrounds it, at one moment.

    `clusters` begins with the cluster in question; the others share its PD. `objects` are theirs, by resource, with the
    nodes, volumes and classes of all. `neighbours` are the other pods. `unread` has the error for each resource that
    the user may not list, by its name.
    """

    clusters: Sequence[Json]
    objects: Mapping[Resource, Sequence[Json]]
    neighbours: Sequence[Json] = ()
    secrets: frozenset[tuple[str, str]] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)

    def all(self, resource: Resource) -> Sequence[Json]:
        """The objects of a resource."""
        return self.objects.get(resource, ())


def record(client: Client, cluster: Json) -> Recording:
    """Read everything about a cluster. Raises ApiError, TransportError if a necessary resource cannot be read."""
    reader = _Reader(client)
    clusters = list(_related(reader, cluster))
    namespaces = dict.fromkeys(each["metadata"]["namespace"] for each in clusters)
    found: dict[Resource, Sequence[Json]] = {
        resource: [each for namespace in namespaces for each in read(resource, namespace)]
        for read, resources in ((reader.list, _NEEDED), (reader.try_list, (*_OPTIONAL, ADVANCED_STATEFUL_SETS)))
        for resource in resources
    }
    found |= {resource: reader.try_list(resource, "") for resource in _OF_ALL}
    everywhere = reader.try_list(PODS, "") if NODES not in reader.failures else []
    secrets = frozenset((each["metadata"]["namespace"], each["metadata"]["name"]) for each in found.pop(SECRETS))
    unread = {str(resource): message for resource, message in reader.failures.items()}
    if PODS in reader.failures:
        unread["pods of other namespaces"] = unread.pop(str(PODS))
    return assemble(clusters, found, everywhere or found[PODS], secrets, unread)


def assemble(
    clusters: Sequence[Json],
    found: Mapping[Resource, Sequence[Json]],
    pods: Sequence[Json],
    secrets: frozenset[tuple[str, str]],
    unread: Mapping[str, str],
) -> Recording:
    """A recording from lists of objects; `pods` are from all namespaces. Foreign objects are left out."""
    uids = {cluster["metadata"]["uid"] for cluster in clusters}
    owned: dict[Resource, Sequence[Json]] = {
        resource: [each for each in found.get(resource, ()) if _owners(each) & uids]
        for resource in (*WORKLOADS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)
    }
    stateful_sets = [tree for resource in WORKLOADS for tree in owned[resource]]
    sets = {each["metadata"]["uid"] for each in stateful_sets}
    for resource in (CONTROLLER_REVISIONS, PODS):
        owned[resource] = [each for each in found.get(resource, ()) if _owners(each) & sets]
    instances = {
        (each["metadata"]["namespace"], (each["metadata"].get("labels") or {}).get(INSTANCE_LABEL, ""))
        for each in stateful_sets
    }
    owned[PERSISTENT_VOLUME_CLAIMS] = [
        each for each in found.get(PERSISTENT_VOLUME_CLAIMS, ()) if _instance(each) in instances
    ]
    for resource, names in (
        (CONFIG_MAPS, _mentioned(owned[PODS], "configMap", "name")),
        (SERVICE_ACCOUNTS, {(_namespace(each), each["spec"].get("serviceAccountName", "")) for each in owned[PODS]}),
    ):
        known = {_key(each) for each in owned[resource]}
        used = [each for each in found.get(resource, ()) if _key(each) in names - known]
        owned[resource] = [*owned[resource], *used]
    own = {each["metadata"]["uid"] for each in owned[PODS]}
    neighbours = [pod for pod in pods if pod["metadata"]["uid"] not in own and not _is_discovery(pod, instances)]
    by_kind = {
        kind: [cluster for cluster in clusters if cluster["kind"] == kind.kind] for kind in (TIDB_CLUSTERS, DM_CLUSTERS)
    }
    claims = {each["metadata"]["uid"] for each in owned[PERSISTENT_VOLUME_CLAIMS]}
    of_all = {resource: found.get(resource, ()) for resource in _OF_ALL}
    of_all[PERSISTENT_VOLUMES] = [each for each in of_all[PERSISTENT_VOLUMES] if _may_be_used(each, claims)]
    return Recording(clusters, by_kind | owned | of_all, neighbours, secrets, unread)


@dataclass(slots=True)
class _Reader:
    client: Client
    failures: dict[Resource, str] = field(default_factory=dict)

    def list(self, resource: Resource, namespace: str) -> Sequence[Json]:
        page = self.client.list_page(resource, namespace, metadata_only=resource is SECRETS)
        return [item.decode() | {"apiVersion": resource.api_version, "kind": resource.kind} for item in page.items]

    def try_list(self, resource: Resource, namespace: str) -> Sequence[Json]:
        try:
            return self.list(resource, namespace)
        except NotFound:  # the API does not serve this resource
            return ()
        except ApiError as error:
            self.failures[resource] = error.message
            return ()


def _related(reader: _Reader, cluster: Json) -> Iterator[Json]:
    """The cluster, the one whose PD it uses, and all of their namespaces that use the same."""
    yield cluster
    if cluster["kind"] != TIDB_CLUSTERS.kind:
        return
    home = reference_of(cluster) or _key(cluster)
    if home != _key(cluster):
        yield reader.client.get(TIDB_CLUSTERS, home[1], home[0]).decode()
    for namespace in dict.fromkeys((cluster["metadata"]["namespace"], home[0])):
        for each in reader.list(TIDB_CLUSTERS, namespace):
            if reference_of(each) == home and _key(each) not in (_key(cluster), home):
                yield each


def reference_of(cluster: Json) -> tuple[str, str] | None:
    """Namespace and name of the cluster whose PD this one uses; None if it has its own."""
    reference = cluster["spec"].get("cluster") or {}
    if not reference.get("name"):
        return None
    return reference.get("namespace") or cluster["metadata"]["namespace"], reference["name"]


def _may_be_used(volume: Json, claims: set[str]) -> bool:
    """True if a volume belongs to one of the claims, or to none yet."""
    return (volume["spec"].get("claimRef") or {}).get("uid") in (None, *claims)


def _owners(tree: Json) -> set[str]:
    return {each["uid"] for each in tree["metadata"].get("ownerReferences") or ()}


def _key(tree: Json) -> tuple[str, str]:
    return _namespace(tree), tree["metadata"]["name"]


def _namespace(tree: Json) -> str:
    return str(tree["metadata"].get("namespace", ""))


def _instance(tree: Json) -> tuple[str, str]:
    return _namespace(tree), (tree["metadata"].get("labels") or {}).get(INSTANCE_LABEL, "")


def _is_discovery(pod: Json, instances: set[tuple[str, str]]) -> bool:
    """True for a pod of Discovery, which its Deployment creates again."""
    return _instance(pod) in instances and pod["metadata"]["labels"].get("app.kubernetes.io/component") == "discovery"


def _mentioned(pods: Sequence[Json], kind: str, key: str) -> set[tuple[str, str]]:
    """Namespaces and names of the ConfigMaps or Secrets that pods use."""
    return {(_namespace(pod), source[key]) for pod in pods for source in sources(pod, kind) if source.get(key)}


def sources(pod: Json, kind: str) -> Iterator[Json]:
    """The parts of a pod, or of a template, that refer to a ConfigMap (`configMap`) or Secret (`secret`)."""
    spec = pod["spec"]
    for volume in spec.get("volumes") or ():
        parts = (volume, *((volume.get("projected") or {}).get("sources") or ()))
        yield from (part[kind] for part in parts if part.get(kind))
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        yield from (each[f"{kind}Ref"] for each in container.get("envFrom") or () if each.get(f"{kind}Ref"))
        for variable in container.get("env") or ():
            value = variable.get("valueFrom") or {}
            if value.get(f"{kind}KeyRef"):
                yield value[f"{kind}KeyRef"]
