"""The specs of the components of a TidbCluster (api/tidbcluster.fields)."""

from typing import Annotated, Literal, Self, TypeVar

from msgspec import Meta, field, structs

from apis.embedded import ContainerSecurity, Lifecycle, Resources, ServicePort
from apis.shared import (
    ComponentSpec,
    Config,
    Count,
    Failover,
    Int32,
    Int64,
    LogTailerSpec,
    Model,
    Probe,
    ResourceRequirements,
    ScalePolicy,
    ServiceSpec,
    StorageVolume,
    WorkloadSpec,
    crd_default,
)

MAX_FAILOVER_COUNT = 3
START_TIMEOUT = 30
EVICT_LEADER_TIMEOUT = "1500m"
WAIT_LEADER_TRANSFER_BACK_TIMEOUT = "400s"
GRACEFUL_SHUTDOWN_TIMEOUT = "10m"

_T = TypeVar("_T")


def given(value: _T | None, default: _T) -> _T:
    """The user's value, else a default."""
    return default if value is None else value


class DiscoverySpec(ComponentSpec, kw_only=True):
    """`spec.discovery`: the service that PD pods ask whether to start a cluster or to join one (objects.md 10)."""

    liveness_probe: Probe | None = None


class TidbWorkloadSpec(WorkloadSpec, kw_only=True):
    """The fields of every component of a TidbCluster that runs in a StatefulSet."""

    service_account: str = ""


class PDSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.pd`: the placement driver, which keeps the cluster's metadata and a quorum."""

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

    @property
    def server_config(self) -> Config | None:
        return self.config

    @property
    def spare_replicas(self) -> int:
        chosen = self.spare_vol_replace_replicas
        return 1 if chosen is None else chosen

    def with_defaults(self) -> Self:
        return structs.replace(
            self,
            max_failover_count=given(self.max_failover_count, MAX_FAILOVER_COUNT),
            spare_vol_replace_replicas=given(self.spare_vol_replace_replicas, 1),
            start_timeout=self.start_timeout or START_TIMEOUT,
        )


class PDMSSpec(TidbWorkloadSpec, kw_only=True):
    """An entry of `spec.pdms`: a PD microservice, in use when `spec.pd.mode` is `ms`."""

    name: Literal["tso", "scheduling"]
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

    @property
    def server_config(self) -> Config | None:
        return self.config

    def with_defaults(self) -> Self:
        return structs.replace(self, start_timeout=self.start_timeout or START_TIMEOUT)


class TiDBServiceSpec(ServiceSpec, kw_only=True):
    """`spec.tidb.service`: the Service for SQL clients (objects.md 2.2)."""

    external_traffic_policy: str | None = None
    expose_status: bool | None = None
    mysql_node_port: int | None = None
    status_node_port: int | None = None
    additional_ports: list[ServicePort] = []

    def with_defaults(self) -> Self:
        """Fill in the defaults of unset fields."""
        return structs.replace(
            self,
            expose_status=given(self.expose_status, True),
            port_name=self.port_name or "mysql-client",
            port=self.port or 4000,
        )


class TiDBSlowLogTailerSpec(ResourceRequirements, kw_only=True):
    """`spec.tidb.slowLogTailer`: prints the slow log; image and policy are deprecated (`HelperSpec`)."""

    image: str | None = None
    image_pull_policy: str | None = None
    security_context: ContainerSecurity | None = None
    use_sidecar: bool = False
    sleep_time_seconds: Int64 | None = None


class TiDBTLSClient(Model, kw_only=True):
    """`spec.tidb.tlsClient`: TLS on the MySQL port (objects.md 9.2)."""

    enabled: bool = False
    disable_client_authn: bool = False
    skip_internal_client_ca: bool = field(name="skipInternalClientCA", default=False)


class TiDBInitializer(Model, kw_only=True):
    """`spec.tidb.initializer`: a random password for root (objects.md 4.5)."""

    create_password: bool = False


class CustomizedStartupProbe(Model, kw_only=True):
    """`spec.tidb.customizedStartupProbe`: a binary from an image that checks whether TiDB has started."""

    image: str
    binary_name: str
    args: list[str] = []
    initial_delay_seconds: Int32 | None = None
    timeout_seconds: Int32 | None = None
    period_seconds: Int32 | None = None
    success_threshold: Int32 | None = None
    failure_threshold: Int32 | None = None


class TiDBSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.tidb`: the SQL servers, which hold no data."""

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
    lifecycle: Lifecycle | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    initializer: TiDBInitializer | None = None
    bootstrap_sql_config_map_name: str | None = field(name="bootstrapSQLConfigMapName", default=None)
    scale_policy: ScalePolicy | None = None
    customized_startup_probe: CustomizedStartupProbe | None = None
    arguments: list[str] = []
    server_labels: dict[str, str] = {}

    @property
    def server_config(self) -> Config | None:
        return self.config

    @property
    def labels_of_servers(self) -> dict[str, str]:
        return self.server_labels

    @property
    def sidecars(self) -> tuple[str, ...]:
        return () if self.separate_slow_log is False else ("slowlog",)

    @property
    def scaling_policy(self) -> ScalePolicy | None:
        return self.scale_policy

    def with_defaults(self) -> Self:
        return structs.replace(
            self,
            max_failover_count=given(self.max_failover_count, MAX_FAILOVER_COUNT),
            separate_slow_log=given(self.separate_slow_log, True),
            scale_policy=given(self.scale_policy, ScalePolicy()),
            service=self.service and self.service.with_defaults(),
        )


class TiKVSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.tikv`: the row store."""

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

    @property
    def server_config(self) -> Config | None:
        return self.config

    @property
    def sidecars(self) -> tuple[str, ...]:
        tailers = {"rocksdblog": self.separate_rocks_db_log, "raftlog": self.separate_raft_log}
        return tuple(name for name, present in tailers.items() if present)

    @property
    def spare_replicas(self) -> int:
        chosen = self.spare_vol_replace_replicas
        return 1 if chosen is None else chosen

    @property
    def scaling_policy(self) -> ScalePolicy | None:
        return self.scale_policy

    def with_defaults(self) -> Self:
        return structs.replace(
            self,
            max_failover_count=given(self.max_failover_count, MAX_FAILOVER_COUNT),
            spare_vol_replace_replicas=given(self.spare_vol_replace_replicas, 1),
            privileged=given(self.privileged, False),
            separate_rocks_db_log=given(self.separate_rocks_db_log, False),
            separate_raft_log=given(self.separate_raft_log, False),
            evict_leader_timeout=self.evict_leader_timeout or EVICT_LEADER_TIMEOUT,
            wait_leader_transfer_back_timeout=self.wait_leader_transfer_back_timeout
            or WAIT_LEADER_TRANSFER_BACK_TIMEOUT,
            scale_policy=given(self.scale_policy, ScalePolicy()),
        )


class StorageClaim(Model, kw_only=True):
    """An entry of `spec.tiflash.storageClaims`: one data volume, `resources` as in a PersistentVolumeClaim."""

    resources: Resources | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None


class TiFlashConfig(Model, kw_only=True):
    """`spec.tiflash.config`: configuration of the server and of its proxy."""

    config: Config | None = None
    proxy: Config | None = None


class TiFlashInitializer(ResourceRequirements, kw_only=True):
    """`spec.tiflash.initializer`: the init container that fills in the configuration."""

    security_context: ContainerSecurity | None = None


class TiFlashSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.tiflash`: the column store."""

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

    @property
    def server_config(self) -> Config | None:
        return self.config.config if self.config else None

    @property
    def config_path(self) -> str:
        return "config.config"

    @property
    def sidecars(self) -> tuple[str, ...]:
        return "serverlog", "errorlog", "clusterlog"

    @property
    def scaling_policy(self) -> ScalePolicy | None:
        return self.scale_policy

    def with_defaults(self) -> Self:
        return structs.replace(
            self,
            max_failover_count=given(self.max_failover_count, MAX_FAILOVER_COUNT),
            privileged=given(self.privileged, False),
            scale_policy=given(self.scale_policy, ScalePolicy()),
        )


class TiCDCSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.ticdc`: change data capture."""

    tls_client_secret_names: list[str] = []
    base_image: Annotated[str, crd_default("pingcap/ticdc")] = "pingcap/ticdc"
    config: Config | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    graceful_shutdown_timeout: str | None = None

    @property
    def server_config(self) -> Config | None:
        return self.config

    def with_defaults(self) -> Self:
        return structs.replace(
            self, graceful_shutdown_timeout=self.graceful_shutdown_timeout or GRACEFUL_SHUTDOWN_TIMEOUT
        )


class TiProxySpec(TidbWorkloadSpec, kw_only=True):
    """`spec.tiproxy`: the proxy in front of TiDB, which keeps connections while TiDB restarts."""

    ssl_enable_tidb: bool = field(name="sslEnableTiDB", default=False)
    tls_client_secret_name: str | None = None
    cert_layout: str = ""
    server_labels: dict[str, str] = {}
    base_image: Annotated[str, crd_default("pingcap/tiproxy")] = "pingcap/tiproxy"
    config: Config | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None

    @property
    def labels_of_servers(self) -> dict[str, str]:
        return self.server_labels

    @property
    def server_config(self) -> Config | None:
        return self.config


class PumpSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.pump`: the collector of binlogs."""

    base_image: Annotated[str, crd_default("pingcap/tidb-binlog")] = "pingcap/tidb-binlog"
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    config: Config | None = None
    set_time_zone: bool | None = None

    @property
    def server_config(self) -> Config | None:
        return self.config


class TiCIComponentSpec(TidbWorkloadSpec, kw_only=True):
    """`spec.tici.meta` and `spec.tici.worker`: the catalogue of indexes, and the builders of their fragments."""

    config: Config | None = None
    storage_volumes: list[StorageVolume] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None

    @property
    def server_config(self) -> Config | None:
        return self.config


class TiCIS3(Model, kw_only=True):
    """`spec.tici.s3`: the bucket with the indexes, and with the changes from which they are built."""

    endpoint: str = ""
    bucket: str = ""
    region: str = ""
    prefix: str = ""
    secret_name: str = ""
    access_key: str = ""
    secret_key: str = ""
    use_path_style: bool | None = None

    def with_defaults(self) -> Self:
        """Fill in the defaults of unset fields (2.1)."""
        return structs.replace(
            self,
            region=self.region or "us-east-1",
            prefix=self.prefix or "tici_default_prefix",
            use_path_style=given(self.use_path_style, True),
        )


class TiCIReader(Model, kw_only=True):
    """`spec.tici.reader`: the reader of indexes, inside TiFlash."""

    port: Annotated[Int32, Meta(ge=1, le=65535)] | None = None
    heartbeat_interval: str | None = None
    max_heartbeat_retries: Int32 | None = None
    heartbeat_worker_count: Int32 | None = None


class TiCIChangefeed(Model, kw_only=True):
    """`spec.tici.changefeed`: the changefeed of TiCDC that writes changes into the bucket."""

    enable: bool | None = None
    sink_uri: str = field(name="sinkURI", default="")
    changefeed_id: str = field(name="changefeedID", default="")


class TiCISpec(Model, kw_only=True):
    """`spec.tici`: full-text search. An absent `meta` or `worker` does not run."""

    meta: TiCIComponentSpec | None = None
    worker: TiCIComponentSpec | None = None
    s3: TiCIS3 | None = None
    reader: TiCIReader | None = None
    changefeed: TiCIChangefeed | None = None

    def with_defaults(self) -> Self:
        """Fill in the defaults of unset fields; an absent `meta`, `worker` or `s3` stays absent."""
        reader, feed = self.reader or TiCIReader(), self.changefeed or TiCIChangefeed()
        return structs.replace(
            self,
            s3=self.s3 and self.s3.with_defaults(),
            reader=structs.replace(reader, port=given(reader.port, 8520)),
            changefeed=structs.replace(
                feed, enable=given(feed.enable, True), changefeed_id=feed.changefeed_id or "tici-replication-task"
            ),
        )

    @property
    def feeds(self) -> bool:
        """True if TiCDC writes changes into the bucket."""
        return self.changefeed is None or self.changefeed.enable is not False
