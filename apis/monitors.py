"""TidbMonitor, pingcap.com/v1alpha1 (api/tidbmonitor.fields)."""

from typing import Annotated

from msgspec import field, structs

from apis.embedded import Condition, Container, LocalReference, PodSecurity, StatefulSetStatus, Toleration, Volume
from apis.monitor_parts import (
    GrafanaSpec,
    InitializerSpec,
    MonitorContainer,
    PrometheusSpec,
    ReloaderSpec,
    ThanosSpec,
)
from apis.shared import Int32, Metadata, Model, TidbClusterRef, crd_default

CLUSTER_SELECTOR = "tidb.pingcap.com/cluster-selector"
"""On a TidbMonitor: the labels of further TidbClusters to monitor, e.g. `team=a,stage=prod`, or `*` for all, in its
namespace or, if it is clusterScoped, in every namespace. v1.6 ignores it."""
OPERATOR_NAMESPACE = "tidb.pingcap.com/operator-namespace"
"""On a TidbMonitor: where the operator runs that is to be monitored, too, with its alerts. Not known to v1.6."""


class DMMonitorSpec(Model, kw_only=True):
    """The DMClusters to monitor, and the source of their rules and dashboards."""

    clusters: list[TidbClusterRef]
    initializer: InitializerSpec


class TidbMonitorSpec(Model, kw_only=True):
    """The clusters to monitor, and the tools."""

    clusters: list[TidbClusterRef] = []
    prometheus: PrometheusSpec
    grafana: GrafanaSpec | None = None
    reloader: ReloaderSpec
    initializer: InitializerSpec
    dm: DMMonitorSpec | None = None
    thanos: ThanosSpec | None = None
    prometheus_reloader: MonitorContainer | None = None
    pv_reclaim_policy: Annotated[str | None, crd_default("Retain")] = "Retain"
    image_pull_policy: str = ""
    image_pull_secrets: list[LocalReference] = []
    persistent: bool = False
    storage_class_name: str | None = None
    storage: str = ""
    node_selector: dict[str, str] = {}
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    tolerations: list[Toleration] = []
    kube_prometheus_url: str | None = field(name="kubePrometheusURL", default=None)
    alertmanager_url: str | None = field(name="alertmanagerURL", default=None)
    alert_manager_rules_version: str | None = None
    additional_containers: list[Container] = []
    cluster_scoped: bool = False
    external_labels: dict[str, str] = {}
    replica_external_label_name: str | None = None
    replicas: Int32 | None = None
    shards: Int32 | None = None
    additional_volumes: list[Volume] = []
    pod_security_context: PodSecurity | None = None
    enable_alert_rules: bool = False
    timezone: str = ""
    prefer_ipv6: bool = field(name="preferIPv6", default=False)
    automount_service_account_token: bool | None = None


class DeploymentStorageStatus(Model, kw_only=True):
    """The volume that is being taken over from the Deployment of an older operator."""

    pv_name: str = ""


class TidbMonitorStatus(Model, kw_only=True):
    """`status`: the StatefulSet of the first shard; the conditions are ours."""

    deployment_storage_status: DeploymentStorageStatus | None = None
    stateful_set: StatefulSetStatus | None = None
    conditions: list[Condition] = []


class TidbMonitor(Model, kw_only=True):
    """Prometheus and Grafana for TiDB clusters."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "TidbMonitor"
    metadata: Metadata
    spec: TidbMonitorSpec
    status: TidbMonitorStatus = field(default_factory=TidbMonitorStatus)


def with_monitor_defaults(monitor: TidbMonitor) -> TidbMonitor:
    """A TidbMonitor with every default in its spec (defaults-and-validation.md 2.4); `monitor` is unchanged."""
    spec, namespace = monitor.spec, monitor.metadata.namespace
    dm = spec.dm
    filled = structs.replace(
        spec,
        clusters=_in(spec.clusters, namespace),
        dm=dm and DMMonitorSpec(clusters=_in(dm.clusters, namespace), initializer=dm.initializer),
        pv_reclaim_policy=spec.pv_reclaim_policy or "Retain",
        timezone=spec.timezone or "UTC",
        replicas=1 if spec.replicas is None else spec.replicas,
        shards=max(spec.shards or 1, 1),
    )
    return structs.replace(monitor, spec=filled)


def _in(references: list[TidbClusterRef], namespace: str) -> list[TidbClusterRef]:
    return [structs.replace(reference, namespace=reference.namespace or namespace) for reference in references]
