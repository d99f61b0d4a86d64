"""Syncs that take very long."""

import pytest
from structlog.testing import capture_logs

from controllers.active_syncs import ActiveSyncs
from ports.clock import FakeClock


@pytest.mark.rule("CW-7")
def test_a_sync_that_takes_very_long_is_reported_once_with_its_stack(clock: FakeClock) -> None:
    running = ActiveSyncs(clock)

    with capture_logs() as logs, running.including("ns/slow"):
        clock.step(299)
        running.report_stuck()
        assert [] == logs

        clock.step(1)
        running.report_stuck()
        running.report_stuck()

    assert [("ns/slow", 300)] == [(log["key"], log["seconds"]) for log in logs]
    assert "test_a_sync_that_takes_very_long" in logs[0]["stack"]
    assert [] == running.keys()
