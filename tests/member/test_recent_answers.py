"""Answers that are good for a while."""

import pytest

from member.memory.recent import Recent
from ports.clock import FakeClock


def _broken() -> int:
    raise TimeoutError


def test_an_answer_is_good_for_as_long_as_was_said() -> None:
    clock, asked = FakeClock(), iter(range(9))
    recent: Recent[int] = Recent(60.0)
    answers = []
    for _ in range(5):
        answers.append(recent.answer(lambda: next(asked), clock))
        clock.step(25.0)
    assert [0, 0, 0, 1, 1] == answers


def test_what_could_not_be_asked_is_asked_again() -> None:
    clock = FakeClock()
    recent: Recent[int] = Recent(60.0)
    with pytest.raises(TimeoutError):
        recent.answer(_broken, clock)
    assert 7 == recent.answer(lambda: 7, clock)
    clock.step(60.0)
    with pytest.raises(TimeoutError):
        recent.answer(_broken, clock)
    assert 8 == recent.answer(lambda: 8, clock)
