"""CompactBackup, pingcap.com/v1alpha1 (api/compactbackup.fields)."""

from typing import Annotated, Literal

from msgspec import Meta, field

from apis.backup_shared import JobSpec
from apis.shared import Conditions, Int32, Metadata, Model, Time, crd_default

SHARDED = "sharded"


class CompactSpec(JobSpec, kw_only=True):
    """The part of a log backup to compact, and the options."""

    start_ts: str = ""
    end_ts: str = ""
    concurrency: Annotated[int, crd_default(4)] = 4
    tikv_image: str = ""
    mode: Literal["", "sharded"] = ""
    shard_count: Annotated[Int32, Meta(ge=1)] | None = None
    physical_file_cache_capacity: str = ""
    name: str = ""
    max_retry_times: Annotated[Int32, crd_default(6)] = 6


class CompactRetryRecord(Model, kw_only=True):
    """A failure, after which it was tried again."""

    retry_num: int = 0
    detect_failed_at: Time | None = None
    retry_reason: str = ""


class CompactStatus(Model, kw_only=True):
    """`status`: what the controller and the Job have written (backup.md 6)."""

    state: str = ""
    progress: str = ""
    message: str = ""
    end_ts: str = ""
    completed_indexes: str = ""
    failed_indexes: str = ""
    backoff_retry_status: list[CompactRetryRecord] = []
    conditions: Conditions = []


class CompactBackup(Model, kw_only=True):
    """A part of a log backup rewritten, so that a restore reads it faster."""

    api_version: str = "pingcap.com/v1alpha1"
    kind: str = "CompactBackup"
    metadata: Metadata
    spec: CompactSpec
    status: CompactStatus = field(default_factory=CompactStatus)
