"""R13: the simulator reports an operator that ignores a Retry-After, and one that sends too many requests."""

import pytest

from ports.clock import FakeClock
from ports.transport import Request, Response
from simulate.engine.calls import Port, call
from simulate.engine.request_faults import RequestRules


class _Watched:
    """RequestRules, a clock, and the reports."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.reported: list[str] = []
        self.rules = RequestRules(self.clock, self.reported.append)

    def fail(self, tries: int, pause: float) -> None:
        """A sequence of syncs that fail."""
        for _ in range(tries):
            self.rules.synced("operator", "default/basic", True)
            self.clock.step(pause)


_POD = call("operator", 1, Port.KUBERNETES, Request("GET", "/api/v1/namespaces/default/pods/basic-pd-0"))
_BUSY = Response(429, {"retry-after": "5"}, b"")


@pytest.mark.parametrize(("waited", "reported"), [(5.0, 0), (1.0, 1)])
@pytest.mark.rule("R13")
def test_reports_a_request_repeated_before_retry_after(waited: float, reported: int) -> None:
    watched = _Watched()
    watched.rules.answered(_POD, _BUSY)
    watched.clock.step(waited)
    watched.rules.asking(_POD)

    assert reported == len(watched.reported)


@pytest.mark.rule("R13")
def test_reports_a_failing_key_that_is_retried_more_than_once_per_second() -> None:
    patient, hasty = _Watched(), _Watched()
    patient.fail(100, pause=1.0)
    hasty.fail(10, pause=0.0)
    assert [] == patient.reported + hasty.reported

    hasty.fail(10, pause=0.5)
    assert ["default/basic is tried 10 times in 4.500 s, and fails each time"] == hasty.reported


def test_a_restarted_process_begins_with_a_clean_record() -> None:
    watched = _Watched()
    watched.rules.answered(_POD, _BUSY)
    watched.fail(19, pause=0.0)
    watched.rules.forget("operator")
    watched.rules.asking(_POD)
    watched.fail(1, pause=0.0)

    assert [] == watched.reported
