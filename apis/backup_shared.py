"""The common parts of Backup, Restore, BackupSchedule and CompactBackup (api/shared-types.fields)."""

from typing import Annotated

from msgspec import Meta, field

from apis.embedded import Affinity, LocalReference, Mount, PodSecurity, Resources, Toleration, Variable, Volume
from apis.shared import Int32, Model, NullableTime, Time
from apis.storage_providers import StorageProvider


class BRConfig(Model, kw_only=True):
    """The cluster that BR works on, and BR's options; if absent, Dumpling exports and TiDB Lightning imports."""

    cluster: str
    cluster_namespace: str = ""
    db: str = ""
    table: str = ""
    log_level: str = ""
    status_addr: str = ""
    concurrency: Int32 | None = None
    rate_limit: int | None = None
    time_ago: str = ""
    checksum: bool | None = None
    check_requirements: bool | None = None
    send_cred_to_tikv: bool | None = None
    on_line: bool | None = None
    options: list[str] = []


class TiDBAccessConfig(Model, kw_only=True):
    """The SQL access to TiDB."""

    host: str
    port: Int32 = 0
    user: str = ""
    secret_name: str
    tls_client_secret_name: str | None = None


class JobSpec(StorageProvider, kw_only=True):
    """Settings for the pods of every Job (backup.md 3.1, 3.11)."""

    resources: Resources = {}
    env: list[Variable] = []
    br: BRConfig | None = None
    tolerations: list[Toleration] = []
    affinity: Affinity | None = None
    use_kms: bool = field(name="useKMS", default=False)
    service_account: str = ""
    automount_service_account_token: bool | None = None
    tool_image: str = ""
    image_pull_secrets: list[LocalReference] = []
    pod_security_context: PodSecurity | None = None
    priority_class_name: str = ""
    additional_volumes: list[Volume] = []
    additional_volume_mounts: list[Mount] = []


class ArchiveSpec(JobSpec, kw_only=True):
    """The common fields of a Backup and a Restore, including the volume through which exports and imports pass."""

    backup_type: str = ""
    tikv_gc_life_time: str | None = field(name="tikvGCLifeTime", default=None)
    table_filter: list[str] = []
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    storage_size: str = ""


class Progress(Model, kw_only=True):
    """The progress of a step, in percent."""

    step: str = ""
    progress: float = 0
    last_transition_time: NullableTime = None


class BROperation(Model, kw_only=True):
    """The progress of a run of BR, read from its log."""

    operation_id: str = field(name="operationID", default="")
    started_at: Time | None = None
    command: str = ""
    observed_at: Time | None = None


Progresses = Annotated[list[Progress], Meta(extra_json_schema={"nullable": True})]
BROperations = Annotated[list[BROperation], Meta(extra_json_schema={"nullable": True})]
