"""Due times of a schedule: v1.6's syntax of `spec.schedule` (backup.md 5). Pure.

    minute hour day month weekday      @daily and the like      @every 6h

Each may be prefixed with `CRON_TZ=Europe/Berlin `.

Days are matched as in v1.6: if both are restricted, one is enough. A time of day that a change to summer time skips is
due right after the gap, and one that occurs twice counts once; v1.6 skips the first, and counts the second twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ports import duration

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_ZONE = re.compile(r"(?:CRON_)?TZ=(\S*)\s+")
_STEP = re.compile(r"\*/0*(?:[2-9]|1\d)\d*")
_WINDOWS = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366))
"""The windows in which the latest time is searched: short for frequent schedules, few steps for rare ones."""
_ANY_TIME = datetime(2024, 1, 1, tzinfo=UTC)


class BadSchedule(ValueError):
    """Raised for a text that is not a schedule; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Recurring times: by cron's `fields` in a zone, or at intervals from `anchor`."""

    fields: str
    zone: tzinfo
    every: timedelta | None
    anchor: datetime

    def after(self, time: datetime) -> Iterator[datetime]:
        """The times after `time`, ascending, in UTC; they end where there is none in fifty years."""
        if self.every is not None:
            yield from _spaced(self.every, self.anchor, time)
            return
        for each in CronSim(self.fields, time.astimezone(self.zone)):
            # a time of day that occurs twice counts at its first occurrence, which may be in the past
            if (found := each.astimezone(UTC)) > time:
                yield found

    def next(self, time: datetime) -> datetime | None:
        """The first time after `time`."""
        return next(self.after(time), None)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last time after `after` and not after `until`."""
        for window in (*_WINDOWS, until - after):
            start = max(after, until - window)
            found = None
            for time in self.after(start):
                if time > until:
                    break
                found = time
            if found is not None or start == after:
                return found
        return None


def parse(text: str, anchor: datetime = _ANY_TIME, usual: str = "") -> Schedule:
    """The schedule of a text; `@every` counts from `anchor`, and `usual` is the zone where the text names none.

    Raises BadSchedule.
    """
    text = text.strip()
    zone = _usual_zone(usual)
    if named := _ZONE.match(text):
        zone, text = _zone(named[1]), text[named.end() :].strip()
    if text.startswith(_EVERY):
        return Schedule("", zone, _every(text.removeprefix(_EVERY).strip()), anchor)
    if text.startswith("@") and text not in _NAMED:
        raise BadSchedule(f"{text} is unknown; use one of {', '.join(_NAMED)}, or @every with a duration")
    schedule = Schedule(_fields(_NAMED.get(text, text)), zone, None, anchor)
    if schedule.next(_ANY_TIME) is None:
        raise BadSchedule("never comes; correct day and month")
    return schedule


def _fields(text: str) -> str:
    fields = text.replace("?", "*").split()
    if len(fields) != 5:
        message = f"has {len(fields)} fields in place of 5: minute, hour, day, month, weekday, such as 0 3 * * 1-5"
        raise BadSchedule(message)
    # the library treats a leading * as no restriction, v1.6 only without a step
    fields[2] = _STEP.sub(lambda found: f"1-31{found[0][1:]}", fields[2])
    fields[4] = _STEP.sub(lambda found: f"0-6{found[0][1:]}", fields[4])
    joined = " ".join(fields)
    try:
        CronSim(joined, _ANY_TIME)
    except CronSimError as error:
        raise BadSchedule(f"{str(error).lower()}; write five fields such as 0 3 * * 1-5") from error
    return joined


def _every(text: str) -> timedelta:
    try:
        seconds = duration.seconds(text)
    except ValueError as error:
        raise BadSchedule(str(error)) from error
    if seconds <= 0:
        raise BadSchedule(f"@every {text} must be more than 0")
    return timedelta(seconds=max(int(seconds), 1))


def _spaced(every: timedelta, anchor: datetime, time: datetime) -> Iterator[datetime]:
    found = anchor + max((time - anchor) // every + 1, 1) * every
    while True:
        yield found
        found += every


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadSchedule(f"time zone {name} is unknown; use a name such as Europe/Berlin") from error


def _usual_zone(name: str) -> tzinfo:
    """The zone of the process: UTC unless the environment names a known one, as in Go."""
    try:
        return _zone(name)
    except BadSchedule:
        return UTC
