"""No cluster is synced as fast as the API server answers."""

from controllers.tidbcluster.status_write_limiter import BURST, FAILURE, RATE, StatusWriteLimiter
from ports.clock import FakeClock


def test_R19_a_status_that_changes_without_end_is_written_at_a_pace() -> None:
    clock = FakeClock()
    pace = StatusWriteLimiter(clock)
    for _ in range(BURST):
        assert 0 == pace.pause("default/basic")
        pace.wrote("default/basic")
    assert (1 / RATE, 0) == (pace.pause("default/basic"), pace.pause("default/other"))
    clock.step(1 / RATE)
    assert 0 == pace.pause("default/basic")
    pace.wrote("default/basic")
    assert 1 / RATE == pace.pause("default/basic")
    pace.forget("default/basic")
    assert 0 == pace.pause("default/basic")


def test_R13_a_cluster_that_goes_on_failing_is_tried_less_than_once_in_a_second() -> None:
    clock = FakeClock()
    pace = StatusWriteLimiter(clock)
    for _ in range(int(BURST / FAILURE)):
        assert 0 == pace.pause("default/basic")
        pace.failed("default/basic")
    for _ in range(3):
        clock.step(pace.pause("default/basic"))
        pace.failed("default/basic")
        assert 1 < pace.pause("default/basic")


def test_R13_a_quiet_minute_does_not_make_failures_come_together() -> None:
    clock = FakeClock()
    pace = StatusWriteLimiter(clock)
    for _ in range(int(BURST / FAILURE)):
        pace.failed("default/basic")
    clock.step(60.0)
    pace.failed("default/basic")
    assert 1 < pace.pause("default/basic")
    pace.worked("default/basic")
    clock.step(60.0)
    pace.failed("default/basic")
    assert 0 == pace.pause("default/basic")
