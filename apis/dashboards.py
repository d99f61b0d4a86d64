"""TidbDashboard, pingcap.com/v1alpha1 (api/tidbdashboard.fields)."""

from typing import Annotated

from msgspec import field

from apis.embedded import Condition, StatefulSetStatus
from apis.shared import ComponentSpec, Metadata, Model, ServiceSpec, StorageVolume, TidbClusterRef, crd_default


class TidbDashboardSpec(ComponentSpec, kw_only=True):
    """The cluster to show, and the settings."""

    clusters: list[TidbClusterRef]
    pv_reclaim_policy: Annotated[str | None, crd_default("Retain")] = "Retain"
    base_image: Annotated[str, crd_default("pingcap/tidb-dashboard")] = "pingcap/tidb-dashboard"
    storage_class_name: str | None = None
    storage_volumes: list[StorageVolume] = []
    path_prefix: str | None = None
    service: ServiceSpec = field(default_factory=ServiceSpec)
    telemetry: bool | None = None
    experimental: bool | None = None
    prefer_ipv6: bool = field(name="preferIPv6", default=False)
    listen_on_localhost_only: bool | None = None
    disable_key_visualizer: bool | None = None


class TidbDashboardStatus(Model, kw_only=True):
    """`status` (other-resources.md 4); the conditions are ours."""

    conditions: list[Condition] = []
    synced: bool = False
    phase: str = ""
    stateful_set: StatefulSetStatus | None = None


class TidbDashboard(Model, kw_only=True):
    """TiDB Dashboard for a TidbCluster, in a separate pod."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "TidbDashboard"
    metadata: Metadata
    spec: TidbDashboardSpec
    status: TidbDashboardStatus = field(default_factory=TidbDashboardStatus)
