"""Backups and restores in the middle of which something breaks, step by step (issue 14).

`backup/killed@7`: a table is saved, lost and restored; seven steps after the Backup was made, the process in its pod
ends. `backup/restore-killed@7` is the same for the Restore.
"""

from collections.abc import Callable, Iterator, Mapping

from simulate import backups
from simulate import plan as plans
from simulate.plan import Edit, InvalidPlan, Plan
from simulate.worlds import KEY, NAMESPACE

FAMILY = "backup"

_STEP = 0.4
"""Seconds of a step; BR takes half of that for a region."""
_STEPS = 25
_BEGINS, _LOST, _RESTORED = 1.0, 60.0, 65.0
_BUDGET = 200.0
_LASTS = 20.0
"""Seconds for which storage fails."""

_Break = Callable[[str, float], plans.Fault | Edit]
"""What breaks: for the Backup or Restore, `backup` or `restore`, at this time."""


def _killed(job: str, at: float) -> plans.Fault:
    return plans.World(at=at, verb="pod_crash", arguments={"pod": f"{NAMESPACE}/{job}-demo-*"}, seconds=0.0)


def _hung(job: str, at: float) -> plans.Fault:
    return plans.World(at=at, verb="pod_hang", arguments={"pod": f"{NAMESPACE}/{job}-demo-*"}, seconds=_LASTS)


def _storage(trouble: str) -> _Break:
    def breaks(_: str, at: float) -> plans.Fault:
        arguments = {"bucket": backups.BUCKET, "trouble": trouble}
        return plans.World(at=at, verb="bucket_trouble", arguments=arguments, seconds=_LASTS)

    return breaks


_BREAKS: Mapping[str, _Break] = {
    "killed": _killed,
    "hung": _hung,
    "operator": lambda _, at: plans.Crash(at=at),
    "job-gone": lambda job, at: plans.Deleted(at=at, target=f"jobs.batch/{job}-demo", propagation="Background"),
    "deleted": lambda job, at: Edit(at=at, delete=f"{job}s.pingcap.com/demo"),
    "files-deleted": lambda _, at: Edit(at=at, delete="backups.pingcap.com/demo"),
    "no-leader": lambda _, at: plans.World(at=at, verb="pd_no_leader", arguments={"cluster": KEY}, seconds=_LASTS),
    "store": lambda _, at: plans.World(at=at, verb="pod_crash", arguments={"pod": f"{KEY}-tikv-0"}, seconds=0.0),
    **{each: _storage(each) for each in ("fail", "deny", "full", "slow", "tear")},
}


def backup_fault(rest: str) -> Plan:
    """The plan called `backup/<rest>`. Raises InvalidPlan."""
    what, _, step = rest.partition("@")
    job, begins = ("restore", _RESTORED) if what.startswith("restore-") else ("backup", _BEGINS)
    breaks = _BREAKS.get(what.removeprefix("restore-"))
    if breaks is None or not step.isdigit():
        raise InvalidPlan(
            f"{rest!r} is no `BREAK@STEP` or `restore-BREAK@STEP` with a break out of {', '.join(_BREAKS)}"
        )
    event = breaks(job, round(begins + int(step) * _STEP, 3))
    edits = (
        backups.account(),
        backups.backup(_BEGINS, cleanPolicy="Delete"),
        backups.restore(_RESTORED),
        *((event,) if isinstance(event, Edit) else ()),
    )
    return Plan(
        name=f"{FAMILY}/{rest}",
        cluster="tiny",
        budget=_BUDGET,
        edits=edits,
        given=(backups.data(), backups.statements(_LOST, "DROP DATABASE IF EXISTS shop")),
        faults=() if isinstance(event, Edit) else (event,),
        reference=False,
    )


def backup_faults() -> Iterator[Plan]:
    """Each break at each step of the Backup, and of the Restore as far as that goes."""
    for what in _BREAKS:
        for step in range(_STEPS):
            yield backup_fault(f"{what}@{step}")
        for step in range(_STEPS // 5):
            yield backup_fault(f"restore-{what}@{step}")
