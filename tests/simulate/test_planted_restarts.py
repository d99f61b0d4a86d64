"""The judge notices when pods of TiKV are restarted while data that others hold is away: one defect in each test."""

from datetime import datetime
from pathlib import Path

import pytest

import member.stores.reports
import member.stores.rolling
import member.stores.scaling
import member.tikv.rolling
from dataplane.pd import Store
from kube.objects import Object
from member.context import ReconcileContext
from member.lifecycle.pod_removal import PodRemoval
from member.memory import Stopwatch
from simulate.engine.plan import load
from tests.simulate.planting import nothing, rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_PLANS = Path(__file__).parent / "plans"


@pytest.mark.parametrize(
    "plan",
    [
        "F13-stores-that-start-slowly",
        "F13-stores-that-commands-restart-start-slowly",
        "F13-a-store-crashes-while-others-are-restarted",
    ],
)
@pytest.mark.rule("I41", "F13")
def test_reports_a_restarting_store_that_counts_because_pd_still_calls_it_up(
    plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believing(*_: object) -> bool:
        return False

    def plant() -> None:
        monkeypatch.setattr(member.stores.reports, "_is_restarting", believing)
        # either would do
        monkeypatch.setattr(member.stores.rolling, "_answers", lambda *_: True)

    assert "I41" in rules(load(_PLANS / f"{plan}.yaml"), plant)


@pytest.mark.rule("I41", "F13")
def test_reports_a_silent_store_that_counts_because_pd_calls_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.stores.rolling, "_answers", lambda *_: True)  # noqa: E731

    assert "I41" in rules(load(_PLANS / "F13-a-store-is-lost-and-nobody-has-noticed.yaml"), plant)


@pytest.mark.rule("I41", "F13")
def test_reports_a_lost_store_excused_before_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def given_up(ctx: ReconcileContext, store: Store, _: object) -> bool:
        return any(record.store_id == str(store.id) for record in ctx.status.tikv.failure_stores.values())

    plan = load(_PLANS / "F13-a-roll-waits-for-lost-data-to-be-copied.yaml")
    plant = lambda: monkeypatch.setattr(member.stores.reports, "_is_empty", given_up)  # noqa: E731

    assert "I41" in rules(plan, plant)


@pytest.mark.rule("I11", "F14")
def test_reports_a_leader_timeout_measured_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_wall(ctx: ReconcileContext, _: Object, begun: datetime) -> Stopwatch:
        return Stopwatch(begun, (ctx.deps.clock.wall() - begun).total_seconds())

    plan = load(_PLANS / "F44-a-clock-put-forward-while-leaders-move-away.yaml")
    plant = lambda: monkeypatch.setattr(member.tikv.rolling, "_elapsed", by_the_wall)  # noqa: E731

    assert "I11" in rules(plan, plant)


@pytest.mark.rule("F35")
def test_reports_a_deletion_delay_measured_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_wall(removal: PodRemoval, *_: object) -> float:
        since = removal.since
        return (removal.ctx.deps.clock.wall() - since).total_seconds() if since else 0.0

    plan = load(_PLANS / "F44-a-clock-put-forward-while-a-store-leaves.yaml")
    plant = lambda: monkeypatch.setattr(member.stores.scaling, "_waited", by_the_wall)  # noqa: E731

    assert "F35" in rules(plan, plant)


@pytest.mark.rule("I13", "F16")
def test_reports_an_unneeded_scheduler_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load(_PLANS / "F16-a-late-request-of-a-former-leader.yaml")
    plant = lambda: monkeypatch.setattr(member.tikv.rolling, "_end_strays", nothing)  # noqa: E731

    assert "I13" in rules(plan, plant)
