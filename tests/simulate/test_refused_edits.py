"""The family *refused*: which plans there are, and what happens when in them."""

import pytest

from simulate.engine.plan import Deleted, InvalidPlan, World
from simulate.families.generate import generated
from simulate.families.refused_edits import FAMILY
from simulate.judge.stuck_rolls import LIMIT, WITHIN

_PLANS = list(FAMILY.plans())


def test_finds_each_plan_by_its_name() -> None:
    assert len(_PLANS) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::50]:
        assert plan == generated(plan.name)


def test_the_user_reverts_a_refused_edit_after_minutes() -> None:
    plan = generated("refused/tikv.image.orphaned@2")
    policy, deleted = plan.faults
    assert isinstance(policy, World)
    assert isinstance(deleted, Deleted)
    assert ({"name": "signed-images"}, 0.0) == (policy.arguments, policy.seconds)
    assert [{"version": "v8.5.3"}, {"version": None}] == [edit.spec["tikv"] for edit in plan.edits]
    edited, back = (edit.at or 0.0 for edit in plan.edits)
    assert edited + 2.0 == deleted.at
    assert plan.serves_at == back - 1.0 > edited + 200.0


def test_the_policy_may_end_instead_of_the_edit() -> None:
    plan = generated("refused/tikv.image.orphaned@2+allowed")
    (policy,) = (fault for fault in plan.faults if isinstance(fault, World))
    assert 1 == len(plan.edits)
    assert policy.seconds > plan.serves_at


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tikv.image.orphaned@2", True),
        ("tikv.image.deleted@2", False),
        ("pd.service.deleted@2", True),
        ("tidb.away.scaled-out@2", False),
    ],
)
def test_a_plan_expects_service_meanwhile_only_if_the_operator_can_restore_it(name: str, expected: bool) -> None:
    assert expected is (generated(f"refused/{name}").serves_at > 0)


@pytest.mark.parametrize("rest", ["", "tikv.image", "tikv.image.orphaned@", "tikv.rain.crash@2", "tiger.image.crash@2"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `COMPONENT\.REFUSAL\.EVENT@SECONDS`"):
        FAMILY.plan(rest)


def test_a_roll_waits_beyond_the_limit_after_its_operator_was_restarted() -> None:
    plan = generated("refused/pd.leader.crash@400+allowed")
    waits, crash = plan.faults
    assert isinstance(waits, World)
    assert "server_pretends" == waits.verb
    stuck = plan.stuck
    assert stuck is not None
    assert stuck.asked < (crash.at or 0.0) < stuck.waits + LIMIT + WITHIN < stuck.ends
    assert (waits.at or 0.0) + waits.seconds == stuck.ends
    assert {"pd", "tikv", "ticdc", "tso", "dm-master"} == {each.stuck.component for each in _PLANS if each.stuck}
