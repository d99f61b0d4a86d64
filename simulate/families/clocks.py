"""Jumps of the time of day, everywhere or on the operator's machine only, at any moment (FP8; lifecycle.md F14, F44).

`clock/operator-3600@6/tikv-upgrade`: in the workload `tikv-upgrade` the clock of the operator's machine is set back by
an hour in the 6th second; `all` means all machines. Small jumps of seconds represent clocks that drift.
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ports.randomness import SeededRandomness
from simulate.engine.plan import InvalidPlan, Jump, Plan
from simulate.families import loss_and_edit, losses_undone
from simulate.families.draws import pick
from simulate.families.family import Family
from simulate.families.plans_of_others import PlansOfOthers
from simulate.families.workloads import WORKLOADS

_OTHERS = PlansOfOthers(loss_and_edit.FAMILY, losses_undone.FAMILY)
_NAME = re.compile(r"(all|operator)([+-]\d+)@(\d+(?:\.\d+)?)")

_WHOSE = ("all", "operator")
_SECONDS = (-31_536_000, -3600, -300, -5, 5, 300, 3600, 31_536_000)
_FROM = (0.0, 1.5, 6.0, 12.0, 25.0, 50.0, 100.0)
"""Seconds after which the clock jumps."""
_MORE = 120.0
_OF_LOSSES = 1200
"""The number of random plans with losses."""


def _plan(rest: str) -> Plan:
    """The plan called `clock/<rest>`. Raises InvalidPlan."""
    jump, _, of = rest.partition("/")
    match = _NAME.fullmatch(jump)
    if match is None:
        raise InvalidPlan(f"{rest!r} is no `all±SECONDS@SECOND/PLAN`, nor one with `operator`")
    return _jumping(_OTHERS.named(of), match[1], int(match[2]), float(match[3]))


def _jumping(plan: Plan, whose: str, seconds: int, at: float) -> Plan:
    jump = Jump(at=at, seconds=float(seconds), whose="operator" if whose == "operator" else "all")
    return replace(
        plan,
        name=f"{FAMILY.name}/{whose}{seconds:+d}@{at:g}/{plan.name}",
        faults=(*plan.faults, jump),
        budget=plan.budget + _MORE,
    )


def _plans() -> Iterator[Plan]:
    """Each jump in each workload, and some in some losses, at random moments."""
    draw = SeededRandomness(FAMILY.name)
    for plan in WORKLOADS.values():
        for whose in _WHOSE:
            for seconds in _SECONDS:
                yield _jumping(plan, whose, seconds, pick(draw, _FROM))
    losses = [*loss_and_edit.FAMILY.plans(), *losses_undone.FAMILY.plans()]
    for _ in range(_OF_LOSSES):
        yield _jumping(pick(draw, losses), pick(draw, _WHOSE), pick(draw, _SECONDS), pick(draw, _FROM))


FAMILY = Family("clock", _plan, _plans)
