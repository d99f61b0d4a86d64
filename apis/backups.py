"""Backup, pingcap.com/v1alpha1 (api/backup.fields)."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, field

from apis.backup_shared import ArchiveSpec, BROperations, Progresses, TiDBAccessConfig
from apis.shared import Int32, Int64, Metadata, Model, NullableTime, Time, crd_default


class DumplingConfig(Model, kw_only=True):
    """Options of Dumpling."""

    options: list[str] = []
    table_filter: list[str] = []


class CleanOption(Model, kw_only=True):
    """How the files of a deleted Backup are removed (backup.md 7.8)."""

    disable_batch_concurrency: bool = False
    batch_concurrency: Int32 = 0
    routine_concurrency: Int32 = 0
    page_size: Int64 = 0
    retry_count: Annotated[int, crd_default(5)] = 5
    backoff_enabled: bool = False
    snapshots_delete_ratio: Annotated[float, crd_default(1)] = 1


class BackoffRetryPolicy(Model, kw_only=True):
    """When the Job of a failed snapshot backup is recreated (backup.md 3.7)."""

    min_retry_duration: Annotated[str, crd_default("300s")] = "300s"
    max_retry_times: Annotated[int, crd_default(2)] = 2
    retry_timeout: Annotated[str, crd_default("30m")] = "30m"


class BackupSpec(ArchiveSpec, kw_only=True):
    """What to save, where to save it, and what happens to the files when the Backup is deleted."""

    from_: TiDBAccessConfig | None = field(name="from", default=None)
    backup_mode: Annotated[str, crd_default("snapshot")] = "snapshot"
    commit_ts: str = ""
    log_subcommand: Literal["log-start", "log-stop", "log-pause"] | None = None
    log_truncate_until: str = ""
    log_stop: bool = False
    calc_size_level: Annotated[str, crd_default("all")] = "all"
    federal_volume_backup_phase: str = ""
    resume_gc_schedule: bool = False
    dumpling: DumplingConfig | None = None
    clean_policy: Annotated[Literal["Retain", "OnFailure", "Delete"], crd_default("Retain")] = "Retain"
    clean_option: CleanOption | None = None
    backoff_retry_policy: BackoffRetryPolicy = field(default_factory=BackoffRetryPolicy)
    volume_backup_init_job_max_active_seconds: Annotated[int, crd_default(600)] = 600


def is_incremental(br_options: Iterable[object]) -> bool:
    """True if options of BR make it save only changes since another backup; such a backup alone cannot be restored."""
    return any(str(option).startswith("--lastbackupts") and option != "--lastbackupts=0" for option in br_options)


class BackupCondition(Model, kw_only=True):
    """An entry of `status.conditions` (backup.md 3.3)."""

    command: str = ""
    type: str
    status: str
    last_transition_time: NullableTime = None
    reason: str = ""
    message: str = ""


BackupConditions = Annotated[list[BackupCondition], Meta(extra_json_schema={"nullable": True})]


class LogSubCommandStatus(Model, kw_only=True):
    """The progress of one command of a log backup (backup.md 3.8)."""

    command: str = ""
    time_started: NullableTime = None
    time_completed: NullableTime = None
    log_truncating_until: str = ""
    phase: str = ""
    conditions: BackupConditions = []


class BackoffRetryRecord(Model, kw_only=True):
    """A failure of the Job, and when the Job was recreated (backup.md 3.7)."""

    retry_num: int = 0
    detect_failed_at: Time | None = None
    expected_retry_at: Time | None = None
    real_retry_at: Time | None = None
    retry_reason: str = ""
    original_reason: str = ""


class BackupStatus(Model, kw_only=True):
    """`status`: what the controller and the Job have written (backup.md 3.2)."""

    backup_path: str = ""
    time_started: NullableTime = None
    time_completed: NullableTime = None
    time_synced: NullableTime = None
    time_taken: str = ""
    backup_size_readable: str = ""
    backup_size: Int64 = 0
    incremental_backup_size_readable: str = ""
    incremental_backup_size: Int64 = 0
    commit_ts: str = ""
    log_success_truncate_until: str = ""
    log_checkpoint_ts: str = ""
    phase: str = ""
    conditions: BackupConditions = []
    log_sub_command_statuses: dict[str, LogSubCommandStatus] = {}
    progresses: Progresses = []
    br_operations: BROperations = field(name="brOperations", default_factory=list)
    backoff_retry_status: list[BackoffRetryRecord] = []


class Backup(Model, kw_only=True):
    """A backup of a TiDB cluster: a snapshot, an export, or the log of its changes."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "Backup"
    metadata: Metadata
    spec: BackupSpec
    status: BackupStatus = field(default_factory=BackupStatus)
