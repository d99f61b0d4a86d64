"""The judge notices when pods of TiKV are restarted while data that others hold is away: one defect in each test."""

from pathlib import Path

import pytest

import member.tikv.stores
from dataplane.pd import Store
from member.context import ReconcileContext
from simulate.plan import load
from tests.simulate.planting import rules

pytestmark = pytest.mark.slow

_PLANS = Path(__file__).parent / "plans"


@pytest.mark.parametrize(
    "plan",
    [
        "F13-stores-that-start-slowly",
        "F13-stores-that-commands-restart-start-slowly",
        "F13-a-store-crashes-while-others-are-restarted",
    ],
)
def test_I41_F13_a_store_counts_that_pd_still_calls_up_from_before_its_restart(
    plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believing(*_: object) -> bool:
        return False

    plant = lambda: monkeypatch.setattr(member.tikv.stores, "_is_restarting", believing)  # noqa: E731

    assert "I41" in rules(load(_PLANS / f"{plan}.yaml"), plant)


def test_I41_F13_a_lost_store_is_excused_as_soon_as_failover_has_given_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def given_up(ctx: ReconcileContext, store: Store, _: object) -> bool:
        return any(record.store_id == str(store.id) for record in ctx.status.tikv.failure_stores.values())

    plan = load(_PLANS / "F13-a-roll-waits-for-lost-data-to-be-copied.yaml")
    plant = lambda: monkeypatch.setattr(member.tikv.stores, "_is_empty", given_up)  # noqa: E731

    assert "I41" in rules(plan, plant)
