"""Families of plans, either drawn from seeds or listed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from msgspec.structs import replace

from ports.randomness import Randomness, SeededRandomness
from simulate.engine.plan import Edit, Fault, InvalidPlan, Plan


@dataclass(frozen=True, slots=True)
class Family:
    """Plans named `<name>/<rest>`.

    `plan` returns the plan of a rest, or raises InvalidPlan; `plans` are those that a sweep runs.
    """

    name: str
    plan: Callable[[str], Plan]
    plans: Callable[[], Iterator[Plan]]


Make: TypeAlias = Callable[[int], Fault]
"""Creates the trouble with a number, e.g. of a write."""
Troubles: TypeAlias = Mapping[str, tuple[Make | None, Sequence[int]]]
"""Troubles by name, each with the numbers of its plans; None for no trouble."""


@dataclass(frozen=True, slots=True)
class Change:
    """A cluster, its user's edits, and the troubles that meet them.

    `given` is what else happens in all its plans. After a trouble in `may_fail` the user may not get what they want.
    For the ends see `Plan`.
    """

    cluster: str
    edits: tuple[Edit, ...]
    troubles: Troubles
    given: tuple[Fault, ...] = ()
    may_fail: Sequence[str] = ()
    ends: str = "Done"
    ends_beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def by_name(*families: Family) -> Mapping[str, Family]:
    """The families in this order, by the part of plan names before the slash."""
    return {family.name: family for family in families}


def of_seeds(name: str, count: int, draw_plan: Callable[[str, Randomness], Plan]) -> Family:
    """Random plans by seed, of which a sweep runs the first `count`; `draw_plan` gets the plan's name."""

    def plan(seed: str) -> Plan:
        if not seed.isdecimal():
            raise InvalidPlan(f"{seed!r} is no seed of this family, such as `{name}/17`")
        drawn = draw_plan(f"{name}/{seed}", SeededRandomness(f"{name} {seed}"))
        return replace(drawn, seed=int(seed))

    return Family(name, plan, lambda: (plan(str(seed)) for seed in range(count)))


def of_known(name: str, plans: Callable[[], Iterable[Plan]], unknown: str) -> Family:
    """A listed set, created lazily; `unknown` is the error for any other rest."""

    @cache
    def known() -> Mapping[str, Plan]:
        return {plan.name.removeprefix(f"{name}/"): plan for plan in plans()}

    def plan(rest: str) -> Plan:
        if rest not in known():
            raise InvalidPlan(f"{rest!r} is {unknown}; `python -m simulate sweep {name}` runs all there are")
        return known()[rest]

    return Family(name, plan, lambda: iter(known().values()))
