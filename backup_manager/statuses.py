"""Changes of a Backup's or Restore's status (backup.md 3.2, 3.3, 4.1). Pure: from one JSON tree to another.

Trees, not models, so that fields of other versions survive.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from apis import backup_conditions
from apis.backup_conditions import VERIFIED
from apis.times import parse_time, stamp
from backup_manager.br_log import OperationLine, ProgressLine
from kube.objects import Json, condition_of
from ports import duration

RESTART = "Restart"

_KEEPS_PHASE = (RESTART, VERIFIED)
"""The conditions that never become the phase (backup.md 3.3)."""

_OPERATIONS = 10


@dataclass(frozen=True, slots=True)
class Condition:
    """An entry of `status.conditions`."""

    type: str
    reason: str = ""
    message: str = ""
    is_true: bool = True


def with_condition(status: Json, condition: Condition, now: datetime) -> Json:
    """The status with the condition and its phase; earlier conditions are unchanged."""
    return backup_conditions.with_condition(
        status,
        condition.type,
        now,
        condition.reason,
        condition.message,
        is_true=condition.is_true,
        keeps_phase=condition.type in _KEEPS_PHASE,
    )


def holds(status: Json, type_: str) -> bool:
    """True if the condition is True."""
    return condition_of(status.get("conditions") or (), type_).get("status") == "True"


def with_fields(status: Json, fields: Mapping[str, object]) -> Json:
    """The status with other fields, and with `timeTaken`, which follows from two of them."""
    changed = status | dict(fields)
    if "timeCompleted" in fields:
        started, completed = (parse_time(str(changed.get(name))) for name in ("timeStarted", "timeCompleted"))
        if started and completed:
            changed["timeTaken"] = duration.go_text(round((completed - started).total_seconds()))
    return changed


def with_progress(status: Json, line: ProgressLine, now: datetime) -> Json:
    """The status with a step's progress, which only increases; a new step completes the previous one."""
    progresses: list[Json] = list(status.get("progresses") or ())
    entry = {"step": line.step, "progress": line.percent, "lastTransitionTime": stamp(now)}
    for index, each in enumerate(progresses):
        if each.get("step") != line.step:
            continue
        if float(each.get("progress") or 0) >= line.percent:
            return status
        return status | {"progresses": [*progresses[:index], entry, *progresses[index + 1 :]]}
    if progresses and float(progresses[-1].get("progress") or 0) < 100:
        progresses[-1] = progresses[-1] | {"progress": 100, "lastTransitionTime": stamp(now)}
    return status | {"progresses": [*progresses, entry]}


def with_operation(status: Json, line: OperationLine, now: datetime) -> Json:
    """The status with a BR operation: newest first, each once, at most ten."""
    there: list[Json] = list(status.get("brOperations") or ())
    if any(each.get("operationID") == line.operation_id for each in there):
        return status
    entry = {"operationID": line.operation_id, "command": line.command, "observedAt": stamp(now)}
    if line.started_at:
        entry["startedAt"] = line.started_at
    return status | {"brOperations": [entry, *there][:_OPERATIONS]}
