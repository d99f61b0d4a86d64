"""Actors take turns: one runs at a time, who comes next is drawn from a seed, and no thread is left."""

import threading
from collections.abc import Iterator

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from simulate.interleaving import Ended, Interleaver


class _Stage:
    """A interleaver, a clock, and what its actors told."""

    def __init__(self, seed: int) -> None:
        self.clock = FakeClock()
        self.interleaver = Interleaver(self.clock, SeededRandomness(seed))
        self.told: list[str] = []

    def add(self, name: str, points: int) -> None:
        """An actor with one step, in which it comes to some scheduling points."""
        steps = iter([points])

        def step() -> bool:
            for number in range(next(steps, 0)):
                self.told.append(f"{name}{number}")
                self.interleaver.point()
            return False

        self.interleaver.add(name, [step])

    def play(self) -> list[str]:
        """Until nobody has anything left to do."""
        while self.interleaver.turn():
            pass
        return self.told


@pytest.fixture
def stage() -> Iterator[_Stage]:
    before = threading.active_count()
    stage = _Stage(1)
    yield stage
    stage.interleaver.end_all()
    assert before == threading.active_count()


def _played(seed: int) -> list[str]:
    stage = _Stage(seed)
    stage.add("a", 20)
    stage.add("b", 20)
    told = stage.play()
    stage.interleaver.end_all()
    return told


def test_who_goes_on_is_drawn_from_the_seed() -> None:
    in_turn = [f"a{number}" for number in range(20)] + [f"b{number}" for number in range(20)]
    told = [_played(seed) for seed in range(10)]

    assert told == [_played(seed) for seed in range(10)]
    assert all(sorted(in_turn) == sorted(each) for each in told)
    assert len({tuple(each) for each in told}) > 2


def test_who_waits_lets_the_others_go_on_until_its_time_has_come(stage: _Stage) -> None:
    def patient() -> bool:
        waited = stage.interleaver.wait(5.0)
        stage.told.append(f"waited {waited} until {stage.clock.now()}")
        return False

    stage.interleaver.add("patient", [patient])
    stage.add("b", 3)

    assert ["b0", "b1", "b2"] == stage.play()
    assert 5.0 == stage.interleaver.next_due()
    stage.clock.step(5.0)
    assert "waited True until 5.0" == stage.play()[-1]


def test_where_no_actor_runs_a_point_is_nothing_and_nobody_waits(stage: _Stage) -> None:
    stage.interleaver.point()

    assert not stage.interleaver.wait(1.0)


def test_FP1_ending_a_process_unwinds_its_actors_and_no_others(stage: _Stage) -> None:
    def held(name: str) -> bool:
        try:
            stage.interleaver.wait(1.0)
        except Ended:
            stage.told.append(f"{name} unwound")
            raise
        stage.told.append(f"{name} went on")
        return False

    stage.interleaver.add("one", [lambda: held("one"), lambda: held("one as well")])
    stage.interleaver.add("other", [lambda: held("other")])
    stage.play()
    stage.interleaver.end("one")
    assert ["one unwound", "one as well unwound"] == stage.told

    stage.clock.step(1.0)
    stage.interleaver.turn()
    assert "other went on" == stage.told[-1]


def test_FP1_an_actor_that_ends_its_own_process_unwinds_at_its_next_point(stage: _Stage) -> None:
    def end() -> bool:
        stage.interleaver.end("self")
        stage.told.append("still here")
        stage.interleaver.point()
        stage.told.append("never")
        return True

    stage.interleaver.add("self", [end])
    stage.play()

    assert ["still here"] == stage.told


def test_what_an_actor_raises_reaches_whoever_drives_it(stage: _Stage) -> None:
    def broken() -> bool:
        raise ValueError("broken")

    stage.interleaver.add("a", [broken])

    with pytest.raises(ValueError, match="broken"):
        stage.interleaver.turn()
