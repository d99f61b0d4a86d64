"""Without resyncs it shows when nobody comes back for what only the time or the data plane brings: one in each test."""

from dataclasses import replace

import pytest

import member.lifecycle.component_sync
from member.context import ClusterContext
from member.outcome import Outcome, Waiting
from simulate.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_6_4_the_time_of_a_failover_that_is_not_told_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def the_told_one(outcome: Outcome, *_: Outcome) -> Outcome:
        return outcome

    plan = generated("no-resync/loss/pd-5.node.removed@recorded")
    sync = member.lifecycle.component_sync

    def plant() -> None:
        monkeypatch.setattr(sync, "in_time_for", the_told_one)
        monkeypatch.setattr(sync, "kept_by_lost_nodes", lambda *arguments: None)

    assert "O10" in rules(plan, plant)


def test_3_1_nobody_looks_at_a_component_that_others_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.lifecycle.component_sync._waits_for

    def without_a_time(ctx: ClusterContext, own: object) -> Waiting | None:
        waiting = honest(ctx, own)  # type: ignore[arg-type]
        return waiting and replace(waiting, retry_after=None)

    plan = generated("no-resync/joined-leaves")
    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "_waits_for", without_a_time)  # noqa: E731
    assert "O10" in rules(plan, plant)
