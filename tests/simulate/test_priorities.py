"""The family *priority*, and the judge's notice of rolls in another order than the user's."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

import member.lifecycle.roll
import member.lifecycle.roll_steps
from kube.resources import PODS
from member.apply.stateful_set import UpdateStrategy
from member.labels import RESTART_PRIORITY
from member.lifecycle.roll_steps import RollingPod
from simulate.engine.plan import Edit, Plan
from simulate.families.generate import generated
from simulate.families.priorities import FAMILY
from tests.simulate.planting import rules, short


def test_each_plan_has_one_name_and_gives_pods_priorities() -> None:
    for plan in list(FAMILY.plans())[::20]:
        assert plan == generated(plan.name)
        assert any(RESTART_PRIORITY in edit.annotations for edit in plan.edits)


def _roll() -> Plan:
    """A roll of TiKV whose lowest pod comes first."""
    plan = short("tikv-config", 200.0)
    first = Edit(at=0.5, target=f"{PODS}/basic-tikv-0", annotations={RESTART_PRIORITY: "10"})
    return replace(plan, edits=(first, *plan.edits), reference=False)


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.rule("lifecycle-7.1.1")
def test_reports_a_roll_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def highest(pods: Sequence[RollingPod]) -> RollingPod:
        return pods[-1]

    def plant() -> None:
        for module in (member.lifecycle.roll, member.lifecycle.roll_steps):
            monkeypatch.setattr(module, "first_in_turn", highest)

    assert set() == rules(_roll(), lambda: None)
    assert {"7.1.1"} == rules(_roll(), plant)


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.rule("lifecycle-7.1.1")
def test_reports_a_strategy_that_stays_after_the_roll(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant() -> None:
        # each pod is then restarted by deletion, also the last one
        monkeypatch.setattr(member.lifecycle.roll, "blocked_by_higher", lambda *_: True)
        monkeypatch.setattr(UpdateStrategy, "after_on_delete", classmethod(lambda cls, _: cls.on_delete()))

    assert {"7.1.1"} <= rules(_roll(), plant)
