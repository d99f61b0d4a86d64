import threading

import pytest

from informers.factory import PERIOD, SWITCH, InconsistencyDetector, SharedInformerFactory, is_switched_on
from kube.resources import PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from tests.informers.fake_source import FakeSource, pod, refusal


class _Watched:
    """A synced cache of one pod, and the number of reported differences."""

    def __init__(self, clock: FakeClock) -> None:
        self.source = FakeSource()
        self.source.add(pod("a"))
        factory = SharedInformerFactory(self.source.client(), clock, SeededRandomness(1))
        informer = factory.informer_for(PODS)
        informer.reflector.step()
        informer.step()
        self.told = 0
        self.detector = InconsistencyDetector([factory], clock, self._tell)

    def _tell(self) -> None:
        self.told += 1


@pytest.mark.rule("REF-40h")
def test_a_cache_that_misses_an_object_is_reported(clock: FakeClock) -> None:
    watched = _Watched(clock)
    watched.detector.step()
    assert 0 == watched.told
    watched.source.add_drop_watch(pod("b"))
    watched.detector.step()
    assert 1 == watched.told


@pytest.mark.rule("REF-40h")
def test_incomparable_caches_are_no_difference(clock: FakeClock) -> None:
    watched = _Watched(clock)
    watched.source.add_drop_watch(pod("b"))
    watched.source.fail("LIST", refusal(410, "Expired"))
    watched.detector.step()
    assert 0 == watched.told


@pytest.mark.rule("REF-40h")
def test_caches_are_compared_once_a_period(clock: FakeClock) -> None:
    watched, stop = _Watched(clock), Stop()
    watched.source.add_drop_watch(pod("b"))
    thread = threading.Thread(target=watched.detector.run, args=(stop,), name="detector")
    thread.start()
    for _ in range(2):
        clock.wait_for_waiters()
        clock.step(PERIOD)
    clock.wait_for_waiters()
    stop.set()
    thread.join(5)
    assert 2 == watched.told


@pytest.mark.rule("REF-40h")
def test_the_environment_variable_of_client_go_enables_it() -> None:
    assert [True, True, False, False] == [
        is_switched_on(environ) for environ in ({SWITCH: "true"}, {SWITCH: "True"}, {SWITCH: "false"}, {})
    ]
