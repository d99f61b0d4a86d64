"""TidbNGMonitoring, pingcap.com/v1alpha1 (api/tidbngmonitoring.fields)."""

from typing import Annotated

from msgspec import field

from apis.embedded import Condition, StatefulSetStatus
from apis.shared import (
    ComponentSpec,
    Config,
    Metadata,
    Model,
    PodSettings,
    StorageVolume,
    TidbClusterRef,
    crd_default,
)


class NGMonitoringSpec(ComponentSpec, kw_only=True):
    """The server; its settings override the same fields of the spec above it."""

    base_image: Annotated[str, crd_default("pingcap/ng-monitoring")] = "pingcap/ng-monitoring"
    storage_class_name: str | None = None
    storage_volumes: list[StorageVolume] = []
    retention_period: str = ""
    config: Config | None = None


class TidbNGMonitoringSpec(PodSettings, kw_only=True):
    """The cluster to watch, and the settings."""

    clusters: list[TidbClusterRef]
    paused: bool = False
    pv_reclaim_policy: Annotated[str | None, crd_default("Retain")] = "Retain"
    cluster_domain: str = ""
    ng_monitoring: NGMonitoringSpec = field(name="ngMonitoring")
    prefer_ipv6: bool = field(name="preferIPv6", default=False)


class NGMonitoringStatus(Model, kw_only=True):
    """The status of the server."""

    synced: bool = False
    phase: str = ""
    stateful_set: StatefulSetStatus | None = None


class TidbNGMonitoringStatus(Model, kw_only=True):
    """`status` (other-resources.md 5); the conditions are ours."""

    conditions: list[Condition] = []
    ng_monitoring: NGMonitoringStatus = field(name="ngMonitoring", default_factory=NGMonitoringStatus)


class TidbNGMonitoring(Model, kw_only=True):
    """Continuous profiling and TopSQL for a TidbCluster."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "TidbNGMonitoring"
    metadata: Metadata
    spec: TidbNGMonitoringSpec
    status: TidbNGMonitoringStatus = field(default_factory=TidbNGMonitoringStatus)
