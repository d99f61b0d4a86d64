"""The family *midway*: its plans, and the moments of their losses."""

import pytest

from simulate.engine.plan import InvalidPlan, World
from simulate.families.generate import generated
from simulate.families.losses_midway import FAMILY

_PLANS = list(FAMILY.plans())


def test_finds_each_plan_by_its_name() -> None:
    assert len(_PLANS) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::50]:
        assert plan == generated(plan.name)


def test_the_loss_follows_the_change_after_the_seconds_in_the_name() -> None:
    plan = generated("midway/tikv-4.config+10.node")
    (edit,), (lost,) = plan.edits, plan.faults
    assert isinstance(lost, World)
    assert ("host_gone", 10.0) == (lost.verb, (lost.at or 0.0) - (edit.at or 0.0))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("pd-3.config+5.node", False), ("pd-3.scale-in+5.node", True), ("pd-5.scale-in+5.node", False)],
)
def test_a_plan_may_end_without_quorum_only_if_it_can_lose_half_of_the_remaining_members(
    name: str, expected: bool
) -> None:
    assert expected is ("PDQuorumLost" in generated(f"midway/{name}").ends_in)


@pytest.mark.parametrize(
    "rest", ["", "pd-3.config.node", "pd-3.config+soon.node", "pd-3.suspend+5.node", "pd-3.image+5.x"]
)
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `SUBJECT\.CHANGE\+SECONDS\.LOSS`"):
        FAMILY.plan(rest)
