"""Silent endpoints get short timeouts until they answer (reliability.md R31)."""

import contextlib

import pytest

from dataplane.timeouts import (
    FULL_TRY_EVERY,
    LONGEST,
    PROBE_TIMEOUT,
    SLOW,
    AdaptiveTimeoutTransport,
    OneTimeoutTransport,
)
from ports.clock import FakeClock
from ports.transport import ConnectionRefused, Request, RequestTimeout, TransportError
from tests.dataplane.scripted import Answer, ScriptedTransport

FULL = 5.0
CALL = "GET /status"


def _asked(clock: FakeClock, *answers: Answer, url: str = "http://pd:2379/status", pause: float = 0.0) -> list[float]:
    """Send one read per answer and return the timeouts that they got."""
    scripted = ScriptedTransport().on(CALL, *answers)
    patient = AdaptiveTimeoutTransport(scripted, clock)
    for _ in answers:
        with contextlib.suppress(TransportError):
            patient.request(Request("GET", url, timeout=FULL))
        clock.step(pause)
    return [request.timeout for request in scripted.requests]


@pytest.mark.rule("R31")
def test_reads_of_a_silent_endpoint_are_short_until_one_is_answered(clock: FakeClock) -> None:
    answers = (RequestTimeout, RequestTimeout, (200, ""), (200, ""))
    assert [FULL, PROBE_TIMEOUT, PROBE_TIMEOUT, FULL] == _asked(clock, *answers)


@pytest.mark.rule("R31")
def test_a_slow_endpoint_periodically_gets_a_longer_timeout(clock: FakeClock) -> None:
    answers = [RequestTimeout] * 8
    expected = [FULL, 2 * FULL, PROBE_TIMEOUT, LONGEST, PROBE_TIMEOUT, PROBE_TIMEOUT, PROBE_TIMEOUT, LONGEST]
    assert expected == _asked(clock, *answers, pause=FULL_TRY_EVERY)


@pytest.mark.parametrize(("takes", "allowed"), [(1.0, FULL), (4.0, 8.0), (10.0, LONGEST), (15.0, LONGEST)])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.rule("R31")
def test_an_endpoint_gets_twice_the_time_that_it_took(
    clock: FakeClock, method: str, takes: float, allowed: float
) -> None:
    scripted = ScriptedTransport(before=lambda _: clock.step(takes)).on(CALL, (200, "")).on("POST /status", (200, ""))
    adaptive = AdaptiveTimeoutTransport(scripted, clock)
    adaptive.request(Request("GET", "http://a:2379/status", timeout=FULL))
    adaptive.request(Request(method, "http://a:2379/status", timeout=FULL))
    assert [FULL, allowed] == [request.timeout for request in scripted.requests]


@pytest.mark.rule("R31")
def test_an_endpoint_that_recovers_gets_the_usual_timeout(clock: FakeClock) -> None:
    times = [10.0, 0.1, 0.1, 0.1]
    scripted = ScriptedTransport(before=lambda _: clock.step(times.pop(0))).on(CALL, (200, ""))
    adaptive = AdaptiveTimeoutTransport(scripted, clock)
    for _ in range(4):
        adaptive.request(Request("GET", "http://a:2379/status", timeout=FULL))
    assert [FULL, LONGEST, 2 * FULL, FULL] == [request.timeout for request in scripted.requests]


def test_a_short_timeout_stays_short(clock: FakeClock) -> None:
    scripted = ScriptedTransport(before=lambda _: clock.step(10.0)).on(CALL, (200, ""))
    adaptive = AdaptiveTimeoutTransport(scripted, clock)
    for _ in range(2):
        adaptive.request(Request("GET", "http://a:2379/status", timeout=1.0))
    assert [1.0, 1.0] == [request.timeout for request in scripted.requests]


def test_a_refused_connection_does_not_count_as_silence(clock: FakeClock) -> None:
    assert [FULL, FULL] == _asked(clock, ConnectionRefused, (200, ""))


def test_writes_and_other_endpoints_keep_their_timeout(clock: FakeClock) -> None:
    scripted = ScriptedTransport().on(CALL, RequestTimeout).on("POST /status", (200, ""))
    patient = AdaptiveTimeoutTransport(scripted, clock)
    for method, host in (("GET", "a"), ("GET", "b"), ("POST", "a")):
        with contextlib.suppress(TransportError):
            patient.request(Request(method, f"http://{host}:2379/status", timeout=FULL))
    assert [FULL] * 3 == [request.timeout for request in scripted.requests]


def test_passes_on_the_error_of_the_transport(clock: FakeClock) -> None:
    patient = AdaptiveTimeoutTransport(ScriptedTransport().on(CALL, RequestTimeout), clock)
    with pytest.raises(RequestTimeout, match="as scripted"):
        patient.request(Request("GET", "http://pd:2379/status"))


@pytest.mark.rule("R31")
def test_an_endpoint_that_timed_out_gets_no_more_requests(clock: FakeClock) -> None:
    scripted = ScriptedTransport().on(CALL, RequestTimeout, (200, ""))
    silent: set[str] = set()
    of_round = OneTimeoutTransport(scripted, silent, set(), clock)
    for _ in range(3):
        with pytest.raises(RequestTimeout):
            of_round.request(Request("GET", "http://a:2379/status"))
    assert 1 == len(scripted.requests)
    assert {"a:2379"} == silent
    assert 200 == of_round.request(Request("GET", "http://b:2379/status")).status


@pytest.mark.parametrize(("takes", "slow"), [(SLOW, set()), (SLOW + 1, {"a:2379"})])
@pytest.mark.rule("R31")
def test_reports_slow_endpoints(clock: FakeClock, takes: float, slow: set[str]) -> None:
    scripted = ScriptedTransport(before=lambda _: clock.step(takes)).on(CALL, (200, ""))
    found: set[str] = set()
    OneTimeoutTransport(scripted, set(), found, clock).request(Request("GET", "http://a:2379/status"))
    assert slow == found
