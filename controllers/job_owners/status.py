"""The status of a Backup or Restore as JSON: conditions and phase (backup.md 3.2, 3.3, 4.2).

The Job writes to it as well, so the operator sends only changes and keeps unknown fields.
"""

from collections.abc import Sequence
from datetime import datetime

from apis import backup_conditions
from kube.objects import Json, condition_of
from member.outcome import NotDone

SCHEDULED = "Scheduled"
PREPARE = "Prepare"
RUNNING = "Running"
COMPLETE = "Complete"
FAILED = "Failed"
RETRY_FAILED = "RetryFailed"
INVALID = "Invalid"
RESTART = "Restart"
CLEAN = "Clean"
CLEAN_FAILED = "CleanFailed"
PRUNE_SCHEDULED = "PruneScheduled"
PRUNE_RUNNING = "PruneRunning"
PRUNE_COMPLETE = "PruneComplete"
PRUNE_FAILED = "PruneFailed"
SNAPSHOT_RESTORE = "SnapshotRestore"
LOG_RESTORE = "LogRestore"
"""The steps of a replication restore, in v1.7."""
SNAPSHOT_RESTORED = "SnapshotRestored"
COMPACT_SETTLED = "CompactSettled"
"""The marks that the second step requires: the first one is done, and the compaction will change nothing more."""
WAITING = "Waiting"
"""True while an object waits; the message names what for. v1.6 has no such condition; it does not change the phase."""

_CONTINUED = "Continued"
"""The reason of Waiting after the end of a wait."""

_KEEPS_PHASE = (RESTART, WAITING, SNAPSHOT_RESTORED, COMPACT_SETTLED)
"""Conditions that do not change the phase."""
_ENDS = {COMPLETE: COMPLETE, "VolumeBackupComplete": COMPLETE, FAILED: FAILED, "VolumeBackupFailed": FAILED}
"""The end of an object by the condition that reports it; v1.6 has separate ones for the mode volume-snapshot."""


def holds(status: Json, kind: str) -> bool:
    """True if the status has a condition of that type that is True. The operator never removes one (3.2)."""
    return condition_of(status.get("conditions") or (), kind).get("status") == "True"


def ended(status: Json) -> str:
    """`COMPLETE` or `FAILED` if the object has ended, under this operator or v1.6; else empty."""
    return next((end for kind, end in _ENDS.items() if holds(status, kind)), "")


def with_words(part: Json, kind: str, reason: str = "", message: str = "") -> Json:
    """A status, or a part of it, with another reason and message in the condition of a kind; empty ones are removed."""
    texts = {key: text for key, text in (("reason", reason), ("message", message)) if text}

    def changed(condition: Json) -> Json:
        return {key: value for key, value in condition.items() if key not in ("reason", "message")} | texts

    conditions = part.get("conditions") or ()
    return part | {"conditions": [changed(each) if each.get("type") == kind else each for each in conditions]}


def with_wait(status: Json, wait: NotDone | None, now: datetime) -> Json:
    """The status with the condition Waiting; `wait` None ends it. Another reason is a new wait, which begins now."""
    conditions: Sequence[Json] = status.get("conditions") or ()
    before = condition_of(conditions, WAITING)
    if wait is None:
        is_over = not before or before.get("status") == "False"
        return status if is_over else with_condition(status, WAITING, now, _CONTINUED, is_true=False)
    if before.get("reason") != wait.reason:
        status = status | {"conditions": [condition for condition in conditions if condition is not before]}
    return with_condition(status, WAITING, now, wait.reason, wait.message)


def is_reported(status: Json, wait: NotDone) -> bool:
    """True if another condition already has the message of the wait."""
    parts: list[Json] = [status, *(status.get("logSubCommandStatuses") or {}).values()]
    conditions = (condition for part in parts for condition in part.get("conditions") or ())
    return any(condition.get("message") == wait.message for condition in conditions if condition.get("type") != WAITING)


def with_condition(
    status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
) -> Json:
    """The status with a condition, which also becomes the phase; a False one does not, except Clean."""
    keeps = kind in _KEEPS_PHASE or (not is_true and kind != CLEAN)
    return backup_conditions.with_condition(status, kind, now, reason, message, is_true=is_true, keeps_phase=keeps)
