"""The judge notices pods that restart, or may restart, without a request: one defect in each test."""

from dataclasses import replace
from pathlib import Path

import pytest

import member.lifecycle.roll
import member.lifecycle.wanted_state
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.apply import stateful_set
from member.apply.foreign_edits import ForeignEdit
from member.apply.stateful_set import UpdateStrategy
from member.lifecycle.roll_view import RollView
from member.tikv.component import TIKV
from simulate.engine.plan import Crash, Plan, load
from tests.simulate.planting import plant_workload, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_PLANS = Path(__file__).parent / "plans"


@pytest.mark.parametrize(
    "plan",
    [
        "I42-a-foreign-template-in-the-middle-of-a-roll",
        "I42-a-foreign-template-and-its-partition",
        "I42-a-foreign-template-after-a-roll",
        "I42-a-rollout-restart",
    ],
)
@pytest.mark.rule("I42")
def test_reports_an_operator_that_compares_only_with_its_last_write(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(stateful_set, "edit_by_others", lambda *_: None)  # noqa: E731

    assert "I42" in rules(load(_PLANS / f"{plan}.yaml"), plant)


@pytest.mark.rule("I42")
def test_reports_a_partition_left_where_a_roll_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_it_is(view: RollView, _: int) -> UpdateStrategy:
        return UpdateStrategy.unchanged(view.body)

    plant = lambda: monkeypatch.setattr(member.lifecycle.roll, "_at_rest", as_it_is)  # noqa: E731

    assert "I42" in rules(short("tikv-upgrade", 120.0), plant)


@pytest.mark.rule("I42")
def test_reports_a_template_restored_under_a_partition_that_rolls_it_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def as_it_is(_: ForeignEdit, body: Json, __: Json) -> UpdateStrategy:
        return UpdateStrategy.unchanged(body)

    plan = load(_PLANS / "I42-a-foreign-template-and-its-partition.yaml")
    plant = lambda: monkeypatch.setattr(member.lifecycle.wanted_state, "_strategy", as_it_is)  # noqa: E731

    assert "I42" in rules(plan, plant)


def another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """TiKV's pods as a later version may create them."""

    def stateful_set(tc: TidbCluster, config_map: str) -> Json:
        made = TIKV.stateful_set(tc, config_map)
        made["spec"]["template"]["metadata"]["labels"]["example.com/new"] = "yes"
        return made

    plant_workload(monkeypatch, replace(TIKV, stateful_set=stateful_set))


@pytest.mark.rule("I42")
def test_reports_a_new_operator_version_that_rolls_pods_for_its_own_change(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(name="another version", budget=60.0, faults=(Crash(at=0.0),))
    with monkeypatch.context() as honest:
        assert set() == rules(plan, lambda: another_version(honest))

    def plant() -> None:
        another_version(monkeypatch)
        monkeypatch.setattr(member.lifecycle.wanted_state, "own_change", lambda *_, **__: None)

    assert "I42" in rules(plan, plant)
