"""The judge notices when the operator adds to what the world took: one defect in each test."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discovery.service
import member.lifecycle.component_sync
import member.lifecycle.scaling
import member.pd.failover
import member.pd.scaling
import member.stores.failover
import member.stores.scaling
from kube.actions import Decision
from member.evidence import Evidence, pods_live
from member.failover.members import MemberFailover
from member.lifecycle.pod_removal import PodRemoval
from member.memory import FailureTimers
from member.outcome import Outcome
from member.tikv.component import TIKV
from simulate.engine.plan import load
from simulate.families.generate import generated
from tests.simulate.planting import broken, plant_workload, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_PLANS = Path(__file__).parent / "plans"


@pytest.mark.rule("O11")
def test_reports_stores_removed_before_their_data_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(removal: PodRemoval) -> Evidence:
        return pods_live(removal.ctx, "tikv")

    hasty = replace(TIKV, scaling=replace(TIKV.scaling, in_=replace(TIKV.scaling.in_, drain=at_once)))

    assert "O11" in rules(short("tikv-in-parallel"), lambda: plant_workload(monkeypatch, hasty))


@pytest.mark.rule("O12")
def test_reports_the_removal_of_a_substitute_whose_original_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.pd.scaling, "remaining", lambda *_, **__: 0)  # noqa: E731

    assert "O12" in rules(load(_PLANS / "R28-a-cluster-is-made-again-while-a-substitute-serves.yaml"), plant)


@pytest.mark.rule("O12")
def test_reports_the_removal_of_a_store_while_another_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., Any] = member.stores.scaling.next_step

    def careless(*arguments: object, leaders_gone: bool, wanted: int) -> object:
        return honest(*arguments, leaders_gone=leaders_gone)

    plant = lambda: monkeypatch.setattr(member.stores.scaling, "next_step", careless)  # noqa: E731

    assert "O12" in rules(generated("loss/tikv-5.pod.scale-in@unrecorded"), plant)


@pytest.mark.rule("O12")
def test_reports_a_member_that_gets_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.lifecycle.scaling, "next_returning", lambda *_: "")  # noqa: E731

    assert "O12" in rules(load(_PLANS / "I4-pd-is-scaled-by-another-hand-to-two.yaml"), plant)


@pytest.mark.rule("O10")
def test_reports_a_refused_edit_that_stops_failover(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unguarded(
        _: object, __: str, update: Callable[[], Decision[Outcome]], ___: object
    ) -> tuple[Outcome, None]:
        return await update(), None

    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "updated", unguarded)  # noqa: E731

    assert "O10" in rules(generated("loss/tikv-4.node.refused-image@unrecorded"), plant)


@pytest.mark.rule("F29")
def test_without_a_wait_for_the_end_of_its_pod_a_pd_member_is_removed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = generated("loss/pd-3.volume.config@replaced")
    plant = lambda: monkeypatch.setattr(member.pd.failover, "end_of_pod", lambda *_: None)  # noqa: E731

    honest, hasty = (broken(plan, each).summary for each in (lambda: None, plant))

    assert (1, 2) == (_removals(honest), _removals(hasty))


def _removals(summary: Mapping[str, int]) -> int:
    return sum(count for done, count in summary.items() if done.startswith("DELETE") and "/members/" in done)


@pytest.mark.parametrize(
    ("plan", "room", "name", "defect"),
    [
        pytest.param(
            "R28-two-of-five-pds-are-lost",
            MemberFailover,
            "_awaited",
            lambda *_: "the substitutes are healthy",
            id="addition before removal",
        ),
        pytest.param(
            "R21-a-store-is-lost-and-tikv-upgraded",
            FailureTimers,
            "known",
            lambda *_: (),
            id="what was lost before a roll is forgotten",
        ),
        pytest.param(
            "F12-an-operator-starts-after-a-roll-has-restarted-a-lost-store",
            member.stores.failover,
            "_last_heard",
            lambda *_: None,
            id="what PD last heard is not asked",
        ),
    ],
)
@pytest.mark.rule("O10", "F12")
def test_reports_a_loss_that_is_never_repaired(
    plan: str, room: object, name: str, defect: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "O10" in rules(load(_PLANS / f"{plan}.yaml"), lambda: monkeypatch.setattr(room, name, defect))


@pytest.mark.rule("O10", "F29")
def test_reports_a_rejoined_member_that_is_never_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load(_PLANS / "F29-a-pd-joins-once-more-while-it-is-scaled-in.yaml")

    def let_join() -> None:
        """Discovery with v1.6's behaviour."""
        monkeypatch.setattr(discovery.service, "leaving", lambda *_: "")
        monkeypatch.setattr(member.pd.scaling, "may_join", lambda *_: None)

    def never_take_out() -> None:
        let_join()
        monkeypatch.setattr(member.pd.scaling, "_unasked", lambda *_: set())

    assert "O10" not in rules(plan, let_join)
    assert "O10" in rules(plan, never_take_out)
