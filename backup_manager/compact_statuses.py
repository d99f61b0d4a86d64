"""Changes of a CompactBackup's status (backup.md 6). Pure: from one tree to another."""

from datetime import datetime

from apis.times import stamp
from backup_manager.tikv_ctl_log import CompactionProgress
from kube.objects import Json

RUNNING = "Running"
COMPLETE = "Complete"
RETRY_FAILED = "RetryFailed"


def is_complete(status: Json) -> bool:
    """True if the compaction is complete."""
    return status.get("state") == COMPLETE


def with_start(status: Json) -> Json:
    """The status of a running one; messages of an earlier try are removed."""
    return {key: value for key, value in status.items() if key != "message"} | {"state": RUNNING}


def with_progress(status: Json, progress: CompactionProgress) -> Json:
    """The status with its progress."""
    return status | {"progress": str(progress)}


def with_end(status: Json, until: int) -> Json:
    """The status of a complete one with its final TSO, which never decreases."""
    before = str(status.get("endTs") or "")
    reached = max(int(before) if before.isdecimal() else 0, until)
    return with_start(status) | {"state": COMPLETE} | ({"endTs": str(reached)} if reached else {})


def with_failure(status: Json, why: str, now: datetime) -> Json:
    """The status of one that will be retried, with the reason."""
    records = list(status.get("backoffRetryStatus") or ())
    record = {"retryNum": len(records), "detectFailedAt": stamp(now), "retryReason": why}
    return status | {"state": RETRY_FAILED, "message": why, "backoffRetryStatus": [*records, record]}
