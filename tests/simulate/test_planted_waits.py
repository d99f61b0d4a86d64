"""Without resyncs, a missing wake-up for changes without events becomes visible."""

from dataclasses import replace

import pytest
from msgspec import structs

import member.lifecycle.component_sync
from member.context import ClusterContext
from member.outcome import Waiting
from simulate.engine.plan import World
from simulate.families.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


@pytest.mark.rule("3.1")
def test_reports_a_wait_without_a_scheduled_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.lifecycle.component_sync._waits_for

    def without_a_time(ctx: ClusterContext, own: object) -> Waiting | None:
        waiting = honest(ctx, own)  # type: ignore[arg-type]
        return waiting and replace(waiting, retry_after=None)

    silent = World(at=0.5, verb="pd_no_leader", arguments={"cluster": "default/basic"})
    # the cluster no longer has its own PD when that elects a leader
    plan = structs.replace(generated("no-resync/joined-leaves"), given=(silent,))
    assert set() == rules(plan, lambda: None)
    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "_waits_for", without_a_time)  # noqa: E731
    assert "O10" in rules(plan, plant)
