"""Backups and restores with a fault in the middle, step by step.

`backup/killed@7`: a table is saved, lost and restored; seven steps after the Backup was created, the process in its pod
ends. `backup/restore-killed@7` is the same for the Restore. `backup/call@7`: the process ends right after its seventh
call to the API server, storage or PD.
"""

from collections.abc import Callable, Iterator, Mapping

from simulate.engine import plan as plans
from simulate.engine.plan import Edit, InvalidPlan, Plan
from simulate.engine.worlds import KEY, NAMESPACE
from simulate.families import backups
from simulate.families.family import Family

_STEP = 0.4
"""Seconds of a step; BR takes half of it per region."""
_STEPS = 25
_CALLS = 90
"""The number of external calls of a Backup's pod; a Restore's has a third."""
_BEGINS, _LOST, _RESTORED = 1.0, 60.0, 65.0
_BUDGET = 200.0
_LASTS = 20.0
"""Seconds for which storage fails."""

_Break = Callable[[str, int], plans.Fault | Edit]
"""The events of a fault in the Backup or Restore (`backup` or `restore`) at a step."""


def _at(job: str, step: int) -> float:
    begins = _RESTORED if job == "restore" else _BEGINS
    return round(begins + step * _STEP, 3)


def _pods(job: str) -> str:
    return f"{NAMESPACE}/{job}-demo-*"


def _killed(job: str, step: int) -> plans.Fault:
    return plans.World(at=_at(job, step), verb="pod_crash", arguments={"pod": _pods(job)}, seconds=0.0)


def _evicted(job: str, step: int) -> plans.Fault:
    return plans.World(at=_at(job, step), verb="pod_evicted", arguments={"pod": _pods(job)}, seconds=0.0)


def _ends_after_call(job: str, call: int) -> plans.Fault:
    return plans.World(at=0.5, verb="command_ends", arguments={"pod": _pods(job), "call": call}, seconds=0.0)


def _hung(job: str, step: int) -> plans.Fault:
    return plans.World(at=_at(job, step), verb="pod_hang", arguments={"pod": _pods(job)}, seconds=_LASTS)


def _job_gone(job: str, step: int) -> plans.Fault:
    return plans.Deleted(at=_at(job, step), target=f"jobs.batch/{job}-demo", propagation="Background")


def _no_leader(job: str, step: int) -> plans.Fault:
    return plans.World(at=_at(job, step), verb="pd_no_leader", arguments={"cluster": KEY}, seconds=_LASTS)


def _store(job: str, step: int) -> plans.Fault:
    return plans.World(at=_at(job, step), verb="pod_crash", arguments={"pod": f"{KEY}-tikv-0"}, seconds=0.0)


def _storage(trouble: str) -> _Break:
    def breaks(job: str, step: int) -> plans.Fault:
        arguments = {"bucket": backups.BUCKET, "trouble": trouble}
        return plans.World(at=_at(job, step), verb="bucket_trouble", arguments=arguments, seconds=_LASTS)

    return breaks


_CALL = "call"

_BREAKS: Mapping[str, _Break] = {
    "killed": _killed,
    "evicted": _evicted,
    _CALL: _ends_after_call,
    "hung": _hung,
    "operator": lambda job, step: plans.Crash(at=_at(job, step)),
    "job-gone": _job_gone,
    "deleted": lambda job, step: Edit(at=_at(job, step), delete=f"{job}s.pingcap.com/demo"),
    "files-deleted": lambda job, step: Edit(at=_at(job, step), delete="backups.pingcap.com/demo"),
    "no-leader": _no_leader,
    "store": _store,
    **{each: _storage(each) for each in ("fail", "deny", "full", "slow", "tear")},
}


def _plan(rest: str) -> Plan:
    """The plan called `backup/<rest>`. Raises InvalidPlan."""
    what, _, step = rest.partition("@")
    job = "restore" if what.startswith("restore-") else "backup"
    breaks = _BREAKS.get(what.removeprefix("restore-"))
    if breaks is None or not step.isdecimal():
        known = ", ".join(_BREAKS)
        raise InvalidPlan(f"{rest!r} is no `BREAK@STEP` or `restore-BREAK@STEP` with a break out of {known}")
    event = breaks(job, int(step))
    edits = (
        backups.account(),
        backups.backup(_BEGINS, cleanPolicy="Delete"),
        backups.restore(_RESTORED),
        *((event,) if isinstance(event, Edit) else ()),
    )
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster="tiny",
        budget=_BUDGET,
        edits=edits,
        given=(backups.data(), backups.statements(_LOST, "DROP DATABASE IF EXISTS shop")),
        faults=() if isinstance(event, Edit) else (event,),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    """Each fault at each step of the Backup, and of the Restore as far as its steps go."""
    for what in _BREAKS:
        steps = range(1, _CALLS + 1) if what == _CALL else range(_STEPS)
        for step in steps:
            yield _plan(f"{what}@{step}")
        for step in steps[: len(steps) // 3 if what == _CALL else _STEPS // 5]:
            yield _plan(f"restore-{what}@{step}")


FAMILY = Family("backup", _plan, _plans)
