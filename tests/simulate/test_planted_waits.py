"""Without resyncs it shows when nobody comes back for what no event tells."""

from dataclasses import replace

import pytest

import member.lifecycle.component_sync
from member.context import ClusterContext
from member.outcome import Waiting
from simulate.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_3_1_nobody_looks_at_a_component_that_others_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.lifecycle.component_sync._waits_for

    def without_a_time(ctx: ClusterContext, own: object) -> Waiting | None:
        waiting = honest(ctx, own)  # type: ignore[arg-type]
        return waiting and replace(waiting, retry_after=None)

    plan = generated("no-resync/joined-leaves")
    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "_waits_for", without_a_time)  # noqa: E731
    assert "O10" in rules(plan, plant)
