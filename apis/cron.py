"""When a schedule is due: what v1.6 reads in `spec.schedule` (backup.md 5). Pure.

    minute hour day month weekday      @daily and the like      @every 6h

each behind `CRON_TZ=Europe/Berlin ` or not.

Days are matched as v1.6 does: where both are restricted, either is enough. A time of day that a change to summer time
leaves out comes right after the gap, and one that comes twice counts once; v1.6 leaves the first out, and takes the
second twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from apis import duration

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
"""How far back the latest time is looked for: soon for frequent schedules, in few steps for seldom ones."""
_ANY_TIME = datetime(2024, 1, 1, tzinfo=UTC)


class BadSchedule(ValueError):
    """Raised for a text that names no times; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times that come again and again: by the `fields` of cron in a zone, or so often since `anchor`."""

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
            # where a time of day comes twice, the first of the two is meant, which may have been before
            if (found := each.astimezone(UTC)) > time:
                yield found

    def next(self, time: datetime) -> datetime | None:
        """The first time after `time`."""
        return next(self.after(time), None)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last time after the one and not after the other."""
        for window in (*_WINDOWS, until - after):
            start = max(after, until - window)
            found = None
            for each in self.after(start):
                if each > until:
                    break
                found = each
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
    # the library takes what begins with * for no restriction, v1.6 does so only without a step
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
    """The zone of the process, which is UTC where the environment names none that is known, as in Go."""
    try:
        return _zone(name)
    except BadSchedule:
        return UTC
