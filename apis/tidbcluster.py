"""TidbCluster, pingcap.com/v1alpha1 (api/tidbcluster.fields)."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from apis.shared import (
    ComponentSpec,
    Conditions,
    Config,
    Count,
    Failover,
    Int32,
    Json,
    LogTailerSpec,
    Metadata,
    Model,
    NullableTime,
    PDMember,
    Probe,
    ResourceRequirements,
    ScalePolicy,
    ServiceSpec,
    StorageVolume,
    StorageVolumeStatus,
    SuspendAction,
    TidbClusterRef,
    TiKVFailureStore,
    TiKVStore,
    Time,
    TLSCluster,
    TopologySpreadConstraints,
    UnjoinedMember,
    crd_default,
)


class DiscoverySpec(ComponentSpec, kw_only=True):
    """`spec.discovery`: the service that PD pods ask whether to start a cluster or to join one (objects.md 10)."""

    liveness_probe: Probe | None = None


class PDSpec(ComponentSpec, kw_only=True):
    """`spec.pd`: the placement driver, which keeps the cluster's metadata and a quorum."""

    service_account: str = ""
    replicas: Count
    base_image: Annotated[str, crd_default("pingcap/pd")] = "pingcap/pd"
    service: ServiceSpec | None = None
    max_failover_count: Count | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    storage_volumes: list[StorageVolume] = []
    data_sub_dir: str = ""
    config: Config | None = None
    tls_client_secret_name: str | None = None
    enable_dashboard_internal_proxy: bool | None = None
    mount_cluster_client_secret: bool | None = None
    start_up_script_version: Literal["", "v1"] = ""
    start_timeout: Annotated[int, crd_default(30)] = 30
    init_wait_time: Annotated[int, crd_default(0)] = 0
    mode: Literal["", "ms"] = ""
    spare_vol_replace_replicas: Count | None = None


class PDMSSpec(ComponentSpec, kw_only=True):
    """An entry of `spec.pdms`: a PD microservice, in use when `spec.pd.mode` is `ms`."""

    name: Literal["tso", "scheduling"]
    service_account: str = ""
    replicas: Count
    base_image: Annotated[str | None, crd_default("pingcap/pd")] = "pingcap/pd"
    service: ServiceSpec | None = None
    max_failover_count: Count | None = None
    config: Config | None = None
    tls_client_secret_name: str | None = None
    mount_cluster_client_secret: bool | None = None
    start_up_script_version: Literal["", "v1"] = ""
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    storage_volumes: list[StorageVolume] = []
    start_timeout: Annotated[int, crd_default(30)] = 30


class TiDBServiceSpec(ServiceSpec, kw_only=True):
    """`spec.tidb.service`: the Service for SQL clients (objects.md 2.2)."""

    external_traffic_policy: str | None = None
    expose_status: bool | None = None
    mysql_node_port: int | None = None
    status_node_port: int | None = None
    additional_ports: list[Json] = []


class TiDBSlowLogTailerSpec(ResourceRequirements, kw_only=True):
    """`spec.tidb.slowLogTailer`: prints the slow log; image and policy are deprecated (`HelperSpec`)."""

    image: str | None = None
    image_pull_policy: str | None = None
    security_context: Json | None = None


class TiDBTLSClient(Model, kw_only=True):
    """`spec.tidb.tlsClient`: TLS on the MySQL port (objects.md 9.2)."""

    enabled: bool = False
    disable_client_authn: bool = False
    skip_internal_client_ca: bool = field(name="skipInternalClientCA", default=False)


class TiDBInitializer(Model, kw_only=True):
    """`spec.tidb.initializer`: a random password for root (objects.md 4.5)."""

    create_password: bool = False


class CustomizedStartupProbe(Model, kw_only=True):
    """`spec.tidb.customizedStartupProbe`: a binary, copied from an image, that tells when TiDB has started."""

    image: str
    binary_name: str
    args: list[str] = []
    initial_delay_seconds: Int32 | None = None
    timeout_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    failure_threshold: Int32 | None = None


class TiDBSpec(ComponentSpec, kw_only=True):
    """`spec.tidb`: the SQL servers, which hold no data."""

    service_account: str = ""
    replicas: Count
    base_image: Annotated[str, crd_default("pingcap/tidb")] = "pingcap/tidb"
    service: TiDBServiceSpec | None = None
    binlog_enabled: bool | None = None
    max_failover_count: Count | None = None
    separate_slow_log: bool | None = None
    slow_log_volume_name: str = ""
    slow_log_tailer: TiDBSlowLogTailerSpec | None = None
    tls_client: TiDBTLSClient | None = None
    token_based_auth_enabled: bool | None = None
    plugins: list[str] = []
    config: Config | None = None
    lifecycle: Json | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    initializer: TiDBInitializer | None = None
    bootstrap_sql_config_map_name: str | None = field(name="bootstrapSQLConfigMapName", default=None)
    scale_policy: ScalePolicy | None = None
    customized_startup_probe: CustomizedStartupProbe | None = None
    arguments: list[str] = []


class TiKVSpec(ComponentSpec, kw_only=True):
    """`spec.tikv`: the row store."""

    service_account: str = ""
    replicas: Count
    base_image: Annotated[str, crd_default("pingcap/tikv")] = "pingcap/tikv"
    privileged: bool | None = None
    max_failover_count: Count | None = None
    separate_rocks_db_log: bool | None = field(name="separateRocksDBLog", default=None)
    separate_raft_log: bool | None = None
    rocks_db_log_volume_name: str = field(name="rocksDBLogVolumeName", default="")
    raft_log_volume_name: str = ""
    log_tailer: LogTailerSpec | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    data_sub_dir: str = ""
    config: Config | None = None
    recover_failover: bool = False
    failover: Failover | None = None
    mount_cluster_client_secret: bool | None = None
    evict_leader_timeout: str | None = None
    wait_leader_transfer_back_timeout: str | None = None
    storage_volumes: list[StorageVolume] = []
    store_labels: list[str] = []
    enable_named_status_port: bool = False
    scale_policy: ScalePolicy | None = None
    spare_vol_replace_replicas: Count | None = None


class StorageClaim(Model, kw_only=True):
    """An entry of `spec.tiflash.storageClaims`: one data volume, `resources` as in a PersistentVolumeClaim."""

    resources: Json | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None


class TiFlashConfig(Model, kw_only=True):
    """`spec.tiflash.config`: configuration of the server and of the proxy beside it."""

    config: Config | None = None
    proxy: Config | None = None


class TiFlashInitializer(ResourceRequirements, kw_only=True):
    """`spec.tiflash.initializer`: the init container that fills in the configuration."""

    security_context: Json | None = None


class TiFlashSpec(ComponentSpec, kw_only=True):
    """`spec.tiflash`: the column store."""

    service_account: str = ""
    replicas: Count
    base_image: Annotated[str, crd_default("pingcap/tiflash")] = "pingcap/tiflash"
    privileged: bool | None = None
    max_failover_count: Count | None = None
    storage_claims: list[StorageClaim]
    config: TiFlashConfig | None = None
    initializer: TiFlashInitializer | None = None
    log_tailer: LogTailerSpec | None = None
    recover_failover: bool = False
    failover: Failover | None = None
    scale_policy: ScalePolicy | None = None


class TiCDCSpec(ComponentSpec, kw_only=True):
    """`spec.ticdc`: change data capture."""

    service_account: str = ""
    replicas: Count
    tls_client_secret_names: list[str] = []
    base_image: Annotated[str, crd_default("pingcap/ticdc")] = "pingcap/ticdc"
    config: Config | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    graceful_shutdown_timeout: str | None = None


class TiProxySpec(ComponentSpec, kw_only=True):
    """`spec.tiproxy`: the proxy in front of TiDB, which keeps connections while TiDB restarts."""

    service_account: str = ""
    replicas: Count
    ssl_enable_tidb: bool = field(name="sslEnableTiDB", default=False)
    tls_client_secret_name: str | None = None
    cert_layout: str = ""
    base_image: Annotated[str, crd_default("pingcap/tiproxy")] = "pingcap/tiproxy"
    config: Config | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None


class PumpSpec(ComponentSpec, kw_only=True):
    """`spec.pump`: the collector of binlogs."""

    service_account: str = ""
    replicas: Count
    base_image: Annotated[str, crd_default("pingcap/tidb-binlog")] = "pingcap/tidb-binlog"
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    config: Config | None = None
    set_time_zone: bool | None = None


Workload: TypeAlias = PDSpec | PDMSSpec | TiDBSpec | TiKVSpec | TiFlashSpec | TiCDCSpec | PumpSpec | TiProxySpec
"""The spec of a component that runs in a StatefulSet: all but Discovery."""


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


class PDFailureMember(Model, kw_only=True):
    """A value of `status.pd.failureMembers`: a member replaced by failover (lifecycle.md 9.2)."""

    pod_name: str = ""
    member_id: str = field(name="memberID", default="")
    pvc_uid: str = field(name="pvcUID", default="")
    pvc_uid_set: dict[str, Json] = field(name="pvcUIDSet", default_factory=dict)
    member_deleted: bool = False
    host_down: bool = False
    created_at: NullableTime = None


class PDStatus(Model, kw_only=True):
    """`status.pd`: members by name; those of another cluster that share this PD are peers."""

    synced: bool = False
    phase: str = ""
    stateful_set: Json | None = None
    members: dict[str, PDMember] = {}
    peer_members: dict[str, PDMember] = {}
    leader: PDMember | None = None
    failure_members: dict[str, PDFailureMember] = {}
    unjoined_members: dict[str, UnjoinedMember] = {}
    image: str = ""
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []
    vol_replace_in_progress: bool = False


class PDMSStatus(Model, kw_only=True):
    """A value of `status.pdms`, by microservice."""

    name: str = ""
    synced: bool = False
    phase: str = ""
    stateful_set: Json | None = None
    volumes: dict[str, StorageVolumeStatus] = {}
    members: list[str] = []
    image: str = ""
    conditions: Conditions = []


class EvictLeaderStatus(Model, kw_only=True):
    """A value of `status.tikv.evictLeader`: a pod that gives up its leaders; written by the pod controller alone."""

    pod_create_time: Time | None = None
    begin_time: Time | None = None
    value: str = ""


class TiKVStatus(Model, kw_only=True):
    """`status.tikv`: stores by id; those of another cluster on the same PD are peers."""

    synced: bool = False
    phase: str = ""
    boot_strapped: bool = False
    stateful_set: Json | None = None
    stores: dict[str, TiKVStore] = {}
    peer_stores: dict[str, TiKVStore] = {}
    tombstone_stores: dict[str, TiKVStore] = {}
    failure_stores: dict[str, TiKVFailureStore] = {}
    failover_uid: str = field(name="failoverUID", default="")
    image: str = ""
    evict_leader: dict[str, EvictLeaderStatus] = {}
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []
    vol_replace_in_progress: bool = False


class TiDBMember(Model, kw_only=True):
    """A value of `status.tidb.members`: a server as its status port last told."""

    name: str
    health: bool
    last_transition_time: NullableTime = None
    node: str = ""


class TiDBFailureMember(Model, kw_only=True):
    """A value of `status.tidb.failureMembers`: a server replaced by failover (lifecycle.md 9.4)."""

    pod_name: str = ""
    created_at: NullableTime = None


class TiDBStatus(Model, kw_only=True):
    """`status.tidb`: servers by pod name."""

    phase: str = ""
    stateful_set: Json | None = None
    members: dict[str, TiDBMember] = {}
    failure_members: dict[str, TiDBFailureMember] = {}
    resign_ddl_owner_retry_count: Int32 = field(name="resignDDLOwnerRetryCount", default=0)
    image: str = ""
    password_initialized: bool | None = None
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []
    vol_replace_in_progress: bool = False


class PumpMember(Model, kw_only=True):
    """An entry of `status.pump.members`."""

    node_id: str
    host: str
    state: str


class PumpStatus(Model, kw_only=True):
    """`status.pump`: nodes as they registered in PD."""

    phase: str = ""
    stateful_set: Json | None = None
    members: list[PumpMember] = []
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []


class TiFlashStatus(Model, kw_only=True):
    """`status.tiflash`: as `status.tikv`."""

    synced: bool = False
    phase: str = ""
    stateful_set: Json | None = None
    stores: dict[str, TiKVStore] = {}
    peer_stores: dict[str, TiKVStore] = {}
    tombstone_stores: dict[str, TiKVStore] = {}
    failure_stores: dict[str, TiKVFailureStore] = {}
    failover_uid: str = field(name="failoverUID", default="")
    image: str = ""
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []
    vol_replace_in_progress: bool = False


class TiProxyMember(Model, kw_only=True):
    """A value of `status.tiproxy.members`: a proxy as its API last told."""

    name: str
    health: bool
    info: str = ""
    last_transition_time: NullableTime = None


class TiProxyStatus(Model, kw_only=True):
    """`status.tiproxy`: proxies by pod name."""

    synced: bool = False
    phase: str = ""
    members: dict[str, TiProxyMember] = {}
    stateful_set: Json | None = None
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []


class TiCDCCapture(Model, kw_only=True):
    """A value of `status.ticdc.captures`."""

    pod_name: str = ""
    id: str = ""
    version: str = ""
    is_owner: bool = False
    ready: bool = False


class TiCDCStatus(Model, kw_only=True):
    """`status.ticdc`: captures by pod name."""

    synced: bool = False
    phase: str = ""
    stateful_set: Json | None = None
    captures: dict[str, TiCDCCapture] = {}
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []


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
