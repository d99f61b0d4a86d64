"""Objects with the annotation `tidb.pingcap.com/observe` are decided for, and not written to (docs/migration.md)."""

from collections.abc import Iterator

import pytest
import yaml

import kube.resources
from apis.crd import KINDS
from controller_manager.observing import PlannedWrites
from controllers.observed import OBSERVE
from dataplane.read_only import ReadOnlyTransport
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from ports.observation import is_observing
from rehearsal.operator import Operator
from tests.operator_world import NAMESPACE, SAMPLES, OperatorWorld, sample

KEPT, OTHER = "basic", "other"
RESOURCES = {
    each.kind: each
    for each in vars(kube.resources).values()
    if isinstance(each, Resource) and each != kube.resources.ADVANCED_STATEFUL_SETS
}
MADE = (JOBS, STATEFUL_SETS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, SECRETS, PERSISTENT_VOLUME_CLAIMS, ROLES, EVENTS)


class Observed:
    """A world whose operator is wired like a process."""

    def __init__(self) -> None:
        self.world = OperatorWorld()
        self.planned: list[PlannedWrite] = []
        writes = PlannedWrites(self.planned.append)
        self.world.operator = Operator(
            self.world.world,
            self.world.clock,
            2,
            kubernetes=lambda transport: DryRunTransport(transport, writes.add, is_observing),
            dataplane=lambda transport: ReadOnlyTransport(transport, writes.add_call, is_observing),
        )

    def observe(self, name: str, value: str | None = "true") -> None:
        """Set the annotation, None removes it."""
        annotations = {"metadata": {"annotations": {OBSERVE: value}}}
        self.world.admin.patch(TIDB_CLUSTERS, name, NAMESPACE, annotations)

    def version(self, name: str) -> str:
        """The version of the TidbCluster, which each write of its status changes too."""
        return self.world.admin.get(TIDB_CLUSTERS, name, NAMESPACE).metadata.resource_version

    def told(self) -> list[str]:
        """The suppressed writes, each once."""
        found = [f"{each.verb} {each.resource}/{each.name}".rstrip("/") for each in self.planned]
        self.planned.clear()
        return found


@pytest.fixture
def observed() -> Iterator[Observed]:
    made = Observed()
    for name in (KEPT, OTHER):
        made.world.apply(sample("basic") | {"metadata": {"name": name}})
    made.world.run_until_ready(OTHER, within=300.0)
    made.world.run_until_ready(KEPT, within=300.0)
    yield made
    made.world.stop()


@pytest.mark.slow
def test_writes_nothing_for_an_observed_object_and_everything_for_the_others(observed: Observed) -> None:
    world = observed.world
    observed.observe(KEPT)
    events = len(world.events())
    for name in (KEPT, OTHER):
        world.change(name, tidb={"replicas": 2})
    version = observed.version(KEPT)
    world.run_until(lambda: world.replicas("tidb", OTHER) == 2, within=60.0)
    world.run(40.0)
    assert (1, version) == (world.replicas("tidb", KEPT), observed.version(KEPT))
    assert ["patch statefulsets/basic-tidb"] == observed.told()
    about = {each["involvedObject"]["name"] for each in world.events()[events:]}
    assert KEPT not in about
    gauge = world.operator.registry.get_sample_value(
        "tidb_operator_observed", {"kind": "TidbCluster", "namespace": NAMESPACE, "name": KEPT}
    )
    assert 1 == gauge


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, "false"])
def test_an_object_is_managed_as_soon_as_the_annotation_is_gone(observed: Observed, value: str | None) -> None:
    world = observed.world
    observed.observe(KEPT, "yes")
    world.change(KEPT, tidb={"replicas": 2}, tikv={"replicas": 2})
    world.run(40.0)
    assert (1, 1) == (world.replicas("tidb", KEPT), world.replicas("tikv", KEPT))
    observed.observe(KEPT, value)
    world.run_until_ready(KEPT, within=120.0)
    assert (2, 2) == (world.replicas("tidb", KEPT), world.replicas("tikv", KEPT))


@pytest.mark.slow
def test_deleted_objects_are_not_recreated_and_pods_get_no_commands(observed: Observed) -> None:
    world = observed.world
    observed.observe(KEPT)
    world.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE)
    command = {"metadata": {"annotations": {"tidb.pingcap.com/evict-leader": "delete-pod"}}}
    world.admin.patch(PODS, "basic-tikv-0", NAMESPACE, command)
    world.run(40.0)
    assert not world.exists(STATEFUL_SETS, "basic-tidb")
    told = observed.told()
    assert {"create statefulsets/basic-tidb", "delete pods/basic-tikv-0"} <= {*told}, told


@pytest.mark.parametrize("kind", [each.model.__name__ for each in KINDS if each.model.__name__ != "TidbCluster"])
def test_objects_of_every_kind_may_be_observed(kind: str) -> None:
    observed = Observed()
    world, resource = observed.world, RESOURCES[kind]
    world.run(1.0)
    body = sample_of(kind)
    body["metadata"] = {"name": "looked-at", "annotations": {OBSERVE: "true"}}
    made = world.admin.create(resource, body, NAMESPACE)
    before = everything(world)
    world.run(5.0)
    assert (made.raw, before) == (world.admin.get(resource, "looked-at", NAMESPACE).raw, everything(world))
    # a status is no planned write, even where it is part of the object: the existing one must be readable then
    assert [] == [each.name for each in observed.planned if each.resource == resource.plural and each.before is None]
    world.stop()


def sample_of(kind: str) -> Json:
    """The first one among our samples; one without a spec where there is none."""
    documents = (each for path in sorted(SAMPLES.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text()))
    none: Json = {"apiVersion": "pingcap.com/v1alpha1", "kind": kind, "spec": {}}
    return next((each for each in documents if each and each["kind"] == kind), none)


def everything(world: OperatorWorld) -> list[str]:
    """The existing objects of all kinds that controllers create."""
    return [f"{each}/{item['metadata']['name']}" for each in MADE for item in world.every(each)]
