"""Checks of BackupSchedules by the existing Backups (backup.md 5).

| Rule | |
|---|---|
| schedule-one | a schedule, or group of schedules, has at most one unfinished Backup |
| schedule-slot | between two Backups of a schedule, one became due |
| schedule-missed | a due Backup is created within a minute, unless an older one is unfinished, or it is paused |
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from apis import cron
from apis.times import parse_time
from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES, BACKUPS
from member.backups.naming import GROUP_LABEL, SCHEDULE_LABEL
from simulate.engine.state import State
from simulate.invariants.facts import Found, phase_of

_ENDS = ("Complete", "Failed", "Invalid")

_LATE = 60.0
"""Seconds for which a due Backup may be missing: the operator is away for less."""


class ScheduleJudge:
    """Checks one namespace."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._made: dict[str, tuple[str, datetime]] = {}
        """The last Backup of each schedule, by name: its UID and creation time."""
        self._due_since: dict[str, float] = {}
        """Since when a Backup of a schedule has been due, by name, in monotonic seconds."""

    def look(self) -> Iterator[Found]:
        """The current violations."""
        schedules = {schedule["metadata"]["name"]: schedule for schedule in self._state.all(BACKUP_SCHEDULES)}
        if not schedules:
            return
        unfinished: Counter[str] = Counter()
        for backup in self._state.all(BACKUPS):
            of = schedules.get(_schedule_of(backup))
            if of is not None:
                unfinished[_group(of)] += _goes_on(backup)
                yield from self._slot(of, backup)
        for schedule in schedules.values():
            yield from self._missed(schedule)
        for group, count in unfinished.items():
            if count > 1:
                yield "schedule-one", f"{count} Backups of {group} have not ended"

    def _missed(self, schedule: Json) -> Iterator[Found]:
        """A Backup that was due a while ago and is missing, without another one in its way."""
        name, now = schedule["metadata"]["name"], self._state.now
        due = _times(schedule).latest(_created(schedule), datetime.fromtimestamp(self._state.wall, UTC))
        last = self._made.get(name)
        if due is None or schedule["spec"].get("pause") or self._is_busy(schedule) or (last and last[1] >= due):
            self._due_since.pop(name, None)
        elif now - self._due_since.setdefault(name, now) > _LATE:
            yield "schedule-missed", f"BackupSchedule {name} was due at {due}, its last Backup is {last}"

    def _slot(self, schedule: Json, backup: Json) -> Iterator[Found]:
        name, uid, time = schedule["metadata"]["name"], backup["metadata"]["uid"], _created(backup)
        before = self._made.get(name)
        if before is not None and (uid == before[0] or time < before[1]):
            return
        self._made[name] = uid, time
        if before is not None and _times(schedule).latest(before[1], time) is None:
            yield "schedule-slot", f"{backup['metadata']['name']} is made though none was due since {before[1]}"

    def _is_busy(self, schedule: Json) -> bool:
        groups = {each["metadata"]["name"]: _group(each) for each in self._state.all(BACKUP_SCHEDULES)}
        of = (_schedule_of(backup) for backup in self._state.all(BACKUPS) if _goes_on(backup))
        return _group(schedule) in [groups.get(each, "") for each in of]


def _schedule_of(backup: Json) -> str:
    return str((backup["metadata"].get("labels") or {}).get(SCHEDULE_LABEL, ""))


def _goes_on(backup: Json) -> bool:
    return phase_of(backup) not in _ENDS and "deletionTimestamp" not in backup["metadata"]


def _group(schedule: Json) -> str:
    labels = schedule["metadata"].get("labels") or {}
    group, name = labels.get(GROUP_LABEL, ""), schedule["metadata"]["name"]
    return f"group {group}" if group else f"schedule {name}"


def _times(schedule: Json) -> cron.Schedule:
    return cron.parse(schedule["spec"]["schedule"], _created(schedule), "UTC")


def _created(tree: Json) -> datetime:
    time = parse_time(tree["metadata"]["creationTimestamp"])
    assert time is not None
    return time
