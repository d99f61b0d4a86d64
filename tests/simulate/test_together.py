"""Two plans at once: which pairs exist, and how their events merge."""

from itertools import islice

import pytest

from simulate.engine.plan import InvalidPlan, World
from simulate.families import flips, mistakes
from simulate.families.loss_and_edit import CONVERGED
from simulate.families.together import FAMILY, drawn

_FIRST = "mistake/tikv-no-image"
_SECOND = "mistake/tidb-no-image"


def test_the_second_plan_begins_later_and_either_end_is_accepted() -> None:
    first, second = FAMILY.plan(f"{_FIRST}&0&{_SECOND}"), FAMILY.plan(f"{_FIRST}&7.5&{_SECOND}")
    moved = [(one.at or 0.0, other.at or 0.0) for one, other in zip(first.edits, second.edits, strict=True)]
    assert {0.0, 7.5} == {round(late - soon, 3) for soon, late in moved}
    assert set(CONVERGED) <= set(second.ends_in)
    assert first.budget + 7.5 >= second.budget > first.budget - 1.0


@pytest.mark.parametrize(("component", "quorum"), [("tikv", False), ("pd", True)])
def test_the_losses_of_two_plans_together_may_break_the_quorum(component: str, quorum: bool) -> None:
    plan = FAMILY.plan(f"midway/{component}-5.config+5.zone&7&sidecar/{component}-5.scale-in+90")
    assert {"SubstituteLost", "NodeLost"} <= set(plan.ends_in)
    assert quorum is ("PDQuorumLost" in plan.ends_in)
    assert all(fault.if_there for fault in plan.faults if isinstance(fault, World))


def test_finds_each_drawn_pair_by_its_name() -> None:
    for plan in islice(drawn((flips.FAMILY, mistakes.FAMILY)), 20):
        assert plan == FAMILY.plan(plan.name.partition("/")[2])


@pytest.mark.parametrize("rest", ["", "flip/1", "flip/1&soon&flip/2", "flip/1&1&nothing/2", "flip/1&1&order/tiproxy"])
def test_refuses_a_name_that_is_not_a_pair_of_plans(rest: str) -> None:
    with pytest.raises(InvalidPlan):
        FAMILY.plan(rest)
