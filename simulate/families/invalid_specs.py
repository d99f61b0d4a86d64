"""A spec that is invalid for minutes during some other event (lifecycle.md 2.2).

`invalid/17` is the plan of a seed. Its status is checked all the time, and it ends as if the spec had always been
valid.
"""

from collections.abc import Callable, Mapping

from kube.objects import Json
from ports.randomness import Randomness
from simulate.engine.components import managed_components, profile
from simulate.engine.plan import Crash, Edit, Fault, Plan
from simulate.families.crossed_mistakes import ends, fault, takes_data
from simulate.families.draws import pick
from simulate.families.family import of_seeds
from simulate.families.homes import Home, home_of
from simulate.families.mistakes import MISTAKES, Mistake
from simulate.families.random_edits import larger
from simulate.families.users_data import of_all_components

_BEGINS = 1.0
_UNNOTICED = 200.0
"""Seconds until the user notices the mistake, long after the status must report it."""
_HEALED = 700.0
_REPLACED = 2700.0
"""As for crossed mistakes."""
_WRITES = 12

_WRONG: Mapping[str, Mistake] = {
    "toml": MISTAKES["toml"],
    "version": Mistake({"version": "no version"}, {"version": None}),
    "labels": Mistake({"labels": {"a b": "c"}}, {"labels": None}),
}
"""Field values that validation rejects, each in the section of a component."""

_UNDER_WAY: Mapping[str, Callable[[Home], Json]] = {
    "roll": lambda _: {"annotations": {"roll": "1"}},
    "out": lambda home: {"replicas": home.section["replicas"] + 1},
    "in": lambda home: {"replicas": max(home.section["replicas"] - 1, profile(home.component).fewest)},
    "resize": lambda home: larger(home.component),
    "suspend": lambda _: {"suspendAction": {"suspendStatefulSet": True}},
}
"""The user's valid edit a few seconds earlier."""

_RESUMED = (_UNNOTICED / 2, _UNNOTICED + 20.0)
"""Seconds after the mistake at which the user resumes a suspended component: while the spec is invalid, or later."""


def _plan(name: str, draw: Randomness) -> Plan:
    home = home_of(pick(draw, managed_components()))
    is_made = draw.integer(1, 4) == 1
    at = 0.0 if is_made else _BEGINS + pick(draw, (0.0, 2.0, 5.0))
    before = () if is_made or not draw.integer(0, 2) else _under_way(draw, home, at)
    faults = _faults(draw, home, at, _WRITES * (3 if is_made else 1))
    return Plan(
        name=name,
        world="empty" if is_made else "steady",
        cluster=home.cluster,
        budget=at + _UNNOTICED + (_REPLACED if takes_data(faults) else _HEALED),
        edits=(*before, *pick(draw, [*_WRONG.values()]).edits(home, at, at + _UNNOTICED)),
        given=() if is_made else of_all_components(home.cluster),
        faults=faults,
        reference=False,
        ends=ends(faults),
    )


def _under_way(draw: Randomness, home: Home, at: float) -> tuple[Edit, ...]:
    name, change = pick(draw, [*_UNDER_WAY.items()])
    begun = home.merge(_BEGINS, change(home))
    return (begun, home.merge(at + pick(draw, _RESUMED), {"suspendAction": None})) if name == "suspend" else (begun,)


def _faults(draw: Randomness, home: Home, at: float, writes: int) -> tuple[Fault, ...]:
    """One or two faults; half of the time the operator's process is also replaced before or after."""
    found = tuple(fault(draw, home, (at + 10.0, at + 100.0), writes) for _ in range(draw.integer(1, 2)))
    return (*found, Crash(at=at + pick(draw, (5.0, 60.0, 120.0)))) if draw.integer(0, 1) else found


FAMILY = of_seeds("invalid", 600, _plan)
