"""Pods of a running cluster that are ready when their servers say so."""

import pytest

from apis.ready_endpoints import READY_ENDPOINTS
from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.controllers.tidbcluster.test_tls import TlsWorld
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.takeover.test_recordings import left_by_v16

pytestmark = pytest.mark.slow

ON = {"metadata": {"annotations": {READY_ENDPOINTS: "true"}}}


def uids(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def probe(world: OperatorWorld, component: str) -> Json:
    containers = world.get(STATEFUL_SETS, f"basic-{component}")["spec"]["template"]["spec"]["containers"]
    found: Json
    (found,) = (each.get("readinessProbe", {}) for each in containers if each["name"] == component)
    return found


def test_an_upgrade_to_a_version_with_the_endpoint_restarts_each_pod_once(world: OperatorWorld) -> None:
    tree = sample("basic")
    tree["metadata"]["annotations"] = {READY_ENDPOINTS: "true"}
    world.apply(tree)
    world.run_until_ready()
    assert "tikv, which runs v8.5.2: it needs v9.0.0" in world.condition("FieldsIgnored")["message"]
    assert ({}, True) == (probe(world, "tikv"), "exec" in probe(world, "tidb"))
    seen = {uids(world)["basic-tikv-0"]}
    world.change(version="v9.0.0")
    end = world.clock.now() + 60.0
    while world.clock.now() < end:
        world.run(0.5)
        seen.add(uids(world).get("basic-tikv-0", ""))
    world.run_until_ready()
    assert 2 == len(seen - {""})
    assert {"path": "/ready", "port": 20180} == {key: probe(world, "tikv")["httpGet"][key] for key in ("path", "port")}
    assert "False" == world.condition("FieldsIgnored")["status"]


def test_with_tls_pods_become_ready_by_their_own_certificates(world: OperatorWorld) -> None:
    tls = TlsWorld(world)
    tls.put_all()
    tls.apply()
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, ON | {"spec": {"version": "v9.0.0"}})
    world.run_until_ready(within=120.0)
    assert "curl" == probe(world, "tikv")["exec"]["command"][0]


def test_an_annotation_that_v1_6_ignored_waits_for_the_users_next_change(clock: FakeClock) -> None:
    taken = left_by_v16("basic", clock)
    before, world = taken.pods(), taken.world
    world.admin.patch(TIDB_CLUSTERS, taken.name, taken.namespace, ON)
    world.run(45.0)
    assert before == taken.pods()
    world.stop()
