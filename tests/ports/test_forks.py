"""Copies of this process that do work."""

import os

import pytest

from ports.forks import ForkFailed, Forks


def test_the_values_come_in_the_order_of_the_starts() -> None:
    state = [0]
    forks = Forks[tuple[int, bytes]](jobs=2)
    for number in range(5):
        state[0] = number
        forks.start(lambda: (state[0], b"x" * 200_000))
    state[0] = 9
    assert [(number, b"x" * 200_000) for number in range(5)] == forks.results()


def test_an_exception_of_a_copy_is_raised_here() -> None:
    forks = Forks[int]()
    forks.start(lambda: int("one"))
    with pytest.raises(ValueError, match="one"):
        forks.results()


def test_a_copy_that_dies_is_reported() -> None:
    forks = Forks[None]()
    forks.start(lambda: os._exit(3))
    with pytest.raises(ForkFailed, match="without a value"):
        forks.results()


def test_a_value_that_cannot_be_copied_is_reported_with_its_stack() -> None:
    forks = Forks[object]()
    forks.start(lambda: lambda: None)
    with pytest.raises((ForkFailed, AttributeError), match="lambda"):
        forks.results()
