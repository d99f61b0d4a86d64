"""A valid spec is judged again only when an input differs (design.md 3.8)."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from apis.decoding import decode_json
from apis.problem import Problem
from apis.tidbcluster import TidbCluster
from controllers.validity import Validity
from informers.listers import StoreLister
from informers.store import Store
from kube.objects import Json, Object
from kube.reading import NotedLister, Readings
from kube.resources import STATEFUL_SETS
from ports.clock import FakeClock
from ports.effects import NotedClock

CLOCK = NotedClock(FakeClock())
MEMBER = {"name": "a", "id": "1", "clientURL": "http://x", "health": True}


def made(name: str, version: str = "1", **parts: Any) -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version} | parts.pop("metadata", {})
    return Object(msgspec.json.encode({"metadata": metadata, "spec": {}} | parts))


class Judge:
    """Reads a StatefulSet and the cluster's id, returns preset problems, and counts its calls."""

    def __init__(self, problems: Sequence[Problem] = (), also: Callable[[], object] = lambda: None) -> None:
        self.cache = Store()
        self.cache.add(made("sts"))
        self.asked = 0
        self._problems, self._also = problems, also

    def __call__(self, tc: TidbCluster, readings: Readings) -> Sequence[Problem]:
        self.asked += 1
        NotedLister(StoreLister(self.cache, STATEFUL_SETS), readings).get("ns", "sts")
        assert "" == tc.metadata.resource_version
        assert tc.status.cluster_id or not tc.status.pd.members
        self._also()
        return self._problems


def judged(validity: Validity, cached: Object, *checks: Judge) -> Sequence[Problem]:
    return validity.problems(cached, decode_json(cached.raw, TidbCluster), checks)


@pytest.mark.rule("design-3.8")
def test_the_same_object_is_judged_once() -> None:
    validity, judge, cached = Validity(), Judge(), made("basic")
    assert [(), ()] == [judged(validity, cached, judge) for _ in range(2)]
    assert 1 == judge.asked


@pytest.mark.parametrize(
    ("before", "after", "times"),
    [
        ({}, {}, 1),
        ({}, {"status": {"clusterID": ""}}, 1),
        ({}, {"status": {"tikv": {"phase": "Upgrade"}}}, 1),
        ({"status": {"clusterID": "7"}}, {"status": {"clusterID": "7", "pd": {"members": {}}}}, 1),
        ({}, {"spec": {"paused": True}}, 2),
        ({}, {"metadata": {"annotations": {"a": "b"}}}, 2),
        ({}, {"metadata": {"uid": "another"}}, 2),
        ({}, {"status": {"clusterID": "7"}}, 2),
        ({"status": {"clusterID": "7"}}, {}, 2),
        ({}, {"status": {"pd": {"members": {"a": MEMBER}}, "clusterID": "7"}}, 2),
    ],
)
@pytest.mark.rule("design-3.8")
def test_a_new_version_is_judged_again_if_what_the_judge_has_read_differs(
    before: Json, after: Json, times: int
) -> None:
    validity, judge = Validity(), Judge()
    for version, parts in enumerate((before, after)):
        judged(validity, made("basic", str(version), **parts), judge)
    assert times == judge.asked


@pytest.mark.rule("design-3.8")
def test_only_the_check_that_read_what_has_changed_runs_again() -> None:
    validity, first, second = Validity(), Judge(), Judge()
    for version in "12":
        judged(validity, made("basic", version), first, second)
        second.cache.update(made("sts", "2"))
    assert (1, 2) == (first.asked, second.asked)


@pytest.mark.rule("design-3.8")
def test_it_is_judged_again_when_an_input_of_the_judgement_has_changed() -> None:
    validity, judge, cached = Validity(), Judge(), made("basic")
    judged(validity, cached, judge)
    judge.cache.update(made("sts", "2"))
    judged(validity, cached, judge)
    assert 2 == judge.asked


@pytest.mark.parametrize(
    "judge",
    [Judge([Problem("spec.pd", None, "is missing")]), Judge(also=CLOCK.now)],
    ids=["what is wrong", "what depends on the time"],
)
@pytest.mark.rule("design-3.8")
def test_a_spec_with_problems_or_a_judgement_by_the_time_is_judged_each_time(judge: Judge) -> None:
    validity, cached = Validity(), made("basic")
    found = [judged(validity, cached, judge) for _ in range(2)]
    assert found[0] == found[1]
    assert 2 == judge.asked
