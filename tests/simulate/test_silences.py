"""The family *silence*: which plans there are, and what does not answer when."""

import pytest

from simulate.engine.plan import InvalidPlan, World
from simulate.families.generate import generated
from simulate.families.silences import FAMILY

_PLANS = list(FAMILY.plans())


def test_finds_each_plan_by_its_name() -> None:
    assert len(_PLANS) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::20]:
        assert plan == generated(plan.name)


def test_all_servers_answer_again_before_the_user_reverts_the_mistake() -> None:
    plan = generated("silence/pd-3.node+quorum.broken-image")
    ends = [(each.at or 0.0) + each.seconds for each in plan.faults if isinstance(each, World)]
    wanted, taken_back = (edit.at or 0.0 for edit in plan.edits)
    assert wanted < min(ends)
    assert max(ends) < taken_back


@pytest.mark.parametrize("rest", ["", "pd-3.quorum", "pd-3.quorum.refused-image", "pd-9.quorum.image", "pd-3.x.image"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `SUBJECT\.SILENCE\.CHANGE`"):
        FAMILY.plan(rest)
