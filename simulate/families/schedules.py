"""Schedules of backups when time jumps, and log backups with a sequence of commands.

`schedule/paused-30d` creates a schedule that is due each minute, pauses it, and resumes it 30 days later.
`schedule/away-3d` stops the operator meanwhile; `schedule/back-1h` and `ahead-1h` set the clock back and forward;
`schedule/spring` and `autumn` cover the nights in which Berlin's clocks change; `schedule/two` has two schedules at the
same seconds, `schedule/group` two in one group. With the suffix `@7`, the operator crashes after its 7th write.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES
from member.backups.naming import GROUP_LABEL
from ports.clock import FakeClock
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, InvalidPlan, Plan
from simulate.families import backups
from simulate.families.family import Family

EVERY_MINUTE = "* * * * *"
_AT_NIGHT = "CRON_TZ=Europe/Berlin */2 1-3 * * *"
_BUDGET = 260.0
_BEGINS, _LEAVES, _RETURNS, _ENDS = 1.0, 100.0, 140.0, 215.0
_DAY = 86400.0
_WRITES = (2, 7, 12, 20)
"""The writes after which the operator may crash; a minute has about ten."""

Events = tuple[Edit | plans.Fault, ...]


def _schedule(name: str = "often", when: str = EVERY_MINUTE, labels: Mapping[str, str] | None = None) -> Edit:
    """A schedule that keeps three backups."""
    template: Json = backups.to(name) | {"cleanPolicy": "Delete"}
    body: Json = {"spec": {"schedule": when, "maxBackups": 3, "backupTemplate": template}}
    body |= {"metadata": {"name": name, "labels": dict(labels)}} if labels else {}
    return Edit(at=_BEGINS, target=f"{BACKUP_SCHEDULES}/{name}", body=body)


def _pause(at: float, paused: bool, name: str = "often") -> Edit:
    return Edit(at=at, target=f"{BACKUP_SCHEDULES}/{name}", spec={"pause": paused})


def _jump(seconds: float, at: float = (_LEAVES + _RETURNS) / 2) -> plans.Fault:
    return plans.Jump(at=at, seconds=seconds)


def _to(when: datetime) -> plans.Fault:
    """Set the time of day a moment before the plan begins."""
    return _jump((when - FakeClock().wall()).total_seconds(), at=0.1)


def _paused(days: float) -> Events:
    return _schedule(), _pause(_LEAVES, True), _jump(days * _DAY), _pause(_RETURNS, False)


def _away(days: float) -> Events:
    return _schedule(), plans.Crash(at=_LEAVES, seconds=_RETURNS - _LEAVES), _jump(days * _DAY)


def _night(when: datetime) -> Events:
    """A night from two minutes before its clocks change, then half an hour later."""
    return _schedule(when=_AT_NIGHT), _to(when - timedelta(minutes=2)), _jump(1800.0)


_TWO, _GROUP = _OF_TWO = ("two", "group")

_CASES: Mapping[str, Events] = {
    "steady": (_schedule(),),
    "paused-3d": _paused(3),
    "paused-30d": _paused(30),
    "away-3d": _away(3),
    "away-30d": _away(30),
    "ahead-1h": (_schedule(), _jump(3600.0)),
    "ahead-1d": (_schedule(), _jump(_DAY)),
    "back-1m": (_schedule(), _jump(-60.0)),
    "back-1h": (_schedule(), _jump(-3600.0)),
    "spring": _night(datetime(2026, 3, 29, 1, tzinfo=UTC)),
    "autumn": _night(datetime(2026, 10, 25, 1, tzinfo=UTC)),
    _TWO: (_schedule(), _schedule("twin")),
    _GROUP: tuple(_schedule(each, labels={GROUP_LABEL: "all"}) for each in ("often", "twin")),
}


def _plan(rest: str) -> Plan:
    """The plan called `schedule/<rest>`. Raises InvalidPlan."""
    case, _, write = rest.partition("@")
    if case not in _CASES or (write and not write.isdecimal()):
        raise InvalidPlan(f"{rest!r} is no `CASE` or `CASE@WRITE` with a case out of {', '.join(_CASES)}")
    events = _CASES[case]
    ends = [_pause(_ENDS, True, name) for name in ("often", *["twin"] * (case in _OF_TWO))]
    crash = (plans.Crash(write=int(write)),) if write else ()
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster="tiny",
        budget=_BUDGET,
        edits=(backups.account(), *(event for event in events if isinstance(event, Edit)), *ends),
        given=(backups.data(),),
        faults=(*(event for event in events if not isinstance(event, Edit)), *crash),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    """Each case, without and with crashes."""
    for case in _CASES:
        yield _plan(case)
        for write in _WRITES:
            yield _plan(f"{case}@{write}")


FAMILY = Family("schedule", _plan, _plans)
