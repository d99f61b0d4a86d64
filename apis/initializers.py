"""TidbInitializer, pingcap.com/v1alpha1 (api/tidbinitializer.fields)."""

from msgspec import field

from apis.embedded import JobCondition, LocalReference, PodSecurity, Resources, Toleration
from apis.shared import Int32, Json, Metadata, Model, TidbClusterRef, Time


class TidbInitializerSpec(Model, kw_only=True):
    """Passwords and SQL for a cluster that is new."""

    image: str
    cluster: TidbClusterRef
    pod_security_context: PodSecurity | None = None
    image_pull_policy: str | None = None
    image_pull_secrets: list[LocalReference] = []
    service_account_name: str = ""
    permit_host: str | None = None
    init_sql: str | None = None
    init_sql_config_map: str | None = None
    password_secret: str | None = None
    resources: Resources | None = None
    timezone: str = ""
    tls_client_secret_name: str | None = None
    tolerations: list[Toleration] = []
    node_selector: dict[str, str] = {}


class TidbInitializerStatus(Model, kw_only=True):
    """`status`: the status of the Job (batch/v1 JobStatus), and a phase (other-resources.md 2.1)."""

    conditions: list[JobCondition] = []
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Int32 = 0
    ready: Int32 | None = None
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Json | None = None
    phase: str = ""


class TidbInitializer(Model, kw_only=True):
    """A Job that gives users of a TidbCluster passwords and runs SQL, once."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "TidbInitializer"
    metadata: Metadata
    spec: TidbInitializerSpec
    status: TidbInitializerStatus = field(default_factory=TidbInitializerStatus)
