"""The checks of PD's microservices can fail: each test plants one defect, and the simulator must name its rule."""

from dataclasses import replace

import pytest

import member.pdms.component
from apis.component_statuses import PDMSStatus
from member.evidence import Evidence, spec_confirmed
from member.lifecycle.pod_removal import PodRemoval
from member.outcome import Waiting
from member.pdms.component import TSO
from simulate.engine.plan import Edit, Plan
from simulate.engine.worlds import microservices
from tests.simulate.planting import broken, nothing, plant_workload, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_reports_nothing_without_a_defect() -> None:
    assert set() == rules(short("pdms-mode-ends"), lambda: None)


@pytest.mark.rule("I41")
def test_reports_tso_removed_as_soon_as_the_mode_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(removal: PodRemoval) -> Evidence | Waiting:
        return spec_confirmed(removal.ctx) or Waiting("SpecChanged", "later")

    scaling = replace(TSO.scaling, in_=replace(TSO.scaling.in_, drain=at_once, limit=lambda _: 2))
    assert "I41-tso" in rules(
        short("pdms-mode-ends"), lambda: plant_workload(monkeypatch, replace(TSO, scaling=scaling))
    )


@pytest.mark.rule("I12")
def test_reports_a_restarted_primary_that_does_not_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    change = {"pdms": microservices(tso=2, scheduling=1, version="v8.5.3")}
    plan = Plan(name="restart", cluster="micro", budget=60.0, edits=(Edit(at=1.0, spec=change),))
    plant = lambda: monkeypatch.setattr(member.pdms.component, "hand_over", nothing)  # noqa: E731

    assert "I12-pdms" in rules(plan, plant)


@pytest.mark.rule("I20")
def test_reports_tikv_created_before_tso_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = [each | {"nodeSelector": {"nowhere": "yes"}} for each in microservices(tso=2, scheduling=1)]
    plan = Plan(
        name="no-tso", world="empty", cluster="micro", budget=30.0, edits=(Edit(at=0.01, spec={"pdms": nowhere}),)
    )
    plant = lambda: monkeypatch.setattr(PDMSStatus, "is_available", lambda *_: True)  # noqa: E731

    assert "TiKV is created while PD gives no timestamps" in [each.what for each in broken(plan, plant).violations]
