"""Names and labels of a monitor's objects (other-resources.md 3.3)."""

from collections.abc import Mapping

from apis.monitors import TidbMonitor
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
