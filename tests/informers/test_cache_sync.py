import pytest

from informers.cache_sync import CacheSyncTimeout, wait_for_cache_sync
from informers.threads import start_thread
from ports.clock import FakeClock
from ports.latch import Latch
from ports.stopping import Stop
from tests.informers.support import DEADLINE


class Cache:
    """An informer that syncs when the test says so."""

    def __init__(self) -> None:
        self.synced = Latch()


@pytest.mark.rule("INF-40")
def test_the_wait_ends_with_the_last_sync(clock: FakeClock) -> None:
    pods, services = Cache(), Cache()
    answers: list[bool] = []
    pods.synced.set()
    waiter = start_thread(
        "waiter", lambda: answers.append(wait_for_cache_sync(Stop(), clock, pods=pods, services=services))
    )
    clock.wait_for_waiters()
    services.synced.set()
    waiter.join(DEADLINE)
    assert [True] == answers


@pytest.mark.rule("INF-40")
def test_a_stop_ends_the_wait(clock: FakeClock) -> None:
    stop = Stop()
    answers: list[bool] = []
    waiter = start_thread("waiter", lambda: answers.append(wait_for_cache_sync(stop, clock, pods=Cache())))
    clock.wait_for_waiters()
    stop.set()
    waiter.join(DEADLINE)
    assert [False] == answers


@pytest.mark.rule("INF-40")
def test_an_empty_list_of_informers_is_synced(clock: FakeClock) -> None:
    assert wait_for_cache_sync(Stop(), clock)


@pytest.mark.rule("CW-9", "OP-5")
def test_the_wait_has_a_deadline_and_names_the_missing(clock: FakeClock) -> None:
    ready = Cache()
    ready.synced.set()
    errors: list[CacheSyncTimeout] = []

    def wait() -> None:
        with pytest.raises(CacheSyncTimeout) as caught:
            wait_for_cache_sync(Stop(), clock, timeout=60, services=Cache(), nodes=Cache(), pods=ready)
        errors.append(caught.value)

    waiter = start_thread("waiter", wait)
    clock.wait_for_waiters()
    clock.step(60)
    waiter.join(DEADLINE)
    assert ["not synced after 60 s: nodes, services"] == [str(error) for error in errors]
    assert ["nodes", "services"] == errors[0].missing
