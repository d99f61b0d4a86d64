"""The conditions of a schedule; v1.6 has none (backup.md 5).

Valid                 False: the mistakes of the spec
Active                True: when the next backup is due; False: why none is made
LastBackupComplete    the result of the last backup that has ended
LogBackupRuns         True while the log backup runs; the reason is the phase of its Backup
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from controllers.backup_schedule.made import Made
from controllers.conditions import INVALID, ConditionValue
from controllers.conditions import with_condition as _with
from controllers.job_owners.status import COMPLETE
from controllers.job_owners.status import INVALID as UNREADABLE
from kube.objects import Json, condition_of

VALID = "Valid"
ACTIVE = "Active"
LAST_BACKUP_COMPLETE = "LastBackupComplete"
LOG_BACKUP_RUNS = "LogBackupRuns"

LAST_BACKUP_RUNS, GROUP_RUNS = "LastBackupRuns", "GroupRuns"
"""Reasons of Active while a due backup waits for another one."""

_WITHOUT_EVENT = (INVALID, "Paused", "CreateFailed")
"""Reasons of Active without an event: Valid has one, the user requested the pause, or the creation recorded one."""


def with_conditions(status: Json, changes: dict[str, ConditionValue], now: datetime) -> Json:
    """The status with the conditions `changes` added or updated."""
    conditions: Sequence[Json] = status.get("conditions") or []
    for kind, value in changes.items():
        conditions = _with(conditions, kind, value, now)
    return status | {"conditions": list(conditions)}


def with_refusal(
    status: Json, kind: str, now: datetime, reason: str = "", message: str = "", *, is_true: bool = True
) -> Json:
    """The status of a schedule that cannot be decoded (`controllers.job_owners.job_owner.WithCondition`)."""
    refused = kind == UNREADABLE and is_true
    value = (not refused, reason, message)
    return with_conditions(status, {VALID: value, ACTIVE: value} if refused else {VALID: value}, now)


def valid(problems: str) -> ConditionValue:
    """The value of Valid."""
    return (False, INVALID, problems) if problems else (True, VALID, "the spec is valid")


def news(status: Json, conditions: Mapping[str, ConditionValue]) -> Iterator[tuple[str, str, str]]:
    """Obstacles to backups that the status does not show yet: condition, reason, message."""
    for kind in (VALID, ACTIVE):
        holds, reason, message = conditions.get(kind, (True, "", ""))
        before = condition_of(status.get("conditions") or (), kind).get("message")
        if not holds and message != before and (kind == VALID or reason not in _WITHOUT_EVENT):
            yield kind, reason, message


def new_wait(status: Json, conditions: Mapping[str, ConditionValue]) -> tuple[str, str] | None:
    """Reason and message of the wait for another backup, if the stored status does not have it yet."""
    _, reason, message = conditions.get(ACTIVE, (True, "", ""))
    before = condition_of(status.get("conditions") or (), ACTIVE).get("reason")
    return (reason, message) if reason in (LAST_BACKUP_RUNS, GROUP_RUNS) and reason != before else None


def last_backup(backups: Sequence[Made]) -> ConditionValue | None:
    """The value of LastBackupComplete; None if no backup has ended."""
    ended = sorted((backup for backup in backups if backup.end and not backup.is_log), key=lambda each: each.created)
    if not ended:
        return None
    last = ended[-1]
    if last.end == COMPLETE:
        return True, last.end, _complete(last)
    good = [backup for backup in ended if backup.is_good]
    before = f"the last good one is {_complete(good[-1])}" if good else "there is no good one"
    return False, last.end, f"{last.name}: {last.why or last.end}; {before}"


def _complete(backup: Made) -> str:
    return f"{backup.name}, complete since {backup.completed}" if backup.completed else backup.name
