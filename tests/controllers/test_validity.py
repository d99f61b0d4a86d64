"""A valid spec is judged again only when an input differs (design.md 3.8)."""

from collections.abc import Callable, Sequence
from typing import cast

import msgspec
import pytest
from msgspec import structs

from apis.accessor import workloads
from apis.model import Model
from apis.problem import Problem
from apis.tidbcluster import TidbClusterStatus
from apis.validation import immutability, observe, validate
from controllers.tidbcluster.kind import TIDB_CLUSTER
from controllers.validity import Validity
from informers.listers import StoreLister
from informers.store import Store
from kube.objects import Object
from kube.reading import NotedLister, Readings
from kube.resources import STATEFUL_SETS
from member.components import workload
from ports.clock import FakeClock
from ports.effects import NotedClock
from tests.member.clusters import cluster

CLOCK = NotedClock(FakeClock())


def made(name: str, version: str = "1", generation: int = 0) -> Object:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": name,
        "resourceVersion": version,
        "generation": generation,
    }
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
    assert [(), ()] == [validity.problems(cached, None, judge) for _ in range(2)]
    assert 1 == judge.asked


@pytest.mark.rule("design-3.8")
def test_another_spec_of_the_same_generation_is_judged_again() -> None:
    """After etcd was restored, a generation may mean another spec."""
    validity, judge = Validity(), Judge()
    for version in ("v8.5.2", "v8.5.3"):
        validity.problems(made("basic", generation=1), TIDB_CLUSTER.facts(cluster(version=version)), judge)
    assert 2 == judge.asked


@pytest.mark.rule("design-3.8")
def test_another_status_with_the_same_facts_is_not_judged_again() -> None:
    validity, judge = Validity(), Judge()
    judge.cache.update(made("sts", "1", generation=1))
    for version in "12":
        validity.problems(made("basic", version, generation=1), ("id", 3), judge)
        judge.cache.update(made("sts", f"1{version}", generation=1))
    assert 1 == judge.asked


@pytest.mark.parametrize(
    ("cached", "facts", "stateful_set"),
    [
        (made("other", "2"), "same", made("sts", "2", generation=1)),
        (made("basic", "2"), "other", made("sts", "2", generation=1)),
        (made("basic", "2"), "same", made("sts", "2", generation=2)),
    ],
    ids=["a recreated object", "the spec, or a fact of the status", "the spec of a StatefulSet"],
)
@pytest.mark.rule("design-3.8")
def test_a_change_of_what_the_rules_read_is_judged(cached: Object, facts: str, stateful_set: Object) -> None:
    validity, judge = Validity(), Judge()
    judge.cache.update(made("sts", "1", generation=1))
    validity.problems(made("basic", "1", generation=1), "same", judge)
    judge.cache.update(stateful_set)
    validity.problems(cached, facts, judge)
    assert 2 == judge.asked


@pytest.mark.rule("design-3.8")
def test_it_is_judged_again_when_an_input_of_the_judgement_has_changed() -> None:
    validity, judge, cached = Validity(), Judge(), made("basic")
    validity.problems(cached, None, judge)
    judge.cache.update(made("sts", "2"))
    validity.problems(cached, None, judge)
    assert 2 == judge.asked


@pytest.mark.parametrize(
    "judge",
    [Judge([Problem("spec.pd", None, "is missing")]), Judge(also=CLOCK.now)],
    ids=["what is wrong", "what depends on the time"],
)
@pytest.mark.rule("design-3.8")
def test_a_spec_with_problems_or_a_judgement_by_the_time_is_judged_each_time(judge: Judge) -> None:
    validity, cached = Validity(), made("basic")
    found = [validity.problems(cached, None, judge) for _ in range(2)]
    assert found[0] == found[1]
    assert 2 == judge.asked


@pytest.mark.rule("design-3.8")
def test_another_judgement_on_the_same_inputs_is_a_defect_under_rechecks() -> None:
    validity, cached = Validity(), made("basic")
    validity.problems(cached, None, Judge())
    wrong = Judge([Problem("spec.pd", None, "is missing")])
    with pytest.raises(AssertionError, match="invalid on the inputs"):
        validity.problems(cached, None, lambda _: wrong(Readings()), rechecks=True)


class Recorded:
    """Part of a status that records which of its fields are read."""

    def __init__(self, part: Model, path: str, read: set[str]) -> None:
        self._part, self._path, self._read = part, path, read

    def __getattr__(self, name: str) -> object:
        path = f"{self._path}.{name}".removeprefix(".")
        self._read.add(path)
        value = getattr(self._part, name)
        return Recorded(value, path, self._read) if isinstance(value, Model) else value


def test_rules_read_no_part_of_the_status_but_the_facts() -> None:
    """A rule that reads another part needs it in `_facts` of controllers/tidbcluster/kind.py."""
    read, tc = set[str](), cluster()
    recorded = cast("TidbClusterStatus", Recorded(tc.status, "", read))
    running = {part.name: workload(part.name).stateful_set(tc, "config") for part in workloads(tc)}
    for replicas in (3, 0):
        tikv = structs.replace(tc.spec.tikv, replicas=replicas) if tc.spec.tikv else None
        seen = structs.replace(tc, spec=structs.replace(tc.spec, tikv=tikv), status=recorded)
        validate(seen)
        immutability(seen, observe({}, {}))
        immutability(seen, observe(running, {}))
    sections = {part.name for part in workloads(tc)}
    sets = {f"{section}.stateful_set" for section in sections}
    assert {"cluster_id", "tikv.stores"} <= read
    assert read <= {"cluster_id", "tikv.stores", "tikv.peer_stores", *sections, *sets}
