"""Rolls in the order that users choose by annotations of pods (lifecycle.md 7.1.1)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS, PODS, STATEFUL_SETS
from manifests import ADVANCED_STATEFUL_SET
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.world import load_crds
from simulate.engine.worlds import CLUSTERS
from tests.controllers.dmcluster.dm_world import DMWorld
from tests.operator_world import NAMESPACE, OperatorWorld, definitions, sample

PRIORITY = "tidb.pingcap.com/restart-priority"


def prefer(world: OperatorWorld, priorities: Mapping[str, str]) -> None:
    """Annotate pods with their priorities."""
    for pod, value in priorities.items():
        world.admin.patch(PODS, pod, NAMESPACE, {"metadata": {"annotations": {PRIORITY: value}}})


class Watch:
    """Notes in which order pods are replaced, and that never two of a component are away (I10)."""

    def __init__(self, world: OperatorWorld) -> None:
        self._world = world
        self._known = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in _pods(world)}
        self.replaced: dict[str, list[int]] = {}
        """The ordinals by component."""

    def __call__(self) -> bool:
        """Look at the world; True, for use in a condition."""
        away: list[str] = []
        for pod in _pods(self._world):
            meta = pod["metadata"]
            component = meta["labels"]["app.kubernetes.io/component"]
            if self._known.get(meta["name"]) != meta["uid"]:
                self._known[meta["name"]] = meta["uid"]
                self.replaced.setdefault(component, []).append(int(meta["name"].rpartition("-")[2]))
            if not any(
                each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ())
            ):
                away.append(component)
        assert len(away) == len(set(away)), f"two pods of a component are away: {away}"
        return True


def _pods(world: OperatorWorld) -> list[Json]:
    return [
        each for each in world.every(PODS) if each["metadata"]["labels"]["app.kubernetes.io/component"] != "discovery"
    ]


def roll(world: OperatorWorld, change: Callable[[], None], name: str = "basic") -> dict[str, list[int]]:
    """Make a change and wait for the end of the roll; the replaced pods by component, in order."""
    watch, begun = Watch(world), world.clock.now()
    change()
    world.run_until(
        lambda: watch() and world.clock.now() > begun + 1.0 and world.is_ready(name) and world.reason(name) == "Done",
        600.0,
    )
    for each in world.every(STATEFUL_SETS):
        partition = {"partition": each["spec"]["replicas"]}
        assert {"type": "RollingUpdate", "rollingUpdate": partition} == each["spec"]["updateStrategy"]
        assert each["status"]["currentRevision"] == each["status"]["updateRevision"]
    return watch.replaced


def annotate_pods(world: OperatorWorld) -> Callable[[], None]:
    """A change that restarts all pods of the cluster."""
    return lambda: world.change(annotations={"roll": "1"})


@pytest.fixture
def wide(world: OperatorWorld) -> OperatorWorld:
    """Three PD, three TiKV, two TiDB, Ready; nothing is counted yet."""
    return begun(world)


def begun(world: OperatorWorld) -> OperatorWorld:
    """The world with such a cluster."""
    cluster = sample("basic")
    for name, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][name]["replicas"] = replicas
    world.apply(cluster)
    world.run_until_ready()
    return world


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_pods_restart_in_the_order_of_their_annotations(wide: OperatorWorld) -> None:
    prefer(wide, {"basic-tikv-0": "10", "basic-tikv-2": "-1", "basic-tidb-0": "1", "basic-pd-1": "5"})
    assert {"pd": [1, 2, 0], "tikv": [0, 1, 2], "tidb": [0, 1]} == roll(wide, annotate_pods(wide))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_the_leader_of_pd_is_last_among_pods_of_equal_priority(wide: OperatorWorld) -> None:
    prefer(wide, {f"basic-pd-{ordinal}": "1" for ordinal in range(3)})
    leader = int(wide.cluster()["status"]["pd"]["leader"]["name"].rpartition("-")[2])
    order = roll(wide, lambda: wide.change(pd={"annotations": {"roll": "1"}}))
    assert {"pd": [*sorted({0, 1, 2} - {leader}, reverse=True), leader]} == order
    moves = [call.url for call in wide.operator.dataplane.writes() if "/leader/transfer/" in call.url]
    assert 1 == len(moves)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1", "I31")
def test_a_process_that_ends_after_each_of_its_writes_keeps_the_order(wide: OperatorWorld) -> None:
    prefer(wide, {"basic-tikv-0": "10", "basic-tikv-2": "-1"})
    watch, written = Watch(wide), 0
    wide.change(tikv={"annotations": {"roll": "1"}})

    def is_over() -> bool:
        nonlocal written
        if len(wide.writes()) > written:
            written = len(wide.writes())
            wide.restart()
        return watch() and len(watch.replaced.get("tikv", ())) >= 3 and wide.reason() == "Done"

    wide.run_until(is_over, 600.0)
    assert {"tikv": [0, 1, 2]} == watch.replaced
    assert 3 == wide.get(STATEFUL_SETS, "basic-tikv")["spec"]["updateStrategy"]["rollingUpdate"]["partition"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_a_priority_given_in_the_middle_of_a_roll_decides_on_the_next_pod(wide: OperatorWorld) -> None:
    watch = Watch(wide)
    wide.change(tikv={"annotations": {"roll": "1"}})
    wide.run_until(lambda: watch() and watch.replaced.get("tikv") == [2])
    prefer(wide, {"basic-tikv-0": "1"})
    wide.run_until(lambda: watch() and wide.is_ready() and wide.reason() == "Done", 120.0)
    assert {"tikv": [2, 0, 1]} == watch.replaced


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_a_priority_that_is_no_integer_is_reported_and_counts_as_none(wide: OperatorWorld) -> None:
    prefer(wide, {"basic-tidb-0": "first"})
    wide.change(tidb={"annotations": {"roll": "1"}})
    watch = Watch(wide)
    told = "annotation tidb.pingcap.com/restart-priority of pod basic-tidb-0 counts as 0: 'first' is no integer"
    wide.run_until(lambda: watch() and told in str(wide.condition("Progressing").get("message")))
    wide.run_until(lambda: watch() and wide.is_ready() and wide.reason() == "Done")
    assert {"tidb": [1, 0]} == watch.replaced


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_priorities_alone_change_nothing(wide: OperatorWorld) -> None:
    wide.run(120.0)  # this measures no end of the bring-up
    wide.forget()
    watch = Watch(wide)
    prefer(wide, {"basic-tikv-0": "10", "basic-pd-0": "first"})
    wide.run(120.0)
    assert watch()
    assert ([], {}) == (wide.writes(), watch.replaced)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_every_component_restarts_in_the_order_of_the_annotations(world: OperatorWorld) -> None:
    world.apply(CLUSTERS["complete"]() | {"metadata": {"name": "basic", "namespace": NAMESPACE}})
    world.run_until_ready(within=300.0)
    sizes: dict[str, int] = {}
    for pod in _pods(world):
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        sizes[component] = sizes.get(component, 0) + 1
    prefer(world, {f"basic-{component}-0": "1" for component in sizes})
    lowest_first = {component: [0, *range(size - 1, 0, -1)] for component, size in sizes.items()}
    assert lowest_first == roll(world, annotate_pods(world))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_masters_and_workers_of_dm_restart_in_the_order_of_the_annotations(clock: FakeClock) -> None:
    world = DMWorld(clock=clock)
    world.bring_up(master=sample("dm")["spec"]["master"] | {"replicas": 3})
    masters = {f"sync-dm-master-{ordinal}": "1" for ordinal in range(3)}
    prefer(world, masters | {"sync-dm-worker-0": "1"})
    leader = int(world.status("master")["leader"]["name"].rpartition("-")[2])
    order = roll(world, lambda: world.set(annotations={"roll": "1"}), "sync")
    assert ([*sorted({0, 1, 2} - {leader}, reverse=True), leader], 0) == (order["dm-master"], order["dm-worker"][0])
    world.stop()


@pytest.fixture
def advanced(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The same cluster in Advanced StatefulSets."""
    made = OperatorWorld(
        clock=clock,
        crds=[*definitions(), *load_crds(ADVANCED_STATEFUL_SET)],
        settings=replace(SETTINGS, advanced_stateful_sets=True),
    )
    yield begun(made)
    made.stop()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1", "4.4")
def test_pods_of_advanced_stateful_sets_restart_in_the_order_of_the_annotations(advanced: OperatorWorld) -> None:
    prefer(advanced, {"basic-tikv-0": "10"})
    assert {"tikv": [0, 2, 1]} == roll(advanced, lambda: advanced.change(tikv={"annotations": {"roll": "1"}}))
    spec = advanced.get(ADVANCED_STATEFUL_SETS, "basic-tikv")["spec"]
    assert {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}} == spec["updateStrategy"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_a_strategy_that_another_operator_takes_back_costs_one_more_restart_at_most(wide: OperatorWorld) -> None:
    prefer(wide, {"basic-tikv-0": "10", "basic-tikv-1": "5"})
    watch = Watch(wide)
    wide.change(tikv={"annotations": {"roll": "1"}})
    wide.run_until(lambda: watch() and wide.get(STATEFUL_SETS, "basic-tikv")["spec"]["updateStrategy"] == _ON_DELETE)
    # as v1.6 writes it
    above = {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}
    wide.admin.patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": {"updateStrategy": above}})
    wide.restart()
    wide.run_until(lambda: watch() and wide.is_ready() and wide.reason() == "Done", 120.0)
    # the first one was being recreated, on its old revision then
    assert {"tikv": [0, 1, 2, 0]} == watch.replaced


_ON_DELETE = {"type": "OnDelete"}
