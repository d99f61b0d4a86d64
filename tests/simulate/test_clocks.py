"""The family *clock*: which plans there are, and whose clock jumps."""

from datetime import timedelta
from itertools import islice

import pytest

from simulate.engine.engine import Engine
from simulate.engine.plan import InvalidPlan, Jump
from simulate.families.clocks import FAMILY
from simulate.families.generate import generated


def test_each_goes_by_its_name() -> None:
    for plan in islice(FAMILY.plans(), 0, None, 97):
        assert plan == generated(plan.name)


def test_the_clock_jumps_beside_what_the_plan_is_about() -> None:
    plan = generated("clock/operator-3600@6/tikv-upgrade")
    assert (Jump(at=6.0, seconds=-3600.0, whose="operator"),) == plan.faults


@pytest.mark.parametrize("only_operators", [False, True])
def test_the_operator_s_clock_may_differ_from_that_of_the_world(*, only_operators: bool) -> None:
    engine = Engine()
    engine.start_operator()
    ahead = timedelta(hours=1)
    engine.jump(ahead, only_operators=only_operators)
    difference = engine.operators["operator"].clock.wall() - engine.clock.wall()
    assert (ahead if only_operators else timedelta()) == difference


@pytest.mark.parametrize("rest", ["", "all@6/tikv-upgrade", "pd-5@6/tikv-upgrade", "all-5@6/nothing"])
def test_what_is_no_plan_is_refused(rest: str) -> None:
    with pytest.raises(InvalidPlan, match="is no "):
        FAMILY.plan(rest)
