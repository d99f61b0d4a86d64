"""The stage `clusters`: which clusters are there, and what Prometheus needs to scrape them (other-resources.md 3.2).

Secrets and ConfigMaps of users are read live: the operator may read them, but not list what it does not need. A
cluster that is not there is left out until it is; v1.6 does nothing at all then.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from apis.decoding import decode
from apis.dmcluster import DMCluster
from apis.identity import instance_name, tls_enabled
from apis.monitors import CLUSTER_SELECTOR, OPERATOR_NAMESPACE, TidbMonitor
from apis.problem import InvalidField
from apis.shared import TidbClusterRef
from apis.tidbcluster import TidbCluster
from apis.validation.monitors import labels_selected_by
from controllers.simple_kind import Reconcile
from controllers.target_cluster import find_cluster, where_seen
from controllers.tidbmonitor import provisions
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS, DM_CLUSTERS, SECRETS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.monitor import first, remote_write
from member.monitor.inputs import First, Inputs, Key, Target, asset
from member.monitor.naming import monitor_name
from member.naming import cluster_client_secret
from member.outcome import Done, Outcome, Waiting

_LOOK_AGAIN = 30.0
"""Seconds until what no event tells of is looked at again."""
_GIVEN_CONFIG = "prometheus-config"


class Missing(Exception):
    """Raised when what the spec refers to is not there; says what."""


@dataclass(slots=True)
class _Found:
    """What is being gathered in one reconcile."""

    ctx: Reconcile[TidbMonitor]
    absent: list[str] = field(default_factory=list)
    assets: dict[str, str] = field(default_factory=dict)
    read: dict[tuple[Resource, str, str], Json] = field(default_factory=dict)

    def object(self, resource: Resource, namespace: str, name: str, what: str) -> Json:
        """An object, read live once in a reconcile. Raises Missing, ApiError, TransportError."""
        key = resource, namespace, name
        if key not in self.read:
            found = self.ctx.owned.runtime.client.find(resource, name, namespace)
            if found is None:
                raise Missing(f"{resource.kind} {namespace}/{name} with {what} is not there; create it")
            self.read[key] = found.decode()
        return self.read[key]

    def value(self, resource: Resource, namespace: str, name: str, key: str, what: str) -> str:
        """The text of a key, as the object holds it. Raises as `object`."""
        data: dict[str, str] = self.object(resource, namespace, name, what).get("data") or {}
        if key not in data:
            raise Missing(f"{resource.kind} {namespace}/{name} with {what} has no key {key}; add it")
        return data[key]

    def certificates(self, namespace: str, name: str, cluster: str) -> None:
        """Make files of all keys of the Secret of a cluster. Raises as `object`."""
        tree = self.object(SECRETS, namespace, name, f"the client certificate of {cluster}")
        for key, value in (tree.get("data") or {}).items():
            self.assets[asset(namespace, name, key)] = value


def find_clusters(ctx: Reconcile[TidbMonitor]) -> Outcome:
    """Gather what the objects are made of; nothing is known where something is missing that nobody can go without.

    Raises ApiError, TransportError.
    """
    found = _Found(ctx)
    try:
        inputs = _inputs(found)
    except Missing as error:
        return Waiting("ReferenceMissing", str(error), _LOOK_AGAIN)
    is_some = bool(inputs.clusters or inputs.dm_clusters or OPERATOR_NAMESPACE in ctx.owner.metadata.annotations)
    ctx.found = inputs if is_some else None
    if found.absent:
        return Waiting("ClusterMissing", "; ".join(found.absent), _LOOK_AGAIN)
    if not is_some:
        return Waiting("ClusterMissing", "waiting for a TidbCluster with the labels that the monitor selects")
    return Done()


def _inputs(found: _Found) -> Inputs:
    monitor = found.ctx.model
    clusters = [tc for tc in _clusters(found) if tc is not None]
    dm_clusters = [_dm(found, each) for each in (monitor.spec.dm.clusters if monitor.spec.dm else ())]
    namespace = monitor.metadata.namespace
    for kind, name, key in remote_write.references(monitor):
        resource = SECRETS if kind == remote_write.SECRET else CONFIG_MAPS
        value = found.value(resource, namespace, name, key, "what remoteWrite refers to")
        found.assets[asset(namespace, name, key, kind)] = value if resource == SECRETS else provisions.in_base64(value)
    users = {
        (name, key): provisions.from_base64(found.value(SECRETS, namespace, name, key, "the user of remoteWrite"))
        for name, key in remote_write.users(monitor)
    }
    inputs = Inputs(
        clusters=[_target(found, tc) for tc in clusters],
        dm_clusters=[_target(found, each) for each in dm_clusters if each is not None],
        assets=found.assets,
        users=users,
        given_config=_given_config(found),
        operator_rules=provisions.rules(),
        operator_dashboard=provisions.dashboard(),
    )
    return _with_first_clusters(found, inputs, [first.of_tidb(tc) for tc in clusters if tc.spec.pd is not None])


def _clusters(found: _Found) -> Iterator[TidbCluster | None]:
    """Those that are named, then those that are selected; None for one that is not there."""
    named = found.ctx.model.spec.clusters
    for each in named:
        yield _cluster(found, each)
    jobs = {f"{each.namespace}-{each.name}" for each in named}
    for selected in selected_clusters(found.ctx):
        meta = selected.metadata
        # Prometheus refuses two jobs of one name
        if (prefix := f"{meta.namespace}-{meta.name}") not in jobs:
            jobs.add(prefix)
            yield _cluster(found, TidbClusterRef(namespace=meta.namespace, name=meta.name))


def selected_clusters(ctx: Reconcile[TidbMonitor]) -> list[Object]:
    """The cached TidbClusters that carry the labels which the monitor selects, by key."""
    selector = ctx.owner.metadata.annotations.get(CLUSTER_SELECTOR)
    if selector is None:
        return []
    namespace = "" if ctx.model.spec.cluster_scoped else ctx.namespace
    there = ctx.lister(TIDB_CLUSTERS).list(namespace, labels_selected_by(selector))
    return sorted((each for each in there if not each.metadata.deletion_timestamp), key=lambda each: each.key)


def _cluster(found: _Found, reference: TidbClusterRef) -> TidbCluster | None:
    there = find_cluster(found.ctx, reference.namespace, reference.name, "spec.clusters")
    if isinstance(there, Waiting):
        found.absent.append(there.message)
        return None
    return there


def _dm(found: _Found, reference: TidbClusterRef) -> DMCluster | None:
    there = found.ctx.referred(DM_CLUSTERS, reference.namespace, reference.name)
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


def _target(found: _Found, cluster: TidbCluster | DMCluster) -> Target:
    meta, secret = cluster.metadata, cluster_client_secret(cluster) if tls_enabled(cluster) else ""
    if secret:
        found.certificates(meta.namespace, secret, f"{cluster.kind} {meta.namespace}/{meta.name}")
    return Target(meta.namespace, meta.name, instance_name(cluster), secret)


def listed_dm_clusters(owner: Object) -> list[str]:
    """The keys of the DMClusters that a monitor names."""
    own, spec = owner.metadata.namespace, owner.decode().get("spec") or {}
    named = (spec.get("dm") or {}).get("clusters") or ()
    return [f"{each.get('namespace') or own}/{each.get('name')}" for each in named]


def _with_first_clusters(found: _Found, inputs: Inputs, there: Sequence[First]) -> Inputs:
    monitor = found.ctx.model
    dm_there = [first.of_dm(each) for each in inputs.dm_clusters]
    cached = found.ctx.cached(STATEFUL_SETS, monitor_name(monitor))
    pods = cached.decode() if cached is not None and found.ctx.controls(cached) else None
    told, told_dm = (first.told_of_tidb(pods), first.told_of_dm(pods)) if pods is not None else (None, None)
    return replace(
        inputs,
        first=next(iter(there), None),
        first_dm=next(iter(dm_there), None),
        running=_running(told, there, lambda key: _may_return(found, key)),
        running_dm=_running(told_dm, dm_there, _keys(monitor.spec.dm.clusters if monitor.spec.dm else ()).__contains__),
    )


def _running(told: First | None, there: Sequence[First], may_return: Callable[[Key], bool]) -> First | None:
    """The cluster that the pods were told of, as it is now; the first one where that is not wanted any more."""
    if told is None:
        return next(iter(there), None)
    same = next((each for each in there if each.key == told.key), None)
    return same or (told if may_return(told.key) else next(iter(there), None))


def _may_return(found: _Found, key: Key) -> bool:
    """Whether a TidbCluster that is not monitored is named, or would be selected if it came back."""
    ctx = found.ctx
    if key in _keys(ctx.model.spec.clusters):
        return True
    if CLUSTER_SELECTOR not in ctx.owner.metadata.annotations:
        return False
    there = ctx.lister(TIDB_CLUSTERS).get(*key)
    if there is None or there.metadata.deletion_timestamp:
        return True
    return key in {(each.metadata.namespace, each.metadata.name) for each in selected_clusters(ctx)}


def _keys(references: Iterable[TidbClusterRef]) -> set[Key]:
    return {(each.namespace, each.name) for each in references}


def _given_config(found: _Found) -> str | None:
    config = found.ctx.model.spec.prometheus.config
    reference = config.config_map_ref if config is not None else None
    if reference is None or not reference.name:
        return None
    namespace = reference.namespace or found.ctx.namespace
    return found.value(CONFIG_MAPS, namespace, reference.name, _GIVEN_CONFIG, "the configuration of Prometheus")
