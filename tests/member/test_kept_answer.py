"""Answers of the data plane that are kept while the cluster is the same."""

import pytest

from dataplane.errors import DataPlaneError
from member.memory.decided import LONGEST
from member.memory.kept_answer import KeptAnswer
from ports.clock import FakeClock


class Asked:
    """Counts questions; answers with their number."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        return self.times


def test_an_answer_is_kept_while_the_cluster_is_the_same() -> None:
    kept, clock, ask = KeptAnswer[int](), FakeClock(), Asked()
    assert [1, 1] == [kept.of("7", clock, ask) for _ in range(2)]
    assert 2 == kept.of("8", clock, ask)


def test_an_answer_is_asked_for_again_after_a_while() -> None:
    kept, clock, ask = KeptAnswer[int](), FakeClock(), Asked()
    kept.of("7", clock, ask)
    clock.step(LONGEST - 1)
    assert 1 == kept.of("7", clock, ask)
    clock.step(1)
    assert 2 == kept.of("7", clock, ask)


def test_no_answer_is_not_kept() -> None:
    def silent() -> int:
        raise DataPlaneError("nobody answers")

    kept, clock = KeptAnswer[int](), FakeClock()
    with pytest.raises(DataPlaneError):
        kept.of("7", clock, silent)
    assert 1 == kept.of("7", clock, Asked())
