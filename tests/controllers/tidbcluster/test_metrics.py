"""The metrics of single clusters (scheduler-deployment.md 5)."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from apis.times import stamp
from controllers.tidbcluster.metrics import ClusterMetrics
from kube.objects import Json, Object
from kube.reading import IndexFunc
from member.outcome import Done, Failed, Refused, Waiting
from ports.clock import FakeClock
from ports.fencing import LeaseExpired, OpenFence
from tests.informers.support import as_object
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def series(registry: CollectorRegistry, name: str, of: str = "component") -> dict[str, float]:
    """The values of a metric of clusters, by one of its labels."""
    found = [each for family in registry.collect() for each in family.samples]
    return {each.labels.get(of, ""): each.value for each in found if each.name == f"tidb_operator_cluster_{name}"}


class Clusters:
    """A cache."""

    changes = 0

    def __init__(self) -> None:
        self.trees: list[Json] = []

    def get(self, namespace: str, name: str) -> Object | None:
        raise AssertionError("metrics read all of them")

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        raise NotImplementedError

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        return [as_object(tree) for tree in self.trees]


class Lease(OpenFence):
    """A lease that may be lost."""

    held = True

    def check(self) -> None:
        if not self.held:
            raise LeaseExpired("lost")


class Bench:
    """The metrics of what `clusters` holds."""

    def __init__(self, clock: FakeClock) -> None:
        self.registry, self.clusters, self.lease = CollectorRegistry(), Clusters(), Lease()
        self.metrics = ClusterMetrics(self.registry, self.clusters, clock, lambda _: self.lease)

    def told(self, name: str, of: str = "component") -> dict[str, float]:
        return series(self.registry, name, of)


@pytest.fixture
def bench(clock: FakeClock) -> Bench:
    made = Bench(clock)
    made.clusters.trees = [named("basic")]
    return made


def named(name: str, **status: object) -> Json:
    body = sample("basic")
    return body | {"metadata": {"name": name, "namespace": "ns"}, "status": status}


@pytest.mark.rule("MET-14")
def test_update_errors_have_their_v1_6_name(bench: Bench) -> None:
    for _ in range(2):
        bench.metrics.note_sync("ns", "basic", {"pd": Failed("PDUnreachable", "no"), "tikv": Done()})
    lines = generate_latest(bench.registry).decode().splitlines()
    assert 'tidb_operator_cluster_update_errors{component="pd",name="basic",namespace="ns"} 2.0' in lines
    assert 'tidb_operator_cluster_spec_replicas{component="tikv",name="basic",namespace="ns"} 1.0' in lines
    assert "# TYPE tidb_operator_cluster_update_errors untyped" in lines


def test_a_deleted_cluster_leaves_neither_series_nor_memory(bench: Bench) -> None:
    bench.clusters.trees.append(named("gone"))
    bench.metrics.note_sync("ns", "gone", {"pd": Failed("PDUnreachable", "no"), "tikv": Refused("Paused", "no")})
    assert {"basic", "gone"} == bench.told("ready", "name").keys()

    del bench.clusters.trees[1]
    bench.metrics.forget("ns", "gone")
    bench.metrics.forget("ns", "never-seen")
    samples = [each for family in bench.registry.collect() for each in family.samples]
    assert {"basic"} == {each.labels["name"] for each in samples}

    bench.clusters.trees.append(named("gone"))
    assert ({}, {}) == (bench.told("update_errors"), bench.told("refused"))


def test_a_removed_component_leaves_no_series(bench: Bench) -> None:
    assert {"pd", "tikv", "tidb"} == bench.told("spec_replicas").keys()
    del bench.clusters.trees[0]["spec"]["tidb"]
    assert {"pd", "tikv"} == bench.told("spec_replicas").keys()


def test_a_standby_serves_families_without_series(bench: Bench) -> None:
    bench.lease.held = False
    assert [] == [each for family in bench.registry.collect() for each in family.samples]
    assert b"# TYPE tidb_operator_cluster_ready gauge" in generate_latest(bench.registry)


def test_the_wait_metric_shows_the_cause_and_the_age(bench: Bench, clock: FakeClock) -> None:
    condition = {
        "type": "Progressing",
        "status": "True",
        "reason": "ScalingOut",
        "lastTransitionTime": stamp(clock.wall()),
    }
    bench.clusters.trees = [
        named("basic", conditions=[condition], pd={"conditions": [condition | {"reason": "Creating"}]})
    ]
    clock.step(90.0)
    assert {"ScalingOut": 90.0} == bench.told("waiting_seconds", "reason")
    assert {"Creating": 90.0} == bench.told("component_waiting_seconds", "reason")
    assert {"ScalingOut": 1.0} == bench.told("condition", "reason")

    condition |= {"status": "False", "reason": "Done"}
    assert ({}, {"Done": 0.0}) == (bench.told("waiting_seconds", "reason"), bench.told("condition", "reason"))


def test_a_clock_set_back_causes_no_negative_wait(bench: Bench, clock: FakeClock) -> None:
    ahead = stamp(clock.wall() + timedelta(hours=1))
    condition = {"type": "Progressing", "status": "True", "reason": "Creating", "lastTransitionTime": ahead}
    bench.clusters.trees = [named("basic", conditions=[condition])]
    assert {"Creating": 0.0} == bench.told("waiting_seconds", "reason")


@pytest.mark.parametrize(
    "conditions",
    [None, "none", [None, 3, {}], [{"type": "Ready"}], [{"type": ["Ready"], "status": 1}], {"Ready": True}, 5],
    ids=["null", "text", "no-objects", "bare", "list-as-type", "map", "number"],
)
def test_a_malformed_status_does_not_break_a_scrape(bench: Bench, conditions: object) -> None:
    bench.clusters.trees = [named("odd", conditions=conditions, pd={"conditions": conditions}), named("basic")]
    assert {"odd": 0.0, "basic": 0.0} == bench.told("ready", "name")


def test_an_unreadable_cluster_does_not_hide_others(bench: Bench) -> None:
    bench.clusters.trees.insert(0, named("odd") | {"status": "spoilt"})
    with capture_logs() as logs:
        assert {"basic": 0.0} == bench.told("ready", "name")
    assert ["ns/odd"] == [entry["cluster"] for entry in logs]


def test_foreign_conditions_have_no_series(bench: Bench) -> None:
    theirs = [{"type": f"Theirs{number}", "status": "True", "reason": "x"} for number in range(100)]
    bench.clusters.trees = [named("basic", conditions=theirs)]
    assert {} == bench.told("condition", "condition")


def test_refusals_last_until_the_next_sync(bench: Bench) -> None:
    bench.metrics.note_sync("ns", "basic", {"spec": Refused("InvalidSpec", "spec.pd: no"), "pd": Done()})
    assert {"spec": 1.0} == bench.told("refused")
    bench.metrics.note_sync("ns", "basic", {"pd": Waiting("Creating", "soon")})
    assert {} == bench.told("refused")


def test_the_age_of_the_last_good_sync_counts_from_the_first_sight_if_there_is_none(
    bench: Bench, clock: FakeClock
) -> None:
    assert {"basic": 0.0} == bench.told("sync_age_seconds", "name")
    clock.step(60.0)
    bench.metrics.note_sync("ns", "basic", {"pd": Failed("PDUnreachable", "no")})
    assert {"basic": 60.0} == bench.told("sync_age_seconds", "name")
    bench.metrics.note_sync("ns", "basic", {"pd": Waiting("Creating", "soon")})
    clock.step(5.0)
    assert {"basic": 5.0} == bench.told("sync_age_seconds", "name")


def test_a_spec_that_fits_no_model_has_series_only_for_its_conditions(bench: Bench) -> None:
    (body,) = bench.clusters.trees
    body["spec"]["pd"]["replicas"] = "three"
    assert {} == bench.told("spec_replicas")
    assert {"basic": 0.0} == bench.told("ready", "name")


def test_a_suspended_component_counts_as_complete(bench: Bench) -> None:
    bench.clusters.trees[0]["spec"]["tikv"]["suspendAction"] = {"suspendStatefulSet": True}
    assert {"pd": 1.0, "tikv": 0.0, "tidb": 1.0} == bench.told("desired_replicas")


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-5")
def test_shows_a_ready_cluster_in_numbers(basic: OperatorWorld) -> None:
    def told(name: str, of: str = "component") -> dict[str, float]:
        return series(basic.operator.registry, name, of)

    each = {"pd": 1.0, "tikv": 1.0, "tidb": 1.0}
    none = dict.fromkeys(each, 0.0)
    assert ({"basic": 1.0}, {NAMESPACE: 1.0}) == (told("ready", "name"), told("ready", "namespace"))
    for name in ("spec_replicas", "desired_replicas", "ready_replicas", "members", "healthy_members", "version_info"):
        assert each == told(name), name
    for name in ("outdated_replicas", "failure_members"):
        assert none == told(name), name
    assert {sample("basic")["spec"]["version"]: 1.0} == told("version_info", "version")
    assert ({}, {}, {}) == (told("refused"), told("waiting_seconds"), told("component_waiting_seconds"))


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-5")
def test_a_scrape_causes_no_request_and_no_sync(basic: OperatorWorld) -> None:
    generate_latest(basic.operator.registry)
    assert ([], []) == (basic.writes(), basic.reads())
