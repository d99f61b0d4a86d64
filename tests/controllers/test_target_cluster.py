"""A TidbCluster that `-selector` leaves to another operator still exists (objects.md 1, F1)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import yaml

from apis.consent import parse_policy
from controllers.controller import Controller
from controllers.dashboard.kind import TIDB_DASHBOARD
from controllers.initializer.kind import TIDB_INITIALIZER
from controllers.runtime import Runtime
from controllers.simple_kind import SimpleKind
from controllers.tidbmonitor.controller import tidb_monitor_controllers
from dataplane.etcd import EtcdClient
from kube.objects import Json, Object
from kube.resources import (
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    Resource,
)
from rehearsal.operator import USER
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from tests.controllers.simple_world import NAMESPACE, SimpleWorld
from tests.controllers.tidbmonitor.monitors import CONTAINERS

SELECTOR = "version!=canary"
DASHBOARD: Json = {"version": "v8.5.2", "requests": {"storage": "1Gi"}}
READ = "get tidbclusters.pingcap.com basic"


def of_kind(kind: SimpleKind[Any], runtime: Runtime) -> Sequence[Controller]:
    return kind.controllers(runtime, SELECTOR)


def of_monitors(runtime: Runtime) -> Sequence[Controller]:
    def no_etcd(cluster: Object) -> EtcdClient:
        raise AssertionError(f"{cluster.key} has no members")

    return tidb_monitor_controllers(runtime, SELECTOR, (), no_etcd, parse_policy("lab:far"))


def handed_over(world: SimpleWorld) -> None:
    """The cluster moves to the operator of the canaries."""
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"labels": {"version": "canary"}}})


@pytest.fixture(params=[(TIDB_INITIALIZERS, TIDB_INITIALIZER), (TIDB_DASHBOARDS, TIDB_DASHBOARD)])
def world(request: pytest.FixtureRequest) -> Iterator[SimpleWorld]:
    resource, kind = request.param
    made = SimpleWorld(resource)
    made.use(build=partial(of_kind, kind))
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def monitors() -> Iterator[SimpleWorld]:
    made = SimpleWorld(TIDB_MONITORS)
    made.use(build=of_monitors)
    try:
        yield made
    finally:
        made.stop()


def spec_of(resource: Resource, namespace: str = "") -> Json:
    reference = {"name": "basic"} | ({"namespace": namespace} if namespace else {})
    if resource == TIDB_INITIALIZERS:
        return {"cluster": reference, "image": "tnir/mysqlclient", "initSql": "SELECT 1;"}
    return DASHBOARD | {"clusters": [reference]}


def jobs(world: SimpleWorld) -> set[str]:
    """The clusters that are scraped."""
    tree = yaml.safe_load(world.get(CONFIG_MAPS, "demo-monitor")["data"]["prometheus.yml"])
    return {each["job_name"].removesuffix("-tikv") for each in tree["scrape_configs"] if "-tikv" in each["job_name"]}


@pytest.mark.rule("F1")
def test_creates_objects_for_a_cluster_of_another_operator(world: SimpleWorld) -> None:
    world.add_cluster()
    handed_over(world)
    world.add(**spec_of(world.resource))
    assert "NoSuchCluster" != world.condition()[1]
    assert world.names(JOBS if world.resource == TIDB_INITIALIZERS else STATEFUL_SETS)


@pytest.mark.rule("F1")
def test_waits_for_a_missing_cluster(world: SimpleWorld) -> None:
    world.add(**spec_of(world.resource))
    assert ("True", "NoSuchCluster") == world.condition()[:2]
    world.add_cluster()
    handed_over(world)
    world.resyncs(1)
    assert "NoSuchCluster" != world.condition()[1]


@pytest.mark.rule("F1")
def test_a_cluster_that_is_handed_over_is_monitored_on(monitors: SimpleWorld) -> None:
    monitors.add_cluster()
    monitors.add_cluster("other")
    monitors.add(**CONTAINERS, clusters=[{"name": "basic"}, {"name": "other"}])
    assert {"lab-basic", "lab-other"} == jobs(monitors)
    handed_over(monitors)
    monitors.resyncs(1)
    assert {"lab-basic", "lab-other"} == jobs(monitors)
    assert "ClusterMissing" != monitors.condition()[1]


@pytest.mark.rule("F1")
def test_a_cluster_that_may_not_be_read_keeps_no_other_from_being_monitored(monitors: SimpleWorld) -> None:
    monitors.add_cluster()
    monitors.admin.create(NAMESPACES, {"metadata": {"name": "far"}})
    no = Fault(refusal=Refusal(403, "Forbidden", "no"))
    monitors.world.faults.api_fault(no, USER, "get", "tidbclusters.pingcap.com", "far/basic")
    monitors.add(**CONTAINERS, clusters=[{"name": "basic"}, {"name": "basic", "namespace": "far"}])
    assert {"lab-basic"} == jobs(monitors)
    assert "TidbCluster far/basic, which does not exist where this operator may look" in monitors.condition()[2]


@pytest.mark.rule("F1")
def test_a_cluster_that_is_selected_costs_no_read(monitors: SimpleWorld) -> None:
    monitors.add_cluster()
    monitors.add(**CONTAINERS, clusters=[{"name": "basic"}])
    monitors.forget()
    monitors.resyncs()
    assert READ not in monitors.requests()
