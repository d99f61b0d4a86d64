"""BackupSchedule, pingcap.com/v1alpha1 (api/backupschedule.fields)."""

from typing import Annotated

from msgspec import Meta, field

from apis.backup_shared import BRConfig
from apis.backups import BackupSpec
from apis.compact_backups import CompactSpec
from apis.embedded import LocalReference
from apis.shared import Int32, Metadata, Model, NullableTime, Time
from apis.storage_providers import StorageProvider


class BackupScheduleSpec(StorageProvider, kw_only=True):
    """When to back up, and what to keep."""

    schedule: str
    pause: bool = False
    max_backups: Int32 | None = None
    max_reserved_time: str | None = None
    compact_interval: str | None = None
    backup_template: BackupSpec
    log_backup_template: BackupSpec | None = None
    compact_backup_template: CompactSpec | None = None
    min_compact_start_ts: str | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    storage_size: str = ""
    image_pull_secrets: list[LocalReference] = []
    br: BRConfig | None = None


class BackupScheduleCondition(Model, kw_only=True):
    """An entry of `status.conditions`, which v1.6 does not have."""

    type: str
    status: str
    last_transition_time: NullableTime = None
    reason: str = ""
    message: str = ""


class BackupScheduleStatus(Model, kw_only=True):
    """`status`: what the controller made last (backup.md 5)."""

    last_backup: str = ""
    last_compact: str = ""
    log_backup: str | None = None
    log_backup_start_ts: Time | None = None
    last_backup_time: Time | None = None
    last_compact_progress: Time | None = None
    last_compact_execution_ts: Time | None = None
    all_backup_clean_time: Time | None = None
    conditions: Annotated[list[BackupScheduleCondition], Meta(extra_json_schema={"nullable": True})] = []


class BackupSchedule(Model, kw_only=True):
    """Backups at the times of a cron schedule, and the deletion of old ones."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "BackupSchedule"
    metadata: Metadata
    spec: BackupScheduleSpec
    status: BackupScheduleStatus = field(default_factory=BackupScheduleStatus)
