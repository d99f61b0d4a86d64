"""Restore, pingcap.com/v1alpha1 (api/restore.fields)."""

from typing import Annotated, Literal

from msgspec import Meta, field

from apis.backup_shared import ArchiveSpec, BROperations, Progresses, TiDBAccessConfig
from apis.shared import Int32, Metadata, Model, NullableTime, crd_default
from apis.storage_providers import StorageProvider


class ReplicationConfig(Model, kw_only=True):
    """The compaction that runs beside the restore of the snapshot, and how long to wait for it to be created."""

    compact_backup_name: str
    wait_timeout: str | None = None


class RestoreSpec(ArchiveSpec, kw_only=True):
    """What to restore, from where, and to which moment."""

    to: TiDBAccessConfig | None = None
    restore_mode: Annotated[str, crd_default("snapshot")] = "snapshot"
    pitr_restored_ts: str = ""
    prune: Literal["afterFailed"] | None = None
    log_restore_start_ts: str = ""
    federal_volume_restore_phase: str = ""
    volume_az: str = field(name="volumeAZ", default="")
    pitr_full_backup_storage_provider: StorageProvider = field(default_factory=StorageProvider)
    warmup: str = ""
    warmup_image: str = ""
    warmup_strategy: Annotated[str, crd_default("hybrid")] = "hybrid"
    tolerate_single_tikv_outage: Annotated[bool, crd_default(False)] = field(
        name="tolerateSingleTiKVOutage", default=False
    )
    backoff_limit: Annotated[Int32, crd_default(0)] = 0
    replication_config: ReplicationConfig | None = None

    @property
    def is_replication(self) -> bool:
        """True if the snapshot and the log are restored in two steps."""
        return self.restore_mode == "pitr" and self.replication_config is not None


class RestoreCondition(Model, kw_only=True):
    """An entry of `status.conditions` (backup.md 4.2)."""

    type: str
    status: str
    last_transition_time: NullableTime = None
    reason: str = ""
    message: str = ""


class RestoreStatus(Model, kw_only=True):
    """`status`: what the controller and the Job have written (backup.md 4.1)."""

    time_started: NullableTime = None
    time_completed: NullableTime = None
    time_taken: str = ""
    commit_ts: str = ""
    phase: str = ""
    conditions: Annotated[list[RestoreCondition], Meta(extra_json_schema={"nullable": True})] = []
    replication_step: str = ""
    progresses: Progresses = []
    br_operations: BROperations = field(name="brOperations", default_factory=list)


class Restore(Model, kw_only=True):
    """A backup brought back into a TiDB cluster: a snapshot, a point in time, or an export."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "Restore"
    metadata: Metadata
    spec: RestoreSpec
    status: RestoreStatus = field(default_factory=RestoreStatus)
