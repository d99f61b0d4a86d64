"""Log backups: which sub-command is due, and how its progress changes the status (backup.md 3.8). Pure.

    "" → log-start: Scheduled, Prepare, Running → Running ⇄ Paused → Stopped; log-truncate runs beside

Each sub-command has its own phase and conditions in `logSubCommandStatuses`. This module derives the status of the
whole from them, for the operator and for the pods of its Jobs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from apis.backup_conditions import with_condition
from apis.backups import BackupSpec
from apis.shared import Json

START, STOP, PAUSE, RESUME, TRUNCATE = "log-start", "log-stop", "log-pause", "log-resume", "log-truncate"
COMMANDS = (START, STOP, PAUSE, RESUME, TRUNCATE)

RUNNING, PAUSED, STOPPED, REPEATABLE = "Running", "Paused", "Stopped", "Repeatable"
COMPLETE, FAILED = "Complete", "Failed"

_BECOMES = {STOP: STOPPED, PAUSE: PAUSED, RESUME: RUNNING}
"""The phase of the whole after a sub-command has completed."""
_OPPOSITE = {PAUSE: RESUME, RESUME: PAUSE}
_TIMES = ("timeStarted", "timeCompleted")
_OF_ENTRY = (*_TIMES, "logTruncatingUntil")
_NOT_OF_WHOLE = {
    START: ("timeCompleted", "logTruncatingUntil"),
    STOP: ("timeStarted",),
    PAUSE: _TIMES,
    RESUME: _TIMES,
    TRUNCATE: _OF_ENTRY,
}
"""Fields of a completed sub-command that are not about the whole."""


def due(spec: BackupSpec, status: Json) -> str:
    """The sub-command that the spec requires now; a completed one if there is nothing to do."""
    command = due_command(spec, status)
    return TRUNCATE if is_in_sync(command, status) and _wants_truncation(spec, status) else command


def due_command(spec: BackupSpec, status: Json) -> str:
    """The due sub-command, without truncation.

    A log must have started before it is paused or stopped, and a stopped one stays stopped; v1.6 starts a Job that must
    fail.
    """
    command = _command_of_spec(spec, str(status.get("phase") or ""))
    if command in (PAUSE, STOP) and not status.get("commitTs") and (command == PAUSE or entry(status, START)):
        return START
    return command


def is_in_sync(command: str, status: Json) -> bool:
    """True if a sub-command has already done its work."""
    if command == START:
        return bool(status.get("commitTs"))
    return command in _BECOMES and status.get("phase") == _BECOMES[command]


def entry(status: Json, command: str, truncate_until: str = "") -> Json:
    """The state of a sub-command; empty if it never ran, or truncated to another moment."""
    found: Json = (status.get("logSubCommandStatuses") or {}).get(command) or {}
    if command == TRUNCATE and str(found.get("logTruncatingUntil") or "") != truncate_until:
        return {}
    return found


@dataclass(frozen=True, slots=True)
class LogCondition:
    """A condition of a sub-command, `kind` is its type."""

    command: str
    kind: str
    reason: str = ""
    message: str = ""


def with_command(
    status: Json, condition: LogCondition, now: datetime, fields: Mapping[str, object] | None = None
) -> Json:
    """The status after a condition of a sub-command is written, with its fields."""
    given, command = dict(fields or {}), condition.command
    before: Json = {"command": command} | ((status.get("logSubCommandStatuses") or {}).get(command) or {})
    own = with_condition(before, condition.kind, now, condition.reason, condition.message)
    own |= {key: given[key] for key in _OF_ENTRY if key in given}
    whole = _with_phase(status, condition, now)
    if command == START or condition.kind == COMPLETE:
        left_out = _NOT_OF_WHOLE[command] if condition.kind == COMPLETE else ("logTruncatingUntil",)
        whole |= {key: value for key, value in given.items() if key not in left_out}
    return whole | {"logSubCommandStatuses": _with_repeatable(status, command) | {command: own}}


def _command_of_spec(spec: BackupSpec, phase: str) -> str:
    if phase == STOPPED or spec.log_stop or spec.log_subcommand == STOP:
        return STOP
    if spec.log_subcommand == PAUSE:
        return PAUSE
    return RESUME if phase == PAUSED else START


def _wants_truncation(spec: BackupSpec, status: Json) -> bool:
    until = spec.log_truncate_until
    if not until or until == status.get("logSuccessTruncateUntil"):
        return False
    return entry(status, TRUNCATE, until).get("phase") != COMPLETE


def _with_phase(status: Json, condition: LogCondition, now: datetime) -> Json:
    kind = condition.kind
    if condition.command == START:
        kind = "" if kind == COMPLETE else kind
    else:
        kind = _BECOMES.get(condition.command, "") if kind == COMPLETE else ""
    return with_condition(status, kind, now, condition.reason, condition.message) if kind else dict(status)


def _with_repeatable(status: Json, command: str) -> Json:
    """The entries; a pause makes a resume possible again, and vice versa."""
    entries: Json = dict(status.get("logSubCommandStatuses") or {})
    opposite = _OPPOSITE.get(command, "")
    if opposite in entries:
        entries[opposite] = entries[opposite] | {"phase": REPEATABLE}
    return entries
