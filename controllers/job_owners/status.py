"""The status of a Backup or Restore as JSON: conditions and phase (backup.md 3.2, 3.3, 4.2).

The Job writes to it as well, so that only what changes is ever sent, and what is not known here stays.
"""

from datetime import datetime
from typing import Protocol

from apis.times import stamp
from kube.objects import Json, condition_of

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

_KEEPS_PHASE = (RESTART,)
"""What is noted beside the phase."""


class WithCondition(Protocol):
    """Writes into a status, which stays as it is, how the object of a kind stands."""

    def __call__(
        self, status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
    ) -> Json:
        """The status with what `kind` says; see `with_condition`."""


def holds(status: Json, kind: str) -> bool:
    """Whether there is a condition of that type, and True: none is ever taken back (3.2)."""
    return condition_of(status.get("conditions") or (), kind).get("status") == "True"


def with_condition(
    status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
) -> Json:
    """The status with a condition, which is also its phase.

    The time of transition stays where the status does, unless the phase was another. One that becomes untrue says so,
    and leaves the phase, except Clean, which begins with that.
    """
    conditions: list[Json] = status.get("conditions") or []
    before = condition_of(conditions, kind)
    value = str(is_true)
    keeps = kind in _KEEPS_PHASE or (not is_true and kind != CLEAN)
    is_same_phase = keeps or status.get("phase") == kind
    said = {"reason": reason, "message": message}
    made: Json = {"type": kind, "status": value, **{key: text for key, text in said.items() if text}}
    since = before.get("lastTransitionTime") if is_same_phase and before.get("status") == value else None
    made["lastTransitionTime"] = since or stamp(now)
    others = [made if each is before else each for each in conditions] if before else [*conditions, made]
    return status | {"conditions": others} | ({} if keeps else {"phase": kind})
