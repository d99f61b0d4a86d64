"""Defects in what the operator does with TiFlash's stores: the simulator must name the rule that each breaks."""

from dataclasses import replace

import pytest

import member.stores.scaling
import member.tiflash.rolling
from dataplane.pd import PDReads
from member.context import ReconcileContext
from member.evidence import Evidence, Spared, pods_live, spared
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scaling import ScaleIn
from member.stores.kind import TIFLASH_STORES, Needs
from member.tiflash.component import TIFLASH
from simulate.engine.plan import Edit, Plan, World
from tests.simulate.planting import nothing, plant_workload, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]

REPLICAS = {"cluster": "default/basic", "count": 2}


def test_reports_nothing_without_a_defect() -> None:
    assert set() == rules(short("tiflash-in", 90.0), lambda: None)


@pytest.mark.rule("I3")
def test_reports_a_pod_removed_while_its_store_has_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hasty(removal: PodRemoval) -> Evidence:
        return pods_live(removal.ctx, "tiflash")

    scaling = replace(TIFLASH.scaling, in_=ScaleIn(lambda _: 1, hasty, TIFLASH.scaling.in_.cancel))
    plant = lambda: plant_workload(monkeypatch, replace(TIFLASH, scaling=scaling))  # noqa: E731

    assert "I3" in rules(short("tiflash-in"), plant)


@pytest.mark.rule("I5")
def test_reports_a_scale_in_that_ignores_table_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    table = World(at=0.5, verb="tiflash_replicas", arguments=REPLICAS, seconds=0)
    plan = Plan(
        name="too few",
        cluster="analytic",
        budget=60.0,
        given=(table,),
        edits=(Edit(at=10, spec={"tiflash": {"replicas": 1}}),),
        ends="FailedScaleIn",
    )
    assert set() == rules(plan, lambda: None)

    def careless(_: PDReads) -> Needs:
        return Needs(0, "", "")

    scaling = replace(TIFLASH.scaling, in_=member.stores.scaling.scale_in(replace(TIFLASH_STORES, needs=careless)))
    plant = lambda: plant_workload(monkeypatch, replace(TIFLASH, scaling=scaling))  # noqa: E731

    assert "I5" in rules(plan, plant)


@pytest.mark.rule("I44")
def test_reports_a_store_restarted_while_another_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = World(at=0.5, verb="pod_slow", arguments={"pod": "default/basic-tiflash-1", "seconds": 25.0}, seconds=0)
    plan = Plan(
        name="a slow store",
        cluster="analytic",
        budget=300.0,
        given=(slow,),
        edits=(Edit(at=5, spec={"tiflash": {"version": "v8.5.3"}}),),
    )
    assert set() == rules(plan, lambda: None)

    rolling = replace(
        member.tiflash.rolling.ROLLING,
        unmet_condition=lambda *_: "",
        prepare=nothing,
        spare=_spared,
    )
    plant = lambda: plant_workload(monkeypatch, replace(TIFLASH, rolling=rolling))  # noqa: E731

    assert "I44" in rules(plan, plant)


async def _spared(_: ReconcileContext, pod: str) -> Spared:
    return spared(pod, "planted")
