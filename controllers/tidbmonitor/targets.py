"""The stage `clusters`: which clusters are there, and what Prometheus needs to scrape them (other-resources.md 3.2).

Secrets and ConfigMaps of users are read live: the operator may read them, but not list what it does not need. A
cluster that does not exist is left out until it does; v1.6 does nothing at all then. One of another namespace is left
out until its owner consents, unless it was monitored before (`earlier`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from apis.accessor import components
from apis.consent import Permission, how_to_consent
from apis.decoding import decode
from apis.dmcluster import DMCluster
from apis.identity import instance_name, tls_enabled
from apis.monitors import CLUSTER_SELECTOR, OPERATOR_NAMESPACE, TidbMonitor
from apis.problem import InvalidField
from apis.shared import TidbClusterRef
from apis.tidbcluster import TidbCluster
from apis.validation.monitors import labels_selected_by
from controllers.consent import apply_data, granted_name, marks, permission
from controllers.simple_kind import Reconcile
from controllers.target_cluster import CERTIFICATE_KEYS, find_cluster, where_seen
from controllers.tidbmonitor import provisions, rights
from controllers.tidbmonitor.earlier import Earlier, certificate_files
from kube.objects import Object
from kube.resources import CONFIG_MAPS, DM_CLUSTERS, SECRETS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.monitor import configuration
from member.monitor.naming import (
    First,
    Inputs,
    Key,
    Target,
    asset,
    assets_name,
    first_dm_in_pods,
    first_dm_of,
    first_in_pods,
    first_of,
    monitor_name,
    namespace_of_asset,
)
from member.naming import cluster_client_secret
from member.outcome import Done, Outcome, Waiting

_LOOK_AGAIN = 30.0
"""Seconds until the operator reads references again that it does not watch."""
_GIVEN_CONFIG = "prometheus-config"
_MOST = 20
"""The maximum number of references in a condition."""


class Missing(Exception):
    """Raised when what the spec refers to does not exist, or may not be referred to."""

    def __init__(self, message: str, reason: str = "ReferenceMissing") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class _Found:
    """What is being gathered in one reconcile.

    `granted` are the targets in other namespaces that the monitor may refer to, `refused` those that it may not, each
    with what its owner can do; nothing is said of a cluster that the monitor does not name. `marks` are the targets on
    whose grants the monitor was made.
    """

    ctx: Reconcile[TidbMonitor]
    marks: frozenset[str]
    absent: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    granted: set[str] = field(default_factory=set)
    assets: dict[str, str] = field(default_factory=dict)
    read: dict[tuple[Resource, str, str], Object | None] = field(default_factory=dict)
    _earlier: Earlier | None = None

    @property
    def earlier(self) -> Earlier:
        """What the monitor has already; decoded only where something of another namespace is refused."""
        if self._earlier is None:
            self._earlier = Earlier.of(self.ctx)
        return self._earlier

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """An object, read live once in a reconcile. Raises ApiError, TransportError."""
        key = resource, namespace, name
        if key not in self.read:
            self.read[key] = self._live(resource, namespace, name)
        return self.read[key]

    def data(self, resource: Resource, namespace: str, name: str, what: str) -> dict[str, str]:
        """What an object holds. Raises Missing, ApiError, TransportError."""
        found = self.find(resource, namespace, name)
        if found is None:
            raise Missing(f"{resource.kind} {namespace}/{name} with {what} does not exist; create it")
        data: dict[str, str] = found.decode().get("data") or {}
        return data

    def _live(self, resource: Resource, namespace: str, name: str) -> Object | None:
        if resource == SECRETS:
            return self.ctx.secret(name, namespace)
        return self.ctx.owned.runtime.client.find(resource, name, namespace)

    def value(self, resource: Resource, namespace: str, name: str, key: str, what: str) -> str:
        """The text of a key, as the object holds it. Raises like `data`."""
        data = self.data(resource, namespace, name, what)
        if key not in data:
            raise Missing(f"{resource.kind} {namespace}/{name} with {what} has no key {key}; add it")
        return data[key]

    def certificates(self, namespace: str, name: str, cluster: str) -> None:
        """Add the client certificate in the Secret of a cluster to the monitor's files. Raises like `data`."""
        data = self.data(SECRETS, namespace, name, f"the client certificate of {cluster}")
        self.assets |= {asset(namespace, name, key): data[key] for key in CERTIFICATE_KEYS if key in data}

    def may_refer(self, resource: Resource, target: Object | None, namespace: str, name: str) -> bool:
        """True if the monitor may refer to an object. Notes grants and refusals."""
        permitted, key = permission(self.ctx, target, namespace), granted_name(resource.kind, namespace, name)
        if permitted is Permission.NONE:
            self.refused[key] = how_to_consent(self.ctx.namespace, resource.kind, namespace, name)
        if permitted is Permission.GRANTED:
            self.granted.add(key)
        return permitted is not Permission.NONE

    def kept(self, kind: str, namespace: str, name: str) -> Target | None:
        """The target of a cluster without consent that is monitored already, with its certificate; else None."""
        target = self.earlier.target(kind, namespace, name)
        if target is not None:
            self.assets |= self.earlier.certificate(namespace, target.secret)
        return target


def find_clusters(ctx: Reconcile[TidbMonitor]) -> Outcome:
    """Gather the inputs of the monitor's objects; no inputs are known while a required one is missing.

    Raises ApiError, TransportError.
    """
    found = _Found(ctx, marks(ctx.cached(CONFIG_MAPS, monitor_name(ctx.model))))
    refused_rights = rights.refuse_cluster_scoped(ctx)
    try:
        inputs = _inputs(found)
    except Missing as error:
        _remove_stale_certificates(found)
        return Waiting(error.reason, str(error), _LOOK_AGAIN)
    named = bool(inputs.clusters or inputs.dm_clusters or OPERATOR_NAMESPACE in ctx.owner.metadata.annotations)
    # remove clusters whose consent was withdrawn, even if no other cluster is monitored
    ctx.found = inputs if named or found.marks else None
    if ctx.found is None:
        _remove_stale_certificates(found)
    refused = [*refused_rights, *filter(None, found.refused.values())]
    if refused:
        return Waiting("ReferenceNotAllowed", _listed([*refused, *found.absent]), _LOOK_AGAIN)
    if found.absent:
        return Waiting("ClusterMissing", _listed(found.absent), _LOOK_AGAIN)
    if not named:
        return Waiting("ClusterMissing", "waiting for a TidbCluster with the labels that the monitor selects")
    return Done()


def _listed(sentences: Sequence[str]) -> str:
    """The sentences in one message; those above the maximum are only counted."""
    more = [f"and {len(sentences) - _MOST} more"] if len(sentences) > _MOST else []
    return "; ".join([*sentences[:_MOST], *more])


def _remove_stale_certificates(found: _Found) -> None:
    """Remove certificates that the monitor may no longer use, even while other inputs are missing.

    They belong to clusters that have withdrawn their consent, and to clusters of other namespaces that the monitor no
    longer names. Raises like `Reconcile.apply`.
    """
    withdrawn = tuple(map(certificate_files, found.marks & found.refused.keys()))
    named = tuple(map(certificate_files, _named_clusters(found.ctx)))
    foreign = (file for file in found.earlier.assets if namespace_of_asset(file) not in ("", found.ctx.namespace))
    stale = {file for file in foreign if file.startswith(withdrawn) or not file.startswith(named)}
    if stale:
        kept = {file: value for file, value in found.earlier.assets.items() if file not in stale}
        apply_data(found.ctx, SECRETS, {"metadata": {"name": assets_name(found.ctx.model)}, "data": kept}, ())


def _named_clusters(ctx: Reconcile[TidbMonitor]) -> Iterator[str]:
    """The clusters that the monitor names or selects, in the form of marks."""
    spec = ctx.model.spec
    for cluster in spec.clusters:
        yield granted_name(TIDB_CLUSTERS.kind, cluster.namespace, cluster.name)
    for reference in spec.dm.clusters if spec.dm else ():
        yield granted_name(DM_CLUSTERS.kind, reference.namespace, reference.name)
    for selected in selected_clusters(ctx):
        yield granted_name(TIDB_CLUSTERS.kind, selected.metadata.namespace, selected.metadata.name)


def _inputs(found: _Found) -> Inputs:
    monitor = found.ctx.model
    clusters = [cluster for cluster in _clusters(found) if cluster is not None]
    dm_clusters = [_dm(found, reference) for reference in (monitor.spec.dm.clusters if monitor.spec.dm else ())]
    namespace = monitor.metadata.namespace
    for kind, name, key in configuration.references(monitor):
        resource = SECRETS if kind == configuration.SECRET else CONFIG_MAPS
        value = found.value(resource, namespace, name, key, "what remoteWrite refers to")
        found.assets[asset(namespace, name, key, kind)] = value if resource == SECRETS else provisions.in_base64(value)
    users = {
        (name, key): provisions.from_base64(found.value(SECRETS, namespace, name, key, "the user of remoteWrite"))
        for name, key in configuration.users(monitor)
    }
    inputs = Inputs(
        clusters=[_target(found, cluster) for cluster in clusters],
        dm_clusters=[_target(found, cluster) for cluster in dm_clusters if cluster is not None],
        assets=found.assets,
        users=users,
        given_config=_given_config(found),
        operator_rules=provisions.rules(),
        operator_dashboard=provisions.dashboard(),
    )
    # a mark stays while the reference is named, so that its objects never count as created by v1.6
    inputs = replace(inputs, granted=frozenset(found.granted) | (found.marks & found.refused.keys()))
    known = [cluster for cluster in clusters if isinstance(cluster, TidbCluster)]
    return _with_first_clusters(found, inputs, [first_of(tc) for tc in known if tc.spec.pd is not None])


def _clusters(found: _Found) -> Iterator[TidbCluster | Target | None]:
    """The clusters that the spec names, then the selected ones; None for a missing one."""
    named = found.ctx.model.spec.clusters
    for reference in named:
        yield _cluster(found, reference)
    jobs = {f"{reference.namespace}-{reference.name}" for reference in named}
    for selected in selected_clusters(found.ctx):
        meta = selected.metadata
        # Prometheus refuses two jobs with the same name
        if (prefix := f"{meta.namespace}-{meta.name}") not in jobs:
            jobs.add(prefix)
            yield _cluster(found, TidbClusterRef(namespace=meta.namespace, name=meta.name))
            if (key := granted_name(TIDB_CLUSTERS.kind, meta.namespace, meta.name)) in found.refused:
                # a condition must not reveal the clusters of other namespaces
                found.refused[key] = ""


def selected_clusters(ctx: Reconcile[TidbMonitor]) -> list[Object]:
    """The cached TidbClusters that carry the labels which the monitor selects, by key."""
    selector = ctx.owner.metadata.annotations.get(CLUSTER_SELECTOR)
    if selector is None:
        return []
    namespace = "" if ctx.model.spec.cluster_scoped else ctx.namespace
    there = ctx.lister(TIDB_CLUSTERS).list(namespace, labels_selected_by(selector))
    return sorted((obj for obj in there if not obj.metadata.deletion_timestamp), key=lambda each: each.key)


def _cluster(found: _Found, reference: TidbClusterRef) -> TidbCluster | Target | None:
    target = found.ctx.referred(TIDB_CLUSTERS, reference.namespace, reference.name)
    if not found.may_refer(TIDB_CLUSTERS, target, reference.namespace, reference.name):
        return found.kept(TIDB_CLUSTERS.kind, reference.namespace, reference.name)
    there = find_cluster(found.ctx, reference.namespace, reference.name, "spec.clusters")
    if isinstance(there, Waiting):
        found.absent.append(there.message)
        return None
    return there


def _dm(found: _Found, reference: TidbClusterRef) -> DMCluster | Target | None:
    there = found.ctx.referred(DM_CLUSTERS, reference.namespace, reference.name)
    if not found.may_refer(DM_CLUSTERS, there, reference.namespace, reference.name):
        return found.kept(DM_CLUSTERS.kind, reference.namespace, reference.name)
    where = f"waiting for DMCluster {reference.namespace}/{reference.name}"
    if there is None:
        what = f"{where}, which does not exist{where_seen(found.ctx, reference.namespace)}"
        found.absent.append(f"{what}; create it, or correct spec.dm.clusters")
        return None
    try:
        return decode(there.decode(), DMCluster)
    except InvalidField as error:
        found.absent.append(f"{where} to be valid: {error}")
        return None


def _target(found: _Found, cluster: TidbCluster | DMCluster | Target) -> Target:
    if isinstance(cluster, Target):
        return cluster
    meta, secret = cluster.metadata, cluster_client_secret(cluster) if tls_enabled(cluster) else ""
    if secret:
        found.certificates(meta.namespace, secret, f"{cluster.kind} {meta.namespace}/{meta.name}")
    more = frozenset(own.name for own in components(cluster) if not own.type.always_scraped)
    return Target(meta.namespace, meta.name, instance_name(cluster), secret, more)


def listed_dm_clusters(owner: Object) -> list[str]:
    """The keys of the DMClusters that a monitor names."""
    own, spec = owner.metadata.namespace, owner.decode().get("spec") or {}
    named = (spec.get("dm") or {}).get("clusters") or ()
    return [f"{each.get('namespace') or own}/{each.get('name')}" for each in named]


def _with_first_clusters(found: _Found, inputs: Inputs, there: Sequence[First]) -> Inputs:
    monitor = found.ctx.model
    dm_there = [first_dm_of(cluster) for cluster in inputs.dm_clusters]
    cached = found.ctx.cached(STATEFUL_SETS, monitor_name(monitor))
    pods = cached.decode() if cached is not None and found.ctx.controls(cached) else None
    running, told_dm = (first_in_pods(pods), first_dm_in_pods(pods)) if pods is not None else (None, None)
    return replace(
        inputs,
        first=next(iter(there), None),
        first_dm=next(iter(dm_there), None),
        running=_running(running, there, lambda key: _may_return(found, key)),
        running_dm=_running(told_dm, dm_there, _keys(monitor.spec.dm.clusters if monitor.spec.dm else ()).__contains__),
    )


def _running(running: First | None, there: Sequence[First], may_return: Callable[[Key], bool]) -> First | None:
    """The cluster that the pods were started with, in its present form; the first one if that is no longer wanted."""
    if running is None:
        return next(iter(there), None)
    same = next((first for first in there if first.key == running.key), None)
    return same or (running if may_return(running.key) else next(iter(there), None))


def _may_return(found: _Found, key: Key) -> bool:
    """True if a TidbCluster that is not monitored now is named, or would be selected if it were recreated."""
    ctx = found.ctx
    if key in _keys(ctx.model.spec.clusters):
        return True
    if CLUSTER_SELECTOR not in ctx.owner.metadata.annotations:
        return False
    there = ctx.lister(TIDB_CLUSTERS).get(*key)
    if there is None or there.metadata.deletion_timestamp:
        return True
    return key in {(cluster.metadata.namespace, cluster.metadata.name) for cluster in selected_clusters(ctx)}


def _keys(references: Iterable[TidbClusterRef]) -> set[Key]:
    return {(reference.namespace, reference.name) for reference in references}


def _given_config(found: _Found) -> str | None:
    config = found.ctx.model.spec.prometheus.config
    reference = config.config_map_ref if config is not None else None
    if reference is None or not reference.name:
        return None
    namespace = reference.namespace or found.ctx.namespace
    target = found.find(CONFIG_MAPS, namespace, reference.name) if namespace != found.ctx.namespace else None
    if not found.may_refer(CONFIG_MAPS, target, namespace, reference.name):
        return _refused_config(found, granted_name(CONFIG_MAPS.kind, namespace, reference.name))
    return found.value(CONFIG_MAPS, namespace, reference.name, _GIVEN_CONFIG, "the configuration of Prometheus")


def _refused_config(found: _Found, key: str) -> str | None:
    """The configuration that runs; None, to have one generated, if the consent was withdrawn. Raises Missing."""
    if key in found.marks:
        return None
    if found.earlier.config is None:
        raise Missing(found.refused[key], "ReferenceNotAllowed")
    return found.earlier.config
