"""Families of plans, and the two ways in which most of them are made: drawn from seeds, or out of a fixed set."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from msgspec.structs import replace

from ports.randomness import Randomness, SeededRandomness
from simulate.plan import InvalidPlan, Plan


@dataclass(frozen=True, slots=True)
class Family:
    """Plans that are named alike: `<name>/<rest>`.

    `plan` is the one of a rest, and raises InvalidPlan where there is none; `plans` are those that a sweep runs.
    """

    name: str
    plan: Callable[[str], Plan]
    plans: Callable[[], Iterator[Plan]]


def by_name(*families: Family) -> Mapping[str, Family]:
    """Families in this order, by what stands before the slash in the names of their plans."""
    return {each.name: each for each in families}


def of_seeds(name: str, count: int, draw_plan: Callable[[str, Randomness], Plan]) -> Family:
    """Random plans by seed, of which a sweep runs the first so many; `draw_plan` gets the name of the plan."""

    def plan(seed: str) -> Plan:
        if not seed.isdecimal():
            raise InvalidPlan(f"{seed!r} is no seed of this family, such as `{name}/17`")
        drawn = draw_plan(f"{name}/{seed}", SeededRandomness(f"{name} {seed}"))
        return replace(drawn, seed=int(seed))

    return Family(name, plan, lambda: (plan(str(seed)) for seed in range(count)))


def of_known(name: str, plans: Callable[[], Iterable[Plan]], unknown: str) -> Family:
    """A fixed set, which is made once and only when asked for; `unknown` says what a rest is that none goes by."""

    @cache
    def known() -> Mapping[str, Plan]:
        return {plan.name.removeprefix(f"{name}/"): plan for plan in plans()}

    def plan(rest: str) -> Plan:
        if rest not in known():
            raise InvalidPlan(f"{rest!r} is {unknown}; `python -m simulate sweep {name}` runs all there are")
        return known()[rest]

    return Family(name, plan, lambda: iter(known().values()))
