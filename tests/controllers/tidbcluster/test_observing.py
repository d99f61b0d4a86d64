"""An operator that only observes: it works as before, and nothing changes (docs/migration.md)."""

from collections.abc import Iterator

import pytest

from controller_manager.observing import PlannedWrites
from dataplane.read_only import ReadOnlyTransport
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json
from kube.resources import STATEFUL_SETS
from rehearsal.operator import Operator
from tests.operator_world import OperatorWorld, sample


class Observer:
    """An observer of a world that another operator manages."""

    def __init__(self, world: OperatorWorld) -> None:
        self.world = world
        self.planned: list[PlannedWrite] = []
        writes = PlannedWrites(self.planned.append)
        self.operator = Operator(
            world.world,
            world.clock,
            2,
            kubernetes=lambda transport: DryRunTransport(transport, writes.add),
            dataplane=lambda transport: ReadOnlyTransport(transport, writes.add_call),
        )

    def look(self) -> list[str]:
        """The planned writes now; none of them changes an object."""
        self.planned.clear()
        self.world.world.settle()
        before = self.world.world.server.storage.version
        self.operator.work()
        assert before == self.world.world.server.storage.version
        return [f"{each.verb} {each.resource}/{each.name}".rstrip("/") for each in self.planned]


@pytest.fixture
def world() -> Iterator[OperatorWorld]:
    made = OperatorWorld()
    yield made
    made.stop()


@pytest.mark.slow
def test_reports_no_writes_for_a_correct_cluster(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.run_until_ready(within=300.0)
    assert [] == Observer(world).look()


def test_reports_the_creation_of_a_new_cluster(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    assert "create services/basic-pd" in Observer(world).look()


@pytest.mark.slow
def test_reports_a_change_once_with_its_content(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.run_until_ready(within=300.0)
    world.change(tikv={"replicas": 3})
    observer = Observer(world)
    assert ["patch statefulsets/basic-tikv"] == observer.look()
    (planned,) = observer.planned
    assert (1, 2) == (replicas(planned.before), replicas(planned.after))
    assert [] == observer.look()
    assert 1 == world.get(STATEFUL_SETS, "basic-tikv")["spec"]["replicas"]


def test_lists_requests_to_components_without_sending_them(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 4
    world.apply(cluster)
    world.run_until_ready(within=300.0)
    world.change(tikv={"replicas": 3})
    told = Observer(world).look()
    assert "POST http://basic-pd.default:2379/pd/api/v1/schedulers" in told
    assert ["Up"] * 4 == [each["state"] for each in world.cluster()["status"]["tikv"]["stores"].values()]


def replicas(tree: Json | None) -> int:
    assert tree is not None
    found: int = tree["spec"]["replicas"]
    return found
