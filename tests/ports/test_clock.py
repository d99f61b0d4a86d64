import threading
from datetime import UTC, timedelta

import pytest

from ports.clock import FakeClock, SystemClock
from ports.stopping import Stop


@pytest.mark.rule("TH-20")
def test_a_fake_clock_moves_only_when_stepped(clock: FakeClock) -> None:
    before = clock.wall()
    clock.step(1.5)

    assert (1.5, before + timedelta(seconds=1.5)) == (clock.now(), clock.wall())


@pytest.mark.rule("TH-20")
def test_a_step_wakes_only_waiters_that_are_due(clock: FakeClock) -> None:
    stop = Stop()
    woken: list[bool] = []
    threads = [
        threading.Thread(target=lambda s=seconds: woken.append(stop.wait(clock, s)), name="sleeper")
        for seconds in (1, 9)
    ]
    for thread in threads:
        thread.start()
    clock.wait_for_waiters(2)
    clock.step(1)

    assert not clock.has_waiters(2)
    threads[0].join(5)
    assert [False] == woken
    stop.set()
    threads[1].join(5)
    assert [False, True] == woken


def test_waiting_for_missing_waiters_times_out(clock: FakeClock) -> None:
    with pytest.raises(TimeoutError, match="0 threads wait on the clock, expected 1"):
        clock.wait_for_waiters(timeout=0.01)


def test_the_system_clock_is_in_utc_and_waits_at_most_the_timeout() -> None:
    clock = SystemClock()
    condition = threading.Condition()
    before = clock.now()
    with condition:
        clock.wait(condition, 0.001)

    assert clock.now() > before
    assert UTC == clock.wall().tzinfo
