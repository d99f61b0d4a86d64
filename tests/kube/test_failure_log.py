"""A failure that lasts for hours takes few log lines."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from kube.failure_log import FailureLog
from ports.clock import FakeClock

Logs = list[MutableMapping[str, Any]]


@pytest.fixture
def logs() -> Iterator[Logs]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def failures(clock: FakeClock) -> FailureLog:
    return FailureLog(structlog.get_logger("room"), clock)


def told(logs: Logs) -> list[tuple[str, str, int]]:
    return [(each["log_level"], each["event"], each["failures"]) for each in logs if each["log_level"] != "debug"]


def test_logs_a_lasting_failure_at_growing_intervals(failures: FailureLog, clock: FakeClock, logs: Logs) -> None:
    for _ in range(3600):
        failures.failed("no answer", cause="down")
        clock.step(1.0)
    assert [("warning", "no answer", count) for count in (1, 61, 181, 421, 901, 1861)] == told(logs)
    assert 3600 == len(logs)
    assert "down" == logs[0]["cause"]


def test_logs_the_end_once_with_its_duration(failures: FailureLog, clock: FakeClock, logs: Logs) -> None:
    failures.worked("it answers again")
    failures.failed("no answer")
    clock.step(30.0)
    failures.failed("no answer")
    failures.worked("it answers again")
    failures.worked("it answers again")
    assert [("warning", "no answer", 1), ("info", "it answers again", 2)] == told(logs)
    assert 30.0 == logs[-1]["seconds"]


def test_alternating_failures_are_not_logged_more_often(failures: FailureLog, clock: FakeClock, logs: Logs) -> None:
    for _ in range(1800):
        failures.failed("no answer")
        clock.step(1.0)
        failures.worked("it answers again")
        clock.step(1.0)
    assert 2 * 6 == len(told(logs))


def test_a_failure_after_a_long_success_is_logged_immediately(
    failures: FailureLog, clock: FakeClock, logs: Logs
) -> None:
    failures.failed("no answer")
    failures.worked("it answers again")
    clock.step(120.0)
    failures.failed("no answer")
    assert ("warning", "no answer", 1) == told(logs)[-1]
