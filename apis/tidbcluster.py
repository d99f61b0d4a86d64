"""TidbCluster, pingcap.com/v1alpha1 (api/tidbcluster.fields)."""

from typing import Annotated, Literal

from msgspec import Meta, field

from apis.component_specs import (
    DiscoverySpec,
    PDMSSpec,
    PDSpec,
    PumpSpec,
    TiCDCSpec,
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
    TiDBStatus,
    TiFlashStatus,
    TiKVStatus,
    TiProxyStatus,
)
from apis.shared import (
    Json,
    Metadata,
    Model,
    NullableTime,
    SuspendAction,
    TidbClusterRef,
    TLSCluster,
    TopologySpreadConstraints,
    crd_default,
)


class HelperSpec(Model, kw_only=True):
    """`spec.helper`: the image of sidecars and init containers (objects.md 3.2)."""

    image: str | None = None
    image_pull_policy: str | None = None


class DeprecatedService(Model, kw_only=True):
    """An entry of `spec.services`: the type of a component's Service. Deprecated, still read."""

    name: str = ""
    type: str = ""


class TidbClusterSpec(Model, kw_only=True):
    """`spec`: what the user wants, for the cluster and for each component; an absent component does not run."""

    discovery: DiscoverySpec | None = None
    service_account: str = ""
    pd: PDSpec | None = None
    pdms: list[PDMSSpec] = []
    tidb: TiDBSpec | None = None
    tikv: TiKVSpec | None = None
    tiflash: TiFlashSpec | None = None
    ticdc: TiCDCSpec | None = None
    tiproxy: TiProxySpec | None = None
    pump: PumpSpec | None = None
    helper: HelperSpec | None = None
    paused: bool = False
    recovery_mode: bool = False
    version: str = ""
    scheduler_name: str = ""
    pv_reclaim_policy: Annotated[str | None, crd_default("Retain")] = "Retain"
    image_pull_policy: Annotated[str, crd_default("IfNotPresent")] = "IfNotPresent"
    image_pull_secrets: list[Json] = []
    config_update_strategy: str = ""
    enable_pv_reclaim: bool | None = field(name="enablePVReclaim", default=None)
    enable_pvc_replace: bool | None = field(name="enablePVCReplace", default=None)
    tls_cluster: TLSCluster | None = None
    host_network: bool | None = None
    affinity: Json | None = None
    priority_class_name: str | None = None
    node_selector: dict[str, str] = {}
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    tolerations: list[Json] = []
    dns_config: Json | None = None
    dns_policy: str = ""
    timezone: str = ""
    services: list[DeprecatedService] = []
    enable_dynamic_configuration: bool | None = None
    cluster_domain: str = ""
    across_k8s: bool = field(name="acrossK8s", default=False)
    cluster: TidbClusterRef | None = None
    pd_addresses: list[str] = []
    stateful_set_update_strategy: str = ""
    pod_management_policy: str = ""
    pod_security_context: Json | None = None
    topology_spread_constraints: TopologySpreadConstraints = []
    start_script_version: Literal["", "v1", "v2"] = ""
    suspend_action: SuspendAction | None = None
    prefer_ipv6: bool = field(name="preferIPv6", default=False)
    start_script_v2_feature_flags: list[str] = []


class TidbClusterCondition(Model, kw_only=True):
    """An entry of `status.conditions` (lifecycle.md 2.3)."""

    type: str
    status: str
    last_update_time: NullableTime = None
    last_transition_time: NullableTime = None
    reason: str = ""
    message: str = ""


class TidbClusterStatus(Model, kw_only=True):
    """`status`: what the operator last saw. The records of failover are its memory, all else can be observed anew."""

    cluster_id: str = field(name="clusterID", default="")
    pd: PDStatus = field(default_factory=PDStatus)
    pdms: dict[str, PDMSStatus] = {}
    tikv: TiKVStatus = field(default_factory=TiKVStatus)
    tidb: TiDBStatus = field(default_factory=TiDBStatus)
    pump: PumpStatus = field(default_factory=PumpStatus)
    tiflash: TiFlashStatus = field(default_factory=TiFlashStatus)
    tiproxy: TiProxyStatus = field(default_factory=TiProxyStatus)
    ticdc: TiCDCStatus = field(default_factory=TiCDCStatus)
    conditions: Annotated[list[TidbClusterCondition], Meta(extra_json_schema={"nullable": True})] = []


class TidbCluster(Model, kw_only=True):
    """A TiDB cluster: what the user wants, and what the operator last saw."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "TidbCluster"
    metadata: Metadata
    spec: TidbClusterSpec
    status: TidbClusterStatus = field(default_factory=TidbClusterStatus)
