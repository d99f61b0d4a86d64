"""TidbCluster, pingcap.com/v1alpha1 (api/tidbcluster.fields)."""

from typing import Literal

from msgspec import field

from apis.cluster import Cluster, ClusterSpec, ClusterStatus, DeprecatedService
from apis.component_specs import (
    PDMSSpec,
    PDSpec,
    PumpSpec,
    TiCDCSpec,
    TiCISpec,
    TiDBSpec,
    TiFlashSpec,
    TiKVSpec,
    TiProxySpec,
)
from apis.component_statuses import (
    PDMSStatus,
    PDStatus,
    PumpStatus,
    TiCDCStatus,
    TiCIChangefeedStatus,
    TiCIStatus,
    TiDBStatus,
    TiFlashStatus,
    TiKVStatus,
    TiProxyStatus,
)
from apis.shared import Model, TidbClusterRef


class HelperSpec(Model, kw_only=True):
    """`spec.helper`: the image of sidecars and init containers (objects.md 3.2)."""

    image: str | None = None
    image_pull_policy: str | None = None


class TidbClusterSpec(ClusterSpec, kw_only=True):
    """`spec`: what the user wants, for the cluster and for each component; an absent component does not run."""

    service_account: str = ""
    pd: PDSpec | None = None
    pdms: list[PDMSSpec] = []
    tidb: TiDBSpec | None = None
    tikv: TiKVSpec | None = None
    tiflash: TiFlashSpec | None = None
    ticdc: TiCDCSpec | None = None
    tici: TiCISpec | None = None
    tiproxy: TiProxySpec | None = None
    pump: PumpSpec | None = None
    helper: HelperSpec | None = None
    recovery_mode: bool = False
    enable_pvc_replace: bool | None = field(name="enablePVCReplace", default=None)
    services: list[DeprecatedService] = []
    enable_dynamic_configuration: bool | None = None
    cluster_domain: str = ""
    across_k8s: bool = field(name="acrossK8s", default=False)
    cluster: TidbClusterRef | None = None
    pd_addresses: list[str] = []
    start_script_version: Literal["", "v1", "v2"] = ""
    start_script_v2_feature_flags: list[str] = []


class TidbClusterStatus(ClusterStatus, kw_only=True):
    """`status`: the operator's last observation. Only the records of failover must be remembered; all else can be
    observed again."""

    cluster_id: str = field(name="clusterID", default="")
    pd: PDStatus = field(default_factory=PDStatus)
    pdms: dict[str, PDMSStatus] = {}
    tikv: TiKVStatus = field(default_factory=TiKVStatus)
    tidb: TiDBStatus = field(default_factory=TiDBStatus)
    pump: PumpStatus = field(default_factory=PumpStatus)
    tiflash: TiFlashStatus = field(default_factory=TiFlashStatus)
    tiproxy: TiProxyStatus = field(default_factory=TiProxyStatus)
    ticdc: TiCDCStatus = field(default_factory=TiCDCStatus)
    # absent without full-text search, so that the status of other clusters stays as it is
    tici_meta: TiCIStatus | None = None
    tici_worker: TiCIStatus | None = None
    tici: TiCIChangefeedStatus | None = None


class TidbCluster(Cluster, kw_only=True):
    """A TiDB cluster: what the user wants, and what the operator last saw."""

    kind: str = "TidbCluster"
    spec: TidbClusterSpec
    status: TidbClusterStatus = field(default_factory=TidbClusterStatus)
