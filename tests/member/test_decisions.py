"""Answers and comparisons are reused while their inputs are unchanged."""

import pytest

from dataplane.errors import DataPlaneError
from kube.objects import Object
from kube.resources import SERVICES
from member.memory import LONGEST, KeptAnswer, Settled
from ports.clock import FakeClock

_RAW = b'{"metadata":{"name":"demo-pd","namespace":"ns"}}'


class Asked:
    """Counts questions; answers with their number."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        return self.times


def test_an_answer_is_kept_while_the_cluster_is_unchanged() -> None:
    kept, clock, ask = KeptAnswer[int](), FakeClock(), Asked()
    assert [1, 1] == [kept.of("7", clock, ask) for _ in range(2)]
    assert 2 == kept.of("8", clock, ask)


def test_an_answer_expires() -> None:
    kept, clock, ask = KeptAnswer[int](), FakeClock(), Asked()
    kept.of("7", clock, ask)
    clock.step(LONGEST - 1)
    assert 1 == kept.of("7", clock, ask)
    clock.step(1)
    assert 2 == kept.of("7", clock, ask)


def test_a_missing_answer_is_not_kept() -> None:
    def silent() -> int:
        raise DataPlaneError("nobody answers")

    kept, clock = KeptAnswer[int](), FakeClock()
    with pytest.raises(DataPlaneError):
        kept.of("7", clock, silent)
    assert 1 == kept.of("7", clock, Asked())


@pytest.mark.rule("PERF-6")
def test_the_same_object_and_wish_are_settled() -> None:
    settled, there = Settled(), Object(_RAW)

    settled.note(SERVICES, there, {"spec": {"type": "ClusterIP"}})

    assert settled.holds(SERVICES, there, {"spec": {"type": "ClusterIP"}})


@pytest.mark.rule("PERF-6")
def test_another_version_spec_or_question_has_no_kept_answer() -> None:
    settled, there = Settled(), Object(_RAW)

    settled.note(SERVICES, there, {"spec": {"type": "ClusterIP"}})

    assert not settled.holds(SERVICES, Object(_RAW), {"spec": {"type": "ClusterIP"}})
    assert not settled.holds(SERVICES, there, {"spec": {"type": "NodePort"}})
    assert not settled.holds("another question", there, {"spec": {"type": "ClusterIP"}})
