"""Concurrent calls on a stepped clock take as long as the longest."""

from datetime import timedelta

import pytest

from ports.clock import FakeClock
from sandbox.overlap import Overlapping, overlapping
from sandbox.waiting_clock import WaitingClock


class Passing:
    """A clock that each wait moves, and the number of moves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.waits: list[float] = []
        self.pause = overlapping(self.wait)
        self.seen = WaitingClock(self.clock, self.wait, timedelta)
        self.side_by_side = Overlapping(self.wait)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.step(seconds)

    def call(self, *seconds: float) -> float:
        """Wait several times and return the elapsed time."""
        began = self.seen.now()
        for each in seconds:
            self.pause(each)
        return self.seen.now() - began


def test_concurrent_calls_take_the_time_of_the_longest() -> None:
    world = Passing()
    began = world.clock.now()
    took = world.side_by_side.run([lambda: world.call(4.0), lambda: world.call(1.0, 9.0), world.call])
    assert [4.0, 10.0, 0.0] == took
    assert (10.0, [10.0]) == (world.clock.now() - began, world.waits)


def test_outside_concurrent_calls_each_wait_counts() -> None:
    world = Passing()
    assert 5.0 == world.call(2.0, 3.0)
    assert [2.0, 3.0] == world.waits


def test_nested_calls_add_up_along_the_longest_path() -> None:
    world = Passing()

    def outer() -> float:
        world.side_by_side.run([lambda: world.call(2.0), lambda: world.call(3.0)])
        return world.call(1.0)

    world.side_by_side.run([outer, lambda: world.call(1.0)])
    assert [4.0] == world.waits


def test_a_failed_call_takes_its_time_as_well() -> None:
    world = Passing()

    def fail() -> float:
        world.call(7.0)
        raise LookupError

    with pytest.raises(LookupError):
        world.side_by_side.run([fail, lambda: world.call(2.0)])
    assert [7.0] == world.waits
