"""The judge notices when the operator takes silence for death: one defect in each test (docs/rules/silence.md)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import member.lifecycle.roll
import member.lifecycle.roll_view
from kube.objects import Object
from member.context import ClusterContext, ReconcileContext
from member.evidence import Spared, spared
from member.lifecycle import roll_steps
from member.lifecycle.roll_steps import RollingPod
from member.observed.nodes import Activity
from member.pd.component import PD
from simulate.engine.plan import Fault, World, load
from tests.simulate.planting import plant_workload, rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_PLAN = next((Path(__file__).parent / "plans").glob("silence-*.yaml"))


def _as_if_heard(_: ClusterContext, __: str, pod: Object) -> Activity:
    """Death is what the node controller says."""
    return Activity.STOPPED


@pytest.mark.rule("I9")
def test_reports_a_voting_pd_deleted_while_pd_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    # a roll reaches the highest ordinal first
    lost, cut_off, *others = load(_PLAN).faults
    swapped = (_at(lost, "default/basic-pd-0"), _at(cut_off, "default/basic-pd-1"), *others)
    plan = msgspec.structs.replace(load(_PLAN), faults=swapped, budget=400.0)

    def plant() -> None:
        careless = replace(PD.rolling, spare=_spared)
        plant_workload(monkeypatch, replace(PD, rolling=careless))
        monkeypatch.setattr(member.lifecycle.roll_view, "cached_activity", _as_if_heard)
        monkeypatch.setattr(member.lifecycle.roll_view.RollView, "may_fix_unready", lambda *_: True)

    assert "I9" not in rules(plan, lambda: None)
    assert "I9" in rules(plan, plant)


def _at(fault: Fault, pod: str) -> Fault:
    assert isinstance(fault, World)
    return msgspec.structs.replace(fault, arguments={"pod": pod})


@pytest.mark.rule("I46")
def test_reports_crashing_members_that_all_move_to_a_missing_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = load(_PLAN.parent / "F11-crashing-members-and-an-image-that-no-registry-has.yaml")
    assert set() == rules(plan, lambda: None)
    honest = roll_steps.next_step

    def hasty(pods: Sequence[RollingPod]) -> roll_steps.Step:
        return honest([replace(pod, untried=False) for pod in pods])

    assert "I46" in rules(plan, lambda: monkeypatch.setattr(member.lifecycle.roll, "next_step", hasty))


async def _spared(_: ReconcileContext, pod: str) -> Spared:
    return spared(pod, "planted")
