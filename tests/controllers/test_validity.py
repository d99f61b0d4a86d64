"""A valid spec is judged again only when an input differs (design.md 3.8)."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from apis.problem import Problem
from controllers.validity import Validity
from informers.listers import StoreLister
from informers.store import Store
from kube.objects import Object
from kube.reading import NotedLister, Readings
from kube.resources import STATEFUL_SETS
from ports.clock import FakeClock
from ports.effects import NotedClock

CLOCK = NotedClock(FakeClock())


def made(name: str, version: str = "1") -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version}
    return Object(msgspec.json.encode({"metadata": metadata}))


class Judge:
    """Reads a StatefulSet, returns preset problems, and counts its calls."""

    def __init__(self, problems: Sequence[Problem] = (), also: Callable[[], object] = lambda: None) -> None:
        self.cache = Store()
        self.cache.add(made("sts"))
        self.asked = 0
        self._problems, self._also = problems, also

    def __call__(self, readings: Readings) -> Sequence[Problem]:
        self.asked += 1
        NotedLister(StoreLister(self.cache, STATEFUL_SETS), readings).get("ns", "sts")
        self._also()
        return self._problems


@pytest.mark.rule("design-3.8")
def test_the_same_object_is_judged_once() -> None:
    validity, judge, cached = Validity(), Judge(), made("basic")
    assert [(), ()] == [validity.problems(cached, judge) for _ in range(2)]
    assert 1 == judge.asked


@pytest.mark.rule("design-3.8")
def test_a_new_version_is_judged_again() -> None:
    validity, judge = Validity(), Judge()
    for version in "12":
        validity.problems(made("basic", version), judge)
    assert 2 == judge.asked


@pytest.mark.rule("design-3.8")
def test_it_is_judged_again_when_an_input_of_the_judgement_has_changed() -> None:
    validity, judge, cached = Validity(), Judge(), made("basic")
    validity.problems(cached, judge)
    judge.cache.update(made("sts", "2"))
    validity.problems(cached, judge)
    assert 2 == judge.asked


@pytest.mark.parametrize(
    "judge",
    [Judge([Problem("spec.pd", None, "is missing")]), Judge(also=CLOCK.now)],
    ids=["what is wrong", "what depends on the time"],
)
@pytest.mark.rule("design-3.8")
def test_a_spec_with_problems_or_a_judgement_by_the_time_is_judged_each_time(judge: Judge) -> None:
    validity, cached = Validity(), made("basic")
    found = [validity.problems(cached, judge) for _ in range(2)]
    assert found[0] == found[1]
    assert 2 == judge.asked
