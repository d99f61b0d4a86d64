"""The status of a Backup or Restore as JSON: conditions and phase (backup.md 3.2, 3.3, 4.2).

The Job writes to it as well, so that only what changes is ever sent, and what is not known here stays.
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
WAITING = "Waiting"
"""What an object waits for, while it is True. v1.6 knows no such condition; the phase stays as it is."""

_CONTINUED = "Continued"
"""The reason of a wait that is over."""

_KEEPS_PHASE = (RESTART, WAITING)
"""Conditions that are recorded beside the phase."""
_ENDS = {COMPLETE: COMPLETE, "VolumeBackupComplete": COMPLETE, FAILED: FAILED, "VolumeBackupFailed": FAILED}
"""How it ended, by the condition that says so; v1.6 ends those of mode volume-snapshot with conditions of their own."""


def holds(status: Json, kind: str) -> bool:
    """Whether there is a condition of that type, and True: none is ever taken back (3.2)."""
    return condition_of(status.get("conditions") or (), kind).get("status") == "True"


def ended(status: Json) -> str:
    """How it has ended, `COMPLETE` or `FAILED`, under us or under v1.6; empty while it goes on."""
    return next((end for kind, end in _ENDS.items() if holds(status, kind)), "")


def with_words(part: Json, kind: str, reason: str = "", message: str = "") -> Json:
    """A status, or a part of it, whose condition of a kind tells something else, or nothing; all else stays."""
    told = {key: text for key, text in (("reason", reason), ("message", message)) if text}

    def changed(condition: Json) -> Json:
        return {key: value for key, value in condition.items() if key not in ("reason", "message")} | told

    conditions = part.get("conditions") or ()
    return part | {"conditions": [changed(each) if each.get("type") == kind else each for each in conditions]}


def with_wait(status: Json, wait: NotDone | None, now: datetime) -> Json:
    """The status with what the object waits for, None: nothing; another reason is a new wait, from now on."""
    conditions: Sequence[Json] = status.get("conditions") or ()
    before = condition_of(conditions, WAITING)
    if wait is None:
        is_over = not before or before.get("status") == "False"
        return status if is_over else with_condition(status, WAITING, now, _CONTINUED, is_true=False)
    if before.get("reason") != wait.reason:
        status = status | {"conditions": [each for each in conditions if each is not before]}
    return with_condition(status, WAITING, now, wait.reason, wait.message)


def is_told(status: Json, wait: NotDone) -> bool:
    """Whether another condition, one that v1.6 has too, already says what is waited for, in the same words."""
    parts: list[Json] = [status, *(status.get("logSubCommandStatuses") or {}).values()]
    conditions = (each for part in parts for each in part.get("conditions") or ())
    return any(each.get("message") == wait.message for each in conditions if each.get("type") != WAITING)


def with_condition(
    status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
) -> Json:
    """The status with a condition, which is also its phase; one that becomes untrue leaves the phase, except Clean."""
    keeps = kind in _KEEPS_PHASE or (not is_true and kind != CLEAN)
    return backup_conditions.with_condition(status, kind, now, reason, message, is_true=is_true, keeps_phase=keeps)
