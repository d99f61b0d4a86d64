"""Copies of this process that do work."""

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial

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


def test_the_values_of_each_come_in_the_order_of_the_ends() -> None:
    reading, writing = os.pipe()
    works = (lambda: os.read(reading, 1), lambda: b"early")
    values = Forks[bytes](jobs=2).each(works)
    assert (1, b"early") == next(values)
    os.write(writing, b"x")
    assert [(0, b"x")] == list(values)
    os.close(reading)
    os.close(writing)


def test_no_more_copies_run_than_there_are_jobs() -> None:
    running = list[int]()

    def works() -> Iterator[Callable[[], int]]:
        for number in range(4):
            running.append(number)
            yield partial(int, number)

    values = Forks[int](jobs=1).each(works())
    assert (0, 0) == next(values)
    assert [0, 1] == running
    assert [(1, 1), (2, 2), (3, 3)] == list(values)


def test_what_a_copy_prints_is_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with open(1, "w", encoding="utf-8", closefd=False) as stdout, contextlib.redirect_stdout(stdout):
        forks = Forks[int]()
        forks.start(lambda: stdout.write("told"))
        forks.results()
    assert "told" == capfd.readouterr().out


def test_no_process_is_left() -> None:
    forks = Forks[int]()
    forks.start(os.getpid)
    (pid,) = forks.results()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


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


def test_a_copy_that_dies_within_its_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pickle.dumps
    monkeypatch.setattr(pickle, "dumps", lambda value: whole(value)[:-20])
    forks = Forks[bytes]()
    forks.start(lambda: b"x" * 100)
    with pytest.raises(ForkFailed, match="without a value"):
        forks.results()


def test_a_value_that_cannot_be_copied_is_reported_with_its_stack() -> None:
    forks = Forks[object]()
    forks.start(lambda: lambda: None)
    with pytest.raises((ForkFailed, AttributeError), match="lambda"):
        forks.results()
