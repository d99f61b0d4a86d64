"""Names and labels of a monitor's objects (other-resources.md 3.3), and the clusters that they are for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from apis.monitors import TidbMonitor
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.labels import COMPONENT, INSTANCE, MANAGED_BY, NAME, TIDB_CLUSTER, TIDB_OPERATOR

APP = "app.kubernetes.io/app"
MONITOR = "monitor"
FINALIZER = "tidb.pingcap.com/monitor-protection"
VOLUME = "tidbmonitor"
"""The claim template, and the volume with the data."""


def _of_shard(name: str, shard: int) -> str:
    return f"{name}-shard-{shard}" if shard else name


def monitor_name(monitor: TidbMonitor, shard: int = 0) -> str:
    """The name of a shard's StatefulSet; for the first shard also of the ConfigMap, the Secret and the RBAC objects."""
    return _of_shard(f"{monitor.metadata.name}-monitor", shard)


def service_name(monitor: TidbMonitor, of: str, shard: int = 0) -> str:
    """The Service of a shard for `prometheus`, `monitor-reloader` or `grafana`."""
    return _of_shard(f"{monitor.metadata.name}-{of}", shard)


def grafana_config_name(monitor: TidbMonitor) -> str:
    """The ConfigMap with Grafana's provisioning."""
    return f"{monitor_name(monitor)}-grafana"


def operator_config_name(monitor: TidbMonitor) -> str:
    """The ConfigMap with rules and dashboard of the operator itself. v1.6 does not have it."""
    return f"{monitor_name(monitor)}-operator"


def assets_name(monitor: TidbMonitor) -> str:
    """The Secret with certificates and passwords for Prometheus."""
    return f"tidbmonitor-{monitor.metadata.name}-tls-assets"


def cluster_role_name(namespace: str, name: str) -> str:
    """The ClusterRole and binding of a monitor. Names of cluster-scoped objects contain the namespace."""
    return f"{namespace}-{name}-monitor"


def base_labels(monitor: TidbMonitor, shard: int = 0) -> dict[str, str]:
    """The labels of a shard's objects, which are also the selector of its StatefulSet."""
    instance = _of_shard(monitor.metadata.name, shard)
    return {NAME: TIDB_CLUSTER, MANAGED_BY: TIDB_OPERATOR, INSTANCE: instance, COMPONENT: MONITOR}


def owner_reference(monitor: TidbMonitor) -> Json:
    """The reference that makes the monitor the controller of an object."""
    return {
        "apiVersion": monitor.api_version,
        "kind": monitor.kind,
        "name": monitor.metadata.name,
        "uid": monitor.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def object_meta(
    monitor: TidbMonitor,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """Metadata of an object that the monitor owns; by default with the labels of its first shard."""
    return {
        "name": name,
        "namespace": monitor.metadata.namespace,
        "labels": dict(labels or base_labels(monitor)),
        "annotations": dict(annotations or {}),
        "ownerReferences": [owner_reference(monitor)],
    }


Key = tuple[str, str]
"""Namespace and name of a cluster."""
TIDB_INITIALIZER = "monitor-initializer"
DM_INITIALIZER = "dm-initializer"


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster whose pods Prometheus scrapes.

    `instance` is the label of its pods; `secret` has the client certificate for them, and is empty without TLS.
    `beyond_v16` are its components that v1.6 does not scrape; others have a job whether or not the cluster has them.
    `is_kept` is True if its owner has not consented, and the monitor only continues as before.
    """

    namespace: str
    name: str
    instance: str
    secret: str = ""
    beyond_v16: frozenset[str] = frozenset()
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class First:
    """The cluster after which rules and dashboards are named.

    `timezone` and `has_binlog` (`true` or `false`) are a TidbCluster's.
    """

    namespace: str
    name: str
    timezone: str = ""
    has_binlog: str = ""

    @property
    def key(self) -> Key:
        """Namespace and name of the cluster."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of one reconcile.

    `first` is the first TidbCluster with its own PD, `first_dm` the first DMCluster; `running` and `running_dm` are the
    ones with which the pods started while these are still wanted, otherwise the same. `assets` are files for Prometheus
    (certificates and passwords), in base64 by name. `users` are names for remote write, by Secret and key.
    `given_config` replaces the whole generated configuration. `granted` are the targets in other namespaces whose
    owners have consented to what they bring.
    """

    clusters: Sequence[Target]
    dm_clusters: Sequence[Target] = ()
    first: First | None = None
    first_dm: First | None = None
    running: First | None = None
    running_dm: First | None = None
    assets: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[tuple[str, str], str] = field(default_factory=dict)
    given_config: str | None = None
    granted: frozenset[str] = frozenset()
    operator_rules: str = ""
    operator_dashboard: str = ""

    def as_running(self) -> "Inputs":
        """These inputs with the first clusters with which the pods were started."""
        return replace(self, first=self.running, first_dm=self.running_dm)


ASSETS = "/var/lib/cluster-assets-tls"
"""The directory of `assets` in Prometheus' container."""


def asset(namespace: str, name: str, key: str, kind: str = "secret") -> str:
    """The file name for a key of a Secret or ConfigMap."""
    return f"{kind}_{namespace}_{name}_{key}"


def namespace_of_asset(file: str) -> str:
    """The namespace of the Secret or ConfigMap that a file comes from; empty for a name of another form."""
    _, namespace, *names = [*file.split("_"), ""]
    return namespace if names else ""


def asset_path(namespace: str, name: str, key: str, kind: str = "secret") -> str:
    """The path of an asset in Prometheus' container."""
    return f"{ASSETS}/{asset(namespace, name, key, kind)}"


def first_of(tc: TidbCluster) -> First:
    """What the initializer needs to know of a TidbCluster."""
    has_binlog = tc.spec.tidb is not None and bool(tc.spec.tidb.binlog_enabled)
    return First(tc.metadata.namespace, tc.metadata.name, tc.spec.timezone or "UTC", str(has_binlog).lower())


def first_dm_of(cluster: Target) -> First:
    """What the initializer needs to know of a DMCluster."""
    return First(cluster.namespace, cluster.name)


def first_in_pods(stateful_set: Json) -> First | None:
    """The first TidbCluster in the environment of a StatefulSet's pods; None if they have none."""
    env = _env(stateful_set, TIDB_INITIALIZER)
    namespace, name = env.get("TIDB_CLUSTER_NAMESPACE"), env.get("TIDB_CLUSTER_NAME")
    if not namespace or not name:
        return None
    return First(namespace, name, env.get("TZ", ""), env.get("TIDB_ENABLE_BINLOG", ""))


def first_dm_in_pods(stateful_set: Json) -> First | None:
    """The first DMCluster in the environment of a StatefulSet's pods; None if they have none."""
    env = _env(stateful_set, DM_INITIALIZER)
    namespace, name = env.get("DM_CLUSTER_NAMESPACE"), env.get("DM_CLUSTER_NAME")
    return First(namespace, name) if namespace and name else None


def _env(stateful_set: Json, name: str) -> dict[str, str]:
    containers = stateful_set["spec"]["template"]["spec"].get("initContainers") or ()
    env = next((container.get("env") or () for container in containers if container["name"] == name), ())
    return {each["name"]: str(each.get("value") or "") for each in env}
