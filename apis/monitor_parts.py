"""The containers of a TidbMonitor, and their common types (api/tidbmonitor.fields, api/shared-types.fields)."""

from msgspec import field

from apis.embedded import ContainerSecurity, IngressTls, KeySelector, Mount
from apis.shared import Int64, Model, ResourceRequirements, ServiceSpec


class MonitorContainer(ResourceRequirements, kw_only=True):
    """The settings of every container. Its image is `baseImage:version`."""

    base_image: str = ""
    version: str = ""
    image_pull_policy: str | None = None
    security_context: ContainerSecurity | None = None


class ConfigMapRef(Model, kw_only=True):
    """A ConfigMap; an empty namespace means the namespace of the monitor."""

    name: str = ""
    namespace: str | None = None


class IngressSpec(Model, kw_only=True):
    """An Ingress for a Service."""

    hosts: list[str]
    annotations: dict[str, str] = {}
    tls: list[IngressTls] = []


class SecretOrConfigMap(Model, kw_only=True):
    """A key of a Secret or, where that is not set, of a ConfigMap."""

    secret: KeySelector | None = None
    config_map: KeySelector | None = None


class TLSConfig(Model, kw_only=True):
    """Certificates by reference, or by the paths of files in the container."""

    ca: SecretOrConfigMap = field(default_factory=SecretOrConfigMap)
    cert: SecretOrConfigMap = field(default_factory=SecretOrConfigMap)
    key_secret: KeySelector | None = None
    server_name: str = ""
    insecure_skip_verify: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


class RelabelConfig(Model, kw_only=True):
    """A change of series' labels before they are sent."""

    source_labels: list[str] = []
    separator: str = ""
    regex: str = ""
    modulus: Int64 = 0
    target_label: str = ""
    replacement: str = ""
    action: str = ""


class BasicAuth(Model, kw_only=True):
    """User and password, both in Secrets of the monitor's namespace."""

    username: KeySelector = field(default_factory=dict)
    password: KeySelector = field(default_factory=dict)


class QueueConfig(Model, kw_only=True):
    """The queue for sending series; times are nanoseconds."""

    capacity: int = 0
    min_shards: int = 0
    max_shards: int = 0
    max_samples_per_send: int = 0
    batch_send_deadline: Int64 | None = None
    max_retries: int = 0
    min_backoff: Int64 | None = None
    max_backoff: Int64 | None = None


class MetadataConfig(Model, kw_only=True):
    """Whether and how often metadata of series is sent."""

    send: bool = False
    send_interval: str = ""


class RemoteWriteSpec(Model, kw_only=True):
    """A destination of scraped series (other-resources.md 3.7)."""

    url: str
    name: str = ""
    remote_timeout: str = ""
    write_relabel_configs: list[RelabelConfig] = []
    basic_auth: BasicAuth | None = None
    bearer_token: str = ""
    bearer_token_file: str = ""
    tls_config: TLSConfig | None = None
    proxy_url: str | None = None
    queue_config: QueueConfig | None = None
    metadata_config: MetadataConfig | None = None
    headers: dict[str, str] = {}


class PrometheusConfig(Model, kw_only=True):
    """The user's additions to the configuration of Prometheus."""

    config_map_ref: ConfigMapRef | None = None
    command_options: list[str] = []
    rule_config_ref: ConfigMapRef | None = None


class PrometheusSpec(MonitorContainer, kw_only=True):
    """Prometheus itself."""

    log_level: str = ""
    service: ServiceSpec = field(default_factory=ServiceSpec)
    reserve_days: int = 0
    retention_time: str | None = None
    ingress: IngressSpec | None = None
    config: PrometheusConfig | None = None
    disable_compaction: bool = False
    remote_write: list[RemoteWriteSpec] = []
    additional_volume_mounts: list[Mount] = []


class GrafanaSpec(MonitorContainer, kw_only=True):
    """Grafana for the monitor."""

    log_level: str = ""
    service: ServiceSpec = field(default_factory=ServiceSpec)
    username_secret: KeySelector | None = None
    password_secret: KeySelector | None = None
    username: str = ""
    password: str = ""
    envs: dict[str, str] = {}
    ingress: IngressSpec | None = None
    additional_volume_mounts: list[Mount] = []


class ReloaderSpec(MonitorContainer, kw_only=True):
    """The reloader, with which users edit the rules."""

    service: ServiceSpec = field(default_factory=ServiceSpec)


class InitializerSpec(MonitorContainer, kw_only=True):
    """The initializer, which provides rules and dashboards of a version of TiDB."""

    envs: dict[str, str] = {}


class ThanosSpec(MonitorContainer, kw_only=True):
    """The sidecar that uploads what Prometheus has, and answers queries for it."""

    object_storage_config: KeySelector | None = None
    object_storage_config_file: str | None = None
    listen_local: bool = False
    tracing_config: KeySelector | None = None
    tracing_config_file: str | None = None
    grpc_server_tls_config: TLSConfig | None = None
    log_level: str = ""
    log_format: str = ""
    min_time: str = ""
    route_prefix: str = ""
    additional_volume_mounts: list[Mount] = []
