"""The family *losses undone*: its plans, and what they change in the plans of losses."""

import pytest

from simulate.engine.plan import InvalidPlan, World
from simulate.families.generate import generated
from simulate.families.loss_and_edit import CONVERGED
from simulate.families.losses_undone import FAMILY

_PLANS = list(FAMILY.plans())


def test_there_are_6956_plans_and_each_is_found_by_its_name() -> None:
    assert 6956 == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::50]:
        assert plan == generated(plan.name)


def test_each_loss_ends_after_the_seconds_in_its_plans_name() -> None:
    for plan in _PLANS:
        losses = [fault.seconds for fault in plan.faults if isinstance(fault, World)]
        assert {float(plan.name.rpartition("+")[2])} == set(losses)


def test_a_plan_must_converge_unless_a_removed_component_needs_the_user() -> None:
    assert {"NodeLost", "PodsNotReady"} <= set(generated("loss/tiproxy-2.node.removed@unrecorded").ends_in)
    assert (*CONVERGED, "ComponentRemoved") == generated("return/tiproxy-2.node.removed@unrecorded+20").ends_in


@pytest.mark.parametrize("rest", ["", "pd-3.node.image@recorded", "pd-3.volume.image@recorded+20", "pd-3.rain+20"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan):
        FAMILY.plan(rest)
