"""Differences between a log backup's status and its task in the cluster, and their resolution (backup.md 3.8). Pure.

The status takes over what users do with `br log …`; then the operator compares it with the spec again. The operator
also clears a failure when the task runs again, whereas v1.6 keeps the phase of the failure.
"""

from dataclasses import dataclass

from apis import log_backups
from apis.backups import BackupSpec
from apis.log_backups import COMPLETE, FAILED, PAUSE, RESUME, RUNNING, START, STOP, LogCondition
from controllers.job_owners.status import RETRY_FAILED
from dataplane.log_backups import MANUAL, LogTask
from kube.objects import Json

_REASON = "LogBackupKernelSync"
_MISSING, _PAUSED, _RUNNING = "missing", "paused", "running"
_MEANS = {START: _RUNNING, RESUME: _RUNNING, PAUSE: _PAUSED, STOP: _MISSING}
"""The state of the task after each sub-command."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The condition that the status must have, after a second read confirms it unless it `is_certain`."""

    condition: LogCondition
    is_certain: bool = False


def finding(spec: BackupSpec, status: Json, name: str, task: LogTask) -> Finding | None:
    """The finding from the task of a log backup that has begun; None if it agrees with the status.

    The task shows whether it is paused.
    """
    command, state = log_backups.due_command(spec, status), _state(task)
    if not log_backups.is_in_sync(command, status):
        has_failed = log_backups.entry(status, command).get("phase") == FAILED
        return _synced(command, state) if has_failed and _MEANS[command] == state else None
    if state == _MISSING:
        return Finding(LogCondition(START, FAILED, "LogBackupTaskNotFound", _not_found(name)))
    if command == PAUSE:
        return _of_paused(status, state)
    if state == _RUNNING:
        is_reported = status.get("phase") == RUNNING
        return None if is_reported else Finding(LogCondition(START, RUNNING, _REASON, _message(state)), is_certain=True)
    if task.paused != MANUAL:
        message = f"TiKV has paused the log backup: {task.paused}; remove the cause, then run `br log resume`"
        return Finding(LogCondition(START, RETRY_FAILED, "LogBackupErrorPaused", message), is_certain=True)
    return _synced(PAUSE, state)


def _of_paused(status: Json, state: str) -> Finding | None:
    if state != _PAUSED:
        return _synced(RESUME, state)
    return _synced(PAUSE, state) if log_backups.entry(status, PAUSE).get("phase") == FAILED else None


def _synced(command: str, state: str) -> Finding:
    return Finding(LogCondition(command, COMPLETE, _REASON, _message(state)))


def _state(task: LogTask) -> str:
    if not task.exists:
        return _MISSING
    return _PAUSED if task.paused else _RUNNING


def _message(state: str) -> str:
    return f"Synced with kernel state: {state}"


def _not_found(name: str) -> str:
    return f"the cluster has no log backup {name}: it was stopped by hand, or PD has lost it; create another Backup"
