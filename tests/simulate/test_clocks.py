"""The family *clock*: which plans there are, and whose clock jumps."""

from datetime import timedelta
from itertools import islice

import pytest

from simulate.engine.engine import Engine
from simulate.engine.plan import InvalidPlan, Jump
from simulate.families.clocks import FAMILY
from simulate.families.generate import generated


def test_finds_each_plan_by_its_name() -> None:
    for plan in islice(FAMILY.plans(), 0, None, 97):
        assert plan == generated(plan.name)


def test_adds_a_clock_jump_to_the_base_plan() -> None:
    plan = generated("clock/operator-3600@6/tikv-upgrade")
    assert (Jump(at=6.0, seconds=-3600.0, whose="operator"),) == plan.faults


@pytest.mark.parametrize("only_operators", [False, True])
def test_a_jump_may_move_the_operators_clock_only(*, only_operators: bool) -> None:
    engine = Engine()
    engine.start_operator()
    ahead = timedelta(hours=1)
    engine.jump(ahead, only_operators=only_operators)
    difference = engine.operators["operator"].clock.wall() - engine.clock.wall()
    assert (ahead if only_operators else timedelta()) == difference


@pytest.mark.parametrize("rest", ["", "all@6/tikv-upgrade", "pd-5@6/tikv-upgrade", "all-5@6/nothing"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match="is no "):
        FAMILY.plan(rest)
