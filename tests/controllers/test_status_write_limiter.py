"""No cluster is synced as fast as the API server answers."""

import pytest

from controllers.status_write_limiter import FAILURE, PACE, StatusWriteLimiter
from ports.clock import FakeClock


@pytest.mark.rule("R19")
def test_a_status_that_changes_without_end_is_written_at_a_pace() -> None:
    clock = FakeClock()
    limiter = StatusWriteLimiter(clock)
    for _ in range(PACE.at_once):
        assert 0 == limiter.pause()
        limiter.wrote()
    assert PACE.first == limiter.pause()
    clock.step(PACE.first)
    assert 0 == limiter.pause()
    limiter.wrote()
    assert PACE.first == limiter.pause()


@pytest.mark.rule("R13")
def test_a_cluster_that_keeps_failing_is_tried_less_than_once_in_a_second() -> None:
    clock = FakeClock()
    limiter = StatusWriteLimiter(clock)
    for _ in range(int(PACE.at_once / FAILURE)):
        assert 0 == limiter.pause()
        limiter.failed()
    for _ in range(3):
        clock.step(limiter.pause())
        limiter.failed()
        assert 1 < limiter.pause()


@pytest.mark.rule("R13")
def test_a_quiet_minute_does_not_make_failures_come_together() -> None:
    clock = FakeClock()
    limiter = StatusWriteLimiter(clock)
    for _ in range(int(PACE.at_once / FAILURE)):
        limiter.failed()
    clock.step(60.0)
    limiter.failed()
    assert 1 < limiter.pause()
    limiter.worked()
    clock.step(60.0)
    limiter.failed()
    assert 0 == limiter.pause()
