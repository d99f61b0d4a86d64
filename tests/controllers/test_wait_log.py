"""What the log says about waits: begin and end, once each, with their duration."""

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from controllers.wait_log import WaitLog
from member.outcome import Done, Failed, Outcome, Refused, Waiting
from ports.clock import FakeClock

ROLLING = Waiting("RollingUpdate", "restarting the pods one by one")
EVICTING = Waiting("EvictingLeaders", "evicting leaders from pod tikv-2: 10 left")
UNREACHABLE = Failed("PDUnreachable", "GET http://pd: connection refused")
REFUSED = Refused("StalePVC", "inspect its data")
FAILED_OVER = Waiting("TiKVFailedOver", "tikv-3 replaced the lost tikv-1", serves=True)


class Log:
    """The log of the waits of one stage, on its own clock."""

    def __init__(self, capture: LogCapture) -> None:
        self._capture = capture
        self._clock = FakeClock()
        self._waits = WaitLog(self._clock)

    def after(self, seconds: float, outcome: Outcome | None = None) -> list[dict[str, Any]]:
        """The lines at the default level when the stage answers this, or does not answer."""
        self._clock.step(seconds)
        self._capture.entries.clear()
        self._waits.note({"tikv": outcome} if outcome else {})
        kept = [dict(entry) for entry in self._capture.entries if entry["log_level"] != "debug"]
        assert all(entry.pop("stage") == "tikv" for entry in kept)
        return kept

    def debug(self) -> list[str]:
        """The lines of the last look that only -v=4 shows."""
        return [entry["event"] for entry in self._capture.entries if entry["log_level"] == "debug"]


@pytest.fixture
def log() -> Iterator[Log]:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield Log(capture)
    structlog.reset_defaults()


def waiting(outcome: Waiting) -> list[dict[str, Any]]:
    return [{"event": "waiting", "log_level": "info", "reason": outcome.reason, "message": outcome.message}]


def ended(seconds: float, **waited: float) -> list[dict[str, Any]]:
    return [{"event": "wait ended", "log_level": "info", "seconds": seconds, "waited": waited}]


def test_nothing_is_logged_for_finished_stages(log: Log) -> None:
    assert [] == log.after(0, Done())
    assert [] == log.after(60, Done("suspended", "Suspended"))


def test_a_wait_is_logged_at_its_begin_and_end_and_not_in_between(log: Log) -> None:
    assert waiting(ROLLING) == log.after(0, ROLLING)
    assert [] == log.after(5, Waiting("RollingUpdate", "waiting until pod tikv-2 is Ready"))
    assert ["still waiting"] == log.debug()
    assert [] == log.after(5, Waiting("RollingUpdate", "waiting until pod tikv-2 is Ready"))
    assert [] == log.debug()
    assert ended(10.0, RollingUpdate=10.0) == log.after(0, Done())
    assert [] == log.after(60, Done())
    assert waiting(ROLLING) == log.after(60, ROLLING)


def test_a_lasting_obstacle_is_logged(log: Log) -> None:
    log.after(0, ROLLING)
    assert [] == log.after(1, EVICTING)
    assert [] == log.after(9, ROLLING)
    assert [] == log.after(1, EVICTING)
    assert waiting(EVICTING) == log.after(2, EVICTING)
    assert [] == log.after(600, EVICTING)
    assert ended(620.0, RollingUpdate=2.0, EvictingLeaders=618.0) == log.after(7, Done())


def test_a_failure_is_logged_when_a_retry_does_not_help(log: Log) -> None:
    assert [] == log.after(0, UNREACHABLE)
    assert [] == log.after(1, Done())
    assert [] == log.after(60, UNREACHABLE)
    told = log.after(1, UNREACHABLE)
    assert [("failing", "warning", "PDUnreachable")] == [(e["event"], e["log_level"], e["reason"]) for e in told]
    assert [] == log.after(1, UNREACHABLE)
    assert ended(3.0, PDUnreachable=3.0) == log.after(1, Done())


def test_a_refusal_is_logged_once_however_often_the_stage_works_beside_it(log: Log) -> None:
    (told,) = log.after(0, REFUSED)
    assert ("refused", "warning", "StalePVC") == (told["event"], told["log_level"], told["reason"])
    assert [] == log.after(60, REFUSED)
    assert waiting(ROLLING) == log.after(0, ROLLING)
    assert ended(5.0, RollingUpdate=5.0) == log.after(5, REFUSED)
    (told,) = log.after(5, Done())
    assert ("no longer refused", "StalePVC", 70.0) == (told["event"], told["reason"], told["seconds"])


def test_a_stage_that_is_no_more_refuses_nothing(log: Log) -> None:
    log.after(0, REFUSED)
    (told,) = log.after(5)
    assert ("no longer refused", 5.0) == (told["event"], told["seconds"])
    log.after(0, ROLLING)
    assert [] == log.after(5)
    assert ended(10.0, RollingUpdate=10.0) == log.after(5, Done())


def test_a_failover_whose_substitutes_serve_is_no_wait_of_the_stage(log: Log) -> None:
    log.after(0, ROLLING)
    end, begin = log.after(3, FAILED_OVER)
    assert [end] == ended(3.0, RollingUpdate=3.0)
    assert ("waiting while all serve", "TiKVFailedOver") == (begin["event"], begin["reason"])
    assert waiting(ROLLING) == log.after(86400, ROLLING)
    assert ended(3.0, RollingUpdate=3.0) == log.after(3, FAILED_OVER)
    (told,) = log.after(0, Done())
    assert ("wait ended", "TiKVFailedOver", 86403.0) == (told["event"], told["reason"], told["seconds"])


def test_a_recurring_wait_is_logged_a_few_times(log: Log) -> None:
    told = []
    for _ in range(100):
        told += [each["event"] for each in log.after(10, ROLLING)]
        told += [each["event"] for each in log.after(10, Done())]
    again = "waiting again and again: logged only if it lasts, until it rests"
    assert [*["waiting", "wait ended"] * 3, again] == told


def test_a_lasting_wait_is_logged_however_many_came_before(log: Log) -> None:
    for _ in range(10):
        log.after(1, ROLLING)
        log.after(1, Done())
    assert [] == log.after(1, ROLLING)
    assert [] == log.after(30, ROLLING)
    assert waiting(ROLLING) == log.after(30, ROLLING)
    assert ended(61.0, RollingUpdate=61.0) == log.after(1, Done())


def test_after_a_rest_a_wait_is_news(log: Log) -> None:
    for _ in range(10):
        log.after(1, ROLLING)
        log.after(1, Done())
    assert waiting(ROLLING) == log.after(61, ROLLING)


def test_different_waits_in_a_row_are_all_logged(log: Log) -> None:
    for _ in range(10):
        assert waiting(ROLLING) == log.after(1, ROLLING)
        log.after(1, Done())
        assert waiting(EVICTING) == log.after(1, EVICTING)
        log.after(1, Done())
