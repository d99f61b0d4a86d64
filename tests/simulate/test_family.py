"""Families of plans: their plans, the names of plans, and errors for other names."""

from collections.abc import Iterator

import pytest

from ports.randomness import Randomness, SeededRandomness
from simulate.engine.plan import InvalidPlan, Plan
from simulate.families.family import of_known, of_seeds
from simulate.families.generate import family


def _drawn(name: str, draw: Randomness) -> Plan:
    return Plan(name=name, budget=draw.uniform(1.0, 100.0))


def test_each_seed_is_drawn_independently_and_runs_with_that_seed() -> None:
    random = of_seeds("random", 3, _drawn)
    budgets = [SeededRandomness(f"random {seed}").uniform(1.0, 100.0) for seed in range(3)]

    assert [Plan(name=f"random/{k}", seed=k, budget=budgets[k]) for k in range(3)] == list(random.plans())
    assert "random/17" == random.plan("17").name


@pytest.mark.parametrize("rest", ["", "x", "-1"])
def test_refuses_a_name_that_is_no_seed(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=f"'{rest}' is no seed of this family, such as `random/17`"):
        of_seeds("random", 3, _drawn).plan(rest)


def test_a_fixed_set_is_built_once_and_on_first_use() -> None:
    made: list[str] = []

    def plans() -> Iterator[Plan]:
        for name in ("known/one", "known/two/three"):
            made.append(name)
            yield Plan(name=name)

    known = of_known("known", plans, "neither")
    assert [] == made
    one, two = known.plans()
    assert (one, two) == (known.plan("one"), known.plan("two/three"))
    assert ["known/one", "known/two/three"] == made


def test_refuses_a_name_outside_a_fixed_set() -> None:
    known = of_known("known", lambda: [Plan(name="known/one")], "not one")

    with pytest.raises(InvalidPlan, match="'two' is not one; `python -m simulate sweep known` runs all there are"):
        known.plan("two")


@pytest.mark.rule("R24")
def test_the_second_change_of_a_pair_starts_halfway_through_the_writes_of_the_first() -> None:
    names = (plan.name for plan in family("pair", lambda plan: 40 if plan.name == "pair/pd-scale-out" else 0))

    assert "pair/pd-scale-out+pd-scale-in@20" in names
