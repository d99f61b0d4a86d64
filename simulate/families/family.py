"""Families of plans, either drawn from seeds or listed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from msgspec.structs import replace

from ports.randomness import Randomness, SeededRandomness
from simulate.engine.plan import InvalidPlan, Plan


@dataclass(frozen=True, slots=True)
class Family:
    """Plans named `<name>/<rest>`.

    `plan` returns the plan of a rest, or raises InvalidPlan; `plans` are those that a sweep runs.
    """

    name: str
    plan: Callable[[str], Plan]
    plans: Callable[[], Iterator[Plan]]


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
