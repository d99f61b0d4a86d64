import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kube.rest_metrics import PrometheusObserver
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from ports.stopping import Stop
from ports.transport import (
    ConnectionLost,
    ConnectionRefused,
    Request,
    RequestTimeout,
    TlsError,
    TransportClosed,
    TransportError,
)
from tests.kube.fakes import Answer, ScriptedTransport, answer, step_until

GET = Request("GET", "/api/v1/pods")
POST = Request("POST", "/api/v1/pods", body=b"{}")
LOST = ConnectionLost("GET", "/api/v1/pods", "reset")
BUSY = answer(429, retry_after="7")
OK = answer(200, {})


class Bench:
    """A retrying transport over a script, with a stepped clock."""

    def __init__(
        self,
        clock: FakeClock,
        script: Sequence[Answer] | Callable[[Request], Answer],
        qps: float = 50.0,
        burst: int = 100,
        **extra: Any,
    ) -> None:
        self.clock = clock
        self.stop = Stop()
        self.inner = ScriptedTransport(script)
        throttle = Throttle(Rate(qps, burst), clock)
        self.transport = RetryingTransport(self.inner, clock, throttle, self.stop, **extra)

    def run(self, act: Callable[[], Any]) -> tuple[Any, float]:
        """The result of `act`, or the error that it raised, and the virtual seconds that it waited."""
        result: list[Any] = []

        def target() -> None:
            try:
                result.append(act())
            except (TransportError, LeaseExpired) as error:
                result.append(error)

        started = self.clock.now()
        thread = threading.Thread(target=target, name="caller")
        thread.start()
        step_until(self.clock, lambda: not thread.is_alive(), by=0.25)
        return result[0], self.clock.now() - started

    def send(self, request: Request = GET) -> tuple[Any, float]:
        return self.run(lambda: self.transport.request(request))

    def watch(self) -> tuple[Any, float]:
        return self.run(lambda: self.transport.stream(GET, 60))


@pytest.mark.parametrize("request_", [GET, POST])
@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.rule("REST-3")
def test_retry_after_is_obeyed_for_any_verb(clock: FakeClock, code: int, request_: Request) -> None:
    bench = Bench(clock, [answer(code, retry_after="7"), OK])

    assert (OK, 7.0) == bench.send(request_)


@pytest.mark.parametrize(("asked", "waited"), [("86400", 300.0), ("9" * 400, 300.0), ("0", 1.0), ("2", 2.0)])
@pytest.mark.rule("REST-3")
def test_bounds_retry_after_on_both_sides(clock: FakeClock, asked: str, waited: float) -> None:
    bench = Bench(clock, [answer(503, retry_after=asked), OK])

    assert (OK, waited) == bench.send(GET)


@pytest.mark.parametrize(
    "final",
    [
        answer(429),
        answer(503),
        answer(429, retry_after="soon"),
        answer(503, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
        answer(409, retry_after="1"),
        answer(302, retry_after="1"),
    ],
)
@pytest.mark.rule("REST-3")
def test_other_answers_are_final(clock: FakeClock, final: Answer) -> None:
    assert (final, 0.0) == Bench(clock, [final]).send()


@pytest.mark.rule("REST-2")
def test_there_are_eleven_attempts(clock: FakeClock) -> None:
    bench = Bench(clock, [BUSY] * 11)

    assert (BUSY, 70.0) == bench.send()
    assert 11 == len(bench.inner.requests)


@pytest.mark.rule("REST-4")
def test_a_read_is_repeated_over_a_new_connection(clock: FakeClock) -> None:
    assert (OK, 2.0) == Bench(clock, [LOST, LOST, OK]).send()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (POST, LOST),
        (GET, ConnectionRefused("GET", "/", "refused")),
        (GET, RequestTimeout("GET", "/", "slow")),
        (GET, TlsError("GET", "/", "who are you")),
    ],
)
@pytest.mark.rule("REST-4")
def test_does_not_repeat_writes_and_hopeless_reads(clock: FakeClock, request_: Request, error: TransportError) -> None:
    assert (error, 0.0) == Bench(clock, [error]).send(request_)


@pytest.mark.rule("REST-6")
def test_an_error_after_other_attempts_names_the_first(clock: FakeClock) -> None:
    error, _ = Bench(clock, [LOST, ConnectionRefused("GET", "/", "refused")]).send()

    assert isinstance(error, ConnectionRefused)
    assert "refused (earlier: reset)" == error.cause


@pytest.mark.rule("REST-1")
def test_requests_wait_for_their_token(clock: FakeClock) -> None:
    bench = Bench(clock, [OK] * 4, qps=2, burst=2)

    assert [0.0, 0.0, 0.5, 0.5] == [bench.send()[1] for _ in range(4)]


@pytest.mark.rule("REST-1")
def test_a_watch_takes_a_token_only_for_its_retries(clock: FakeClock) -> None:
    bench = Bench(clock, [OK, OK, BUSY, OK], qps=0.1, burst=1)

    bench.send()
    assert 0.0 == bench.watch()[1]
    assert 10.0 == bench.watch()[1]


@pytest.mark.rule("REST-5")
def test_a_watch_that_cannot_be_opened_is_empty(clock: FakeClock) -> None:
    bench = Bench(clock, [LOST, RequestTimeout("GET", "/", "slow")] * 5 + [LOST])

    stream, waited = bench.watch()

    assert ([], 200, 10.0) == (list(stream), stream.status, waited)


@pytest.mark.rule("REF-21")
def test_a_refused_watch_is_for_the_reflector(clock: FakeClock) -> None:
    refused = ConnectionRefused("GET", "/", "refused")

    assert (refused, 0.0) == Bench(clock, [refused]).watch()


def test_a_stop_before_sending_closes_the_transport(clock: FakeClock) -> None:
    bench = Bench(clock, [])
    bench.stop.set()

    assert isinstance(bench.send()[0], TransportClosed)


@pytest.mark.parametrize("known", [BUSY, LOST])
def test_a_stop_ends_the_wait_for_a_retry_with_the_last_result(clock: FakeClock, known: Answer) -> None:
    def stop_meanwhile(_: Request) -> Answer:
        bench.stop.set()
        return known

    bench = Bench(clock, stop_meanwhile)

    assert (known, 0.0) == bench.send()


@pytest.mark.parametrize("known", [BUSY, LOST])
@pytest.mark.rule("CW-10")
def test_a_hurry_skips_retries_but_allows_requests(clock: FakeClock, known: Answer) -> None:
    def hurry_meanwhile(_: Request) -> Answer:
        hurry.set()
        return known

    hurry = Stop()
    bench = Bench(clock, hurry_meanwhile, hurry=hurry)

    assert [(known, 0.0), (known, 0.0)] == [bench.send(), bench.send()]


@pytest.mark.rule("LE-22")
def test_a_write_is_checked_at_every_attempt(clock: FakeClock) -> None:
    class ClosesAfter:
        def __init__(self, writes: int) -> None:
            self.left = writes

        def check(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise LeaseExpired

    bench = Bench(clock, [BUSY, OK], fence=ClosesAfter(1))

    assert isinstance(bench.send(POST)[0], LeaseExpired)
    assert 1 == len(bench.inner.requests)
    assert OK == Bench(clock, [OK], fence=ClosesAfter(0)).send(GET)[0]


@pytest.mark.rule("8.3")
def test_counts_every_attempt(clock: FakeClock) -> None:
    registry = CollectorRegistry()
    bench = Bench(clock, [BUSY, LOST, OK], observer=PrometheusObserver(registry, "https://127.0.0.1:6443"))

    bench.send()

    host = {"host": "127.0.0.1:6443"}
    for code in ("429", "<error>", "200"):
        labels = host | {"code": code, "method": "GET"}
        assert 1.0 == registry.get_sample_value("rest_client_requests_total", labels)
    labels = host | {"code": "<error>", "verb": "GET"}
    assert 1.0 == registry.get_sample_value("rest_client_request_retries_total", labels)
    labels = host | {"verb": "GET"}
    assert 8.0 == registry.get_sample_value("rest_client_request_duration_seconds_sum", labels)
    assert 3.0 == registry.get_sample_value("rest_client_rate_limiter_duration_seconds_count", labels)
    assert b"rest_client_response_size_bytes_bucket" in generate_latest(registry)


@pytest.mark.parametrize(("qps", "burst"), [(0, 10), (5, 0), (-1, 1)])
def test_rejects_a_rate_that_allows_no_requests(clock: FakeClock, qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="qps > 0 and burst >= 1"):
        Throttle(Rate(qps, burst), clock)
