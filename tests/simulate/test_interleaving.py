"""Actors take turns: one runs at a time, the seed decides which is next, and no thread remains."""

import threading
from collections.abc import Iterator

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.lock_step import Ended
from simulate.engine.interleaving import Interleaver


class _Driver:
    """An interleaver, a clock, and what its actors log."""

    def __init__(self, seed: int) -> None:
        self.clock = FakeClock()
        self.interleaver = Interleaver(self.clock, SeededRandomness(seed))
        self.log: list[str] = []

    def add(self, name: str, points: int) -> None:
        """An actor with one step that has some scheduling points."""
        steps = iter([points])

        def step() -> bool:
            for number in range(next(steps, 0)):
                self.log.append(f"{name}{number}")
                self.interleaver.preemption_point()
            return False

        self.interleaver.add(name, [step])

    def play(self) -> list[str]:
        """Run until no thread has work left."""
        while self.interleaver.turn():
            pass
        return self.log


@pytest.fixture
def driver() -> Iterator[_Driver]:
    before = set(threading.enumerate())
    driver = _Driver(1)
    yield driver
    driver.interleaver.end_all()
    assert set(threading.enumerate()) <= before


def _played(seed: int) -> list[str]:
    driver = _Driver(seed)
    driver.add("a", 20)
    driver.add("b", 20)
    log = driver.play()
    driver.interleaver.end_all()
    return log


def test_the_seed_decides_which_actor_runs_next() -> None:
    in_turn = [f"a{number}" for number in range(20)] + [f"b{number}" for number in range(20)]
    log = [_played(seed) for seed in range(10)]

    assert log == [_played(seed) for seed in range(10)]
    assert all(sorted(in_turn) == sorted(each) for each in log)
    assert len({tuple(each) for each in log}) > 2


def test_a_waiting_actor_lets_the_others_run_until_it_is_due(driver: _Driver) -> None:
    def patient() -> bool:
        waited = driver.interleaver.wait(5.0)
        driver.log.append(f"waited {waited} until {driver.clock.now()}")
        return False

    driver.interleaver.add("patient", [patient])
    driver.add("b", 3)

    assert ["b0", "b1", "b2"] == driver.play()
    assert 5.0 == driver.interleaver.next_due()
    driver.clock.step(5.0)
    assert "waited True until 5.0" == driver.play()[-1]


def test_outside_an_actor_preemption_points_and_waits_do_nothing(driver: _Driver) -> None:
    driver.interleaver.preemption_point()

    assert not driver.interleaver.wait(1.0)


@pytest.mark.rule("FP1")
def test_ending_a_process_unwinds_only_its_own_actors(driver: _Driver) -> None:
    def held(name: str) -> bool:
        try:
            driver.interleaver.wait(1.0)
        except Ended:
            driver.log.append(f"{name} unwound")
            raise
        driver.log.append(f"{name} went on")
        return False

    driver.interleaver.add("one", [lambda: held("one"), lambda: held("one as well")])
    driver.interleaver.add("other", [lambda: held("other")])
    driver.play()
    driver.interleaver.end("one")
    assert ["one unwound", "one as well unwound"] == driver.log

    driver.clock.step(1.0)
    driver.interleaver.turn()
    assert "other went on" == driver.log[-1]


@pytest.mark.rule("FP1")
def test_an_actor_that_ends_its_own_process_unwinds_at_its_next_preemption_point(driver: _Driver) -> None:
    def end() -> bool:
        driver.interleaver.end("self")
        driver.log.append("still here")
        driver.interleaver.preemption_point()
        driver.log.append("never")
        return True

    driver.interleaver.add("self", [end])
    driver.play()

    assert ["still here"] == driver.log


def test_an_exception_of_an_actor_reaches_the_driver(driver: _Driver) -> None:
    def broken() -> bool:
        raise ValueError("broken")

    driver.interleaver.add("a", [broken])

    with pytest.raises(ValueError, match="broken"):
        driver.interleaver.turn()
