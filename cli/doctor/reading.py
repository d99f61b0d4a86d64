"""Reads of the Kubernetes API, once per resource; resources that the user may not read are noted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import urlencode

from cli.doctor.causes.admission import selector_of, services_of
from cli.doctor.causes.containers import ended
from cli.doctor.facts import ENDPOINT_SLICES, NETWORK_POLICIES, POD_DISRUPTION_BUDGETS, Facts
from cli.failures import Failure
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.objects import Json, secret_data
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DM_CLUSTERS,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESTORES,
    SECRETS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from member import labels
from member.memory import Finding
from meta.certificate_needs import needs
from meta.certificates import inspect
from ports.transport import TransportError

NOT_FOUND_OUT = 2
"""The exit code if the clusters could not be read."""

_OF_NAMESPACE = (
    PODS,
    STATEFUL_SETS,
    ADVANCED_STATEFUL_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    EVENTS,
    SECRETS,
    POD_DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    BACKUPS,
    RESTORES,
    BACKUP_SCHEDULES,
    COMPACT_BACKUPS,
)
_OF_ALL = (
    NODES,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)

_FIELDS: Mapping[Resource, str] = {
    EVENTS: "type=Warning",
    CUSTOM_RESOURCE_DEFINITIONS: f"metadata.name={TIDB_CLUSTERS}",
    # this namespace has a Lease per node
    LEASES: "metadata.namespace!=kube-node-lease",
}
_OPERATORS = labels.selector_text({labels.NAME: labels.TIDB_OPERATOR, labels.COMPONENT: "controller-manager"})
_LABELS: Mapping[Resource, str] = {VALIDATING_WEBHOOK_CONFIGURATIONS: _OPERATORS}

_LINES = 5
"""The number of lines shown of an ended container's log."""


class CannotLook(Failure):
    """Raised if the clusters cannot be read, or the named one does not exist."""

    code = NOT_FOUND_OUT


@dataclass(slots=True)
class _Reader:
    """Reads lists, and records failures."""

    client: Client
    listed: dict[Resource, Sequence[Json]] = field(default_factory=dict)
    unread: dict[Resource, str] = field(default_factory=dict)

    def read(self, resource: Resource, namespace: str = "") -> None:
        if (found := self._list(resource, namespace, _LABELS.get(resource, ""))) is not None:
            self.listed[resource] = found

    def endpoints_of_webhooks(self) -> None:
        """Read the EndpointSlices of the admission webhooks' Services: of all, or they are unread."""
        configurations = self.listed.get(VALIDATING_WEBHOOK_CONFIGURATIONS, ())
        slices: list[Json] = []
        for namespace, name in {service: None for each in configurations for service in services_of(each)}:
            found = self._list(ENDPOINT_SLICES, namespace, selector_of(name))
            if found is None:
                return
            slices += found
        self.listed[ENDPOINT_SLICES] = slices

    def _list(self, resource: Resource, namespace: str, label_selector: str) -> Sequence[Json] | None:
        """The objects of a resource; None, with a note, if they cannot be read."""
        # of Secrets, only their existence
        names_only = resource is SECRETS
        try:
            page = self.client.list_page(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=_FIELDS.get(resource, ""),
                metadata_only=names_only,
            )
        except NotFound:
            # a server without the kind has no objects of it
            return ()
        except (ApiError, TransportError) as error:
            self.unread[resource] = error.message if isinstance(error, ApiError) else str(error)
            return None
        # items of a list need not have an apiVersion
        return [{"apiVersion": resource.api_version} | item.decode() for item in page.items]

    def operators(self) -> Sequence[Json]:
        try:
            found = self.client.list_page(PODS, label_selector=_OPERATORS).items
        except (ApiError, TransportError):
            return ()
        return [obj.decode() for obj in found]


def read(client: Client, namespace: str, names: Sequence[str], now: datetime) -> Sequence[Facts]:
    """All facts about the clusters of a namespace, or of all namespaces if it is empty; `names` selects some.

    A name such as `dc/sync` means a DMCluster; without a kind, a TidbCluster comes first. Where the API server does not
    know TidbClusters, the facts are about no cluster. Raises CannotLook.
    """
    reader = _Reader(client)
    clusters = _clusters(client, namespace, names, reader.unread)
    for resource in _OF_ALL:
        reader.read(resource)
    reader.endpoints_of_webhooks()
    operators = reader.operators()
    around = Facts(now=now, namespace=namespace, listed=reader.listed, unread=reader.unread, operators=operators)
    if clusters is None:
        return [around]
    for resource in _OF_NAMESPACE:
        reader.read(resource, namespace)
    return [_completed(client, facts) for facts in _of_each(around, clusters)]


def _of_each(around: Facts, clusters: Sequence[Json]) -> Iterator[Facts]:
    """The facts about each cluster, with the objects of its own namespace only."""
    namespaces = {cluster["metadata"]["namespace"] for cluster in clusters}
    if around.namespace:
        yield from (replace(around, cluster=cluster, kind=cluster["kind"]) for cluster in clusters)
        return
    listed: dict[str, dict[Resource, list[Json]]] = {each: {} for each in namespaces}
    for resource, trees in around.listed.items():
        if resource not in _OF_NAMESPACE:
            continue
        for own in listed.values():
            own[resource] = []
        for tree in trees:
            if (own_lists := listed.get(tree["metadata"].get("namespace", ""))) is not None:
                own_lists[resource].append(tree)
    for cluster in clusters:
        namespace = cluster["metadata"]["namespace"]
        all_lists: dict[Resource, Sequence[Json]] = {**around.listed, **listed[namespace]}
        yield replace(around, cluster=cluster, kind=cluster["kind"], namespace=namespace, listed=all_lists)


def _completed(client: Client, facts: Facts) -> Facts:
    """The facts, completed by reads that depend on the cluster's pods and spec."""
    unread = dict(facts.unread)
    certificates = _certificates(client, facts, unread)
    return replace(facts, logs=_logs(client, facts), certificates=certificates, unread=unread)


def _clusters(
    client: Client, namespace: str, names: Sequence[str], unread: dict[Resource, str]
) -> Sequence[Json] | None:
    """The clusters; None where the API server does not know TidbClusters. Raises CannotLook.

    A user who names no DMCluster need not be allowed to read them.
    """
    tidb = _listed(client, TIDB_CLUSTERS, namespace)
    if tidb is None:
        return None
    there = list(tidb)
    try:
        there += _listed(client, DM_CLUSTERS, namespace) or ()
    except CannotLook as error:
        if any(name.startswith("dc/") for name in names):
            raise
        unread[DM_CLUSTERS] = str(error)
    if not there and not namespace:
        raise CannotLook("no TidbCluster or DMCluster in any namespace")
    if not names:
        if not there:
            raise CannotLook(
                f"no TidbCluster or DMCluster in namespace {namespace}; name another one with -n, or -A for all"
            )
        return there
    found = [_named(there, name) for name in names]
    if None in found:
        listed = (
            f"; there is {', '.join(map(_called, there))}" if there else "; there is none, name another one with -n"
        )
        raise CannotLook(f"no cluster {names[found.index(None)]} in namespace {namespace}{listed}")
    return [each for each in found if each]


def _listed(client: Client, resource: Resource, namespace: str) -> Sequence[Json] | None:
    """The clusters of a kind; None where the API server does not know it. Raises CannotLook."""
    try:
        found = [item.decode() for item in client.list_page(resource, namespace).items]
    except NotFound:
        return None
    except ApiError as error:
        raise CannotLook(f"refused by the API server: {error.message}") from error
    except TransportError as error:
        raise CannotLook(str(error)) from error
    # items of a list need not have a kind
    return [each | {"kind": resource.kind} for each in found]


def _named(there: Sequence[Json], name: str) -> Json | None:
    """The cluster that a user names, a TidbCluster where both kinds have one."""
    return next((each for each in there if name in (each["metadata"]["name"], _called(each))), None)


def _called(cluster: Json) -> str:
    return f"{'dc' if cluster['kind'] == DM_CLUSTERS.kind else 'tc'}/{cluster['metadata']['name']}"


def _logs(client: Client, facts: Facts) -> Mapping[tuple[str, str], str]:
    """The last lines of ended containers."""
    found: dict[tuple[str, str], str] = {}
    for pod in facts.pods:
        name = pod["metadata"]["name"]
        for container, _ in ended(pod):
            query = urlencode({"container": container.name, "previous": "true", "tailLines": _LINES})
            try:
                answer = client.request("GET", f"{PODS.path(facts.namespace, name, 'log')}?{query}", accept="*/*")
            except (ApiError, TransportError):
                continue
            found[name, container.name] = answer.body.decode("utf-8", "replace")
    return found


def _certificates(client: Client, facts: Facts, unread: dict[Resource, str]) -> Mapping[str, Finding]:
    """The state of the certificate Secrets; empty if the spec is invalid."""
    tc = facts.valid
    if tc is None:
        return {}
    wanted = needs(tc)
    try:
        secrets = {name: client.find(SECRETS, name, facts.namespace) for name in wanted}
    except (ApiError, TransportError) as error:
        unread[SECRETS] = error.message if isinstance(error, ApiError) else str(error)
        return {}
    data = {name: None if secret is None else secret_data(secret) for name, secret in secrets.items()}
    return inspect(tc, wanted, data)
