"""StatefulSets of simple kinds move between both kinds of StatefulSets around their pods (lifecycle.md 4.4)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    PODS,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from manifests import ADVANCED_STATEFUL_SET
from rehearsal.operator import SETTINGS
from sandbox.world import load_crds
from tests.controllers.simple_world import NAMESPACE, SimpleWorld
from tests.controllers.test_dashboards import SPECS
from tests.operator_world import definitions, sample

_ON = replace(SETTINGS, advanced_stateful_sets=True)
_MONITOR: Json = {
    "clusters": [{"name": "basic"}],
    "prometheus": {"baseImage": "prom/prometheus", "version": "v2.49.1"},
    "initializer": {"baseImage": "pingcap/tidb-monitor-initializer", "version": "v8.5.2"},
    "reloader": {"baseImage": "pingcap/tidb-monitor-reloader", "version": "v1.0.1"},
}


@pytest.fixture(params=[TIDB_DASHBOARDS, TIDB_NG_MONITORINGS, TIDB_MONITORS], ids=lambda each: each.plural)
def world(request: pytest.FixtureRequest) -> Iterator[SimpleWorld]:
    resource: Resource = request.param
    made = SimpleWorld(resource, crds=[*definitions(), *load_crds(ADVANCED_STATEFUL_SET)])
    made.admin.create(TIDB_CLUSTERS, sample("basic") | {"spec": sample("basic")["spec"] | {"paused": True}}, NAMESPACE)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "it"}}
    made.admin.create(resource, body | {"spec": SPECS.get(resource, _MONITOR)}, NAMESPACE)
    made.run(30.0)
    yield made
    made.stop()


def sets(world: SimpleWorld, resource: Resource) -> int:
    return len(world.admin.list_page(resource, NAMESPACE).items)


def pods(world: SimpleWorld) -> dict[str, str]:
    return {each.metadata.name: each.metadata.uid for each in world.admin.list_page(PODS, NAMESPACE).items}


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_a_switch_of_the_feature_keeps_the_pods(world: SimpleWorld) -> None:
    before = pods(world)
    assert before
    assert (1, 0) == (sets(world, STATEFUL_SETS), sets(world, ADVANCED_STATEFUL_SETS))
    world.use(settings=_ON)
    world.run(60.0)
    assert (0, 1, before) == (sets(world, STATEFUL_SETS), sets(world, ADVANCED_STATEFUL_SETS), pods(world))
    world.use(settings=SETTINGS)
    world.run(60.0)
    assert (1, 0, before) == (sets(world, STATEFUL_SETS), sets(world, ADVANCED_STATEFUL_SETS), pods(world))
