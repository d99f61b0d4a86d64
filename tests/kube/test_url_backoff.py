import pytest

from kube.url_backoff import UrlBackoff, from_environment
from ports.clock import FakeClock
from ports.pace import Pace
from tests.kube.fakes import answer
from tests.kube.test_retrying import GET, OK, Bench

_NAMES = ("KUBE_CLIENT_BACKOFF_BASE", "KUBE_CLIENT_BACKOFF_DURATION")


def _wait_after(backoff: UrlBackoff, status: int) -> float:
    backoff.answered(status)
    return backoff.remaining()


@pytest.mark.rule("REST-8")
def test_failures_double_the_wait_and_anything_else_ends_it(clock: FakeClock) -> None:
    backoff = UrlBackoff(clock, Pace(1.0, 5.0))

    assert 0.0 == backoff.remaining()
    assert [1.0, 2.0, 4.0, 5.0, 0.0, 1.0] == [_wait_after(backoff, s) for s in (500, 503, 429, 500, 404, 500)]


@pytest.mark.rule("REST-8")
def test_the_wait_counts_from_the_answer(clock: FakeClock) -> None:
    backoff = UrlBackoff(clock, Pace(4.0, 10.0))
    backoff.answered(500)
    clock.step(3.0)
    assert 1.0 == backoff.remaining()


@pytest.mark.rule("REST-8")
def test_the_next_request_waits(clock: FakeClock) -> None:
    bench = Bench(clock, [answer(500), OK], backoff=UrlBackoff(clock, Pace(2.0, 10.0)))

    assert 0.0 == bench.run(lambda: bench.transport.request(GET))[1]
    assert 2.0 == pytest.approx(bench.run(lambda: bench.transport.request(GET))[1], abs=1.0)
    assert 2 == len(bench.inner.requests)


@pytest.mark.rule("REST-8", "REST-3")
def test_the_longer_delay_counts(clock: FakeClock) -> None:
    bench = Bench(clock, [answer(429, retry_after="7"), OK], backoff=UrlBackoff(clock, Pace(2.0, 10.0)))

    assert 7.0 == pytest.approx(bench.run(lambda: bench.transport.request(GET))[1], abs=1.0)


@pytest.mark.parametrize("values", [("", ""), ("1", ""), ("0", "10"), ("one", "10")])
@pytest.mark.rule("REST-8")
def test_it_is_off_unless_the_environment_enables_it(clock: FakeClock, values: tuple[str, str]) -> None:
    assert from_environment(dict(zip(_NAMES, values, strict=True)), clock) is None
    assert from_environment(dict(zip(_NAMES, ("1", "10"), strict=True)), clock) is not None
