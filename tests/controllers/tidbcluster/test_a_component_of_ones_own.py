"""A custom component, in no file of the operator: its facts and its behaviour. It works like the others."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import field

import controllers.tidbcluster.controller as cluster_controller
import controllers.tidbcluster_pod.sync as pod_sync
from apis.accessor import component
from apis.components import ComponentType, Unready, own_section, with_component
from apis.crd import TIDB_CLUSTER as DEFINITION
from apis.crd import definition
from apis.shared import ComponentStatus, WorkloadSpec
from apis.tidbcluster import TidbCluster, TidbClusterSpec, TidbClusterStatus
from controllers.tidbcluster.kind import TIDB_CLUSTER
from kube.objects import Json
from kube.resources import PODS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS
from member.components import with_workload
from member.context import ReconcileContext
from member.lifecycle.workload import Workload
from member.objects import pod, stateful_set, volumes
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, port
from member.observed.pods import ready_pods
from member.observed.status import observe_pods
from member.outcome import Done, Outcome
from tests.operator_world import NAMESPACE, OperatorWorld, sample


class GreeterSpec(WorkloadSpec, kw_only=True):
    greeting: str = "hello"


class GreeterStatus(ComponentStatus, kw_only=True):
    greeters: list[str] = field(default_factory=list)

    @property
    def health(self) -> list[bool]:
        return [True for _ in self.greeters]

    def forget_members(self) -> None:
        self.stateful_set, self.greeters = None, []


class SpecWithGreeter(TidbClusterSpec, kw_only=True):
    greeter: GreeterSpec | None = None


class StatusWithGreeter(TidbClusterStatus, kw_only=True):
    greeter: GreeterStatus = field(default_factory=GreeterStatus)


class ClusterWithGreeter(TidbCluster, kw_only=True):
    spec: SpecWithGreeter
    status: StatusWithGreeter = field(default_factory=StatusWithGreeter)


def status_of_greeter(status: TidbClusterStatus) -> GreeterStatus:
    assert isinstance(status, StatusWithGreeter)
    return status.greeter


def observe(ctx: ReconcileContext) -> Outcome:
    status = status_of_greeter(ctx.status)
    pods = observe_pods(ctx, "greeter", status)
    status.greeters = [each.metadata.name for each in ready_pods(pods or ())]
    return Done()


def services(tc: TidbCluster) -> list[Json]:
    return [end_user(tc, "greeter", {"type": "ClusterIP", "ports": [port("http", 8080)]}, {}, {})]


def content(tc: TidbCluster) -> Content:
    spec = component(tc, "greeter").spec
    assert isinstance(spec, GreeterSpec)
    return Content({CONFIG_FILE: f'greeting = "{spec.greeting}"\n', STARTUP_SCRIPT: "exec greeter\n"}, {})


def desired(tc: TidbCluster, config_map: str) -> Json:
    own = component(tc, "greeter")
    ports = [pod.container_port("http", 8080)]
    command = ["/bin/sh", volumes.start_script("greeter")]
    mounts = volumes.config_mounts("greeter")
    container = pod.main_container(own, command=command, ports=ports, mounts=mounts, builtin_env=[])
    files = volumes.config_volumes("greeter", config_map)
    template = pod.pod_template(own, containers=[container], volumes=files, metrics_port=8080)
    return stateful_set.stateful_set(own, template=template, claims=[])


GREETER = ComponentType(
    name="greeter",
    title="Greeter",
    slot=own_section("greeter"),
    status=status_of_greeter,
    starts_after=("tikv",),
    upgrades_after=("pd", "tikv", "tidb"),
    suspend_rank=0,
    unready=Unready(rank=9, reason="GreeterUnhealthy", message="Greeter(s) are not healthy"),
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[OperatorWorld]:
    kind = replace(TIDB_CLUSTER, model=ClusterWithGreeter)
    monkeypatch.setattr(cluster_controller, "TIDB_CLUSTER", kind)
    monkeypatch.setattr(pod_sync, "TIDB_CLUSTER", kind)
    crd = definition(replace(DEFINITION, model=ClusterWithGreeter))
    crd["spec"]["names"] |= {"kind": "TidbCluster", "listKind": "TidbClusterList", "singular": "tidbcluster"}
    behaviour = Workload(name="greeter", observe=observe, services=services, content=content, stateful_set=desired)
    with with_component(GREETER), with_workload(behaviour):
        world = OperatorWorld(crd=crd)
        world.apply(with_greeter(replicas=2))
        world.run_until_ready(within=120.0)
        yield world
        world.stop()


def with_greeter(**greeter: Any) -> Json:
    cluster = sample("basic")
    cluster["spec"]["greeter"] = {"baseImage": "example/greeter", "version": "v1", "config": {}, **greeter}
    return cluster


def names(world: OperatorWorld) -> list[str]:
    found = (each["metadata"]["name"] for each in world.every(PODS))
    return sorted(name for name in found if name.startswith("basic-greeter-"))


def images(world: OperatorWorld) -> set[str]:
    return {
        each["spec"]["containers"][0]["image"] for each in world.every(PODS) if "greeter" in each["metadata"]["name"]
    }


@pytest.mark.slow
def test_a_custom_component_is_created_and_reported(world: OperatorWorld) -> None:
    assert ["basic-greeter-0", "basic-greeter-1"] == names(world)
    assert world.exists(SERVICES, "basic-greeter")
    status = world.cluster()["status"]["greeter"]
    assert ("Normal", 2) == (status["phase"], status["statefulSet"]["readyReplicas"])
    assert {"Ready": "True", "Progressing": "False"} == {each["type"]: each["status"] for each in status["conditions"]}


@pytest.mark.slow
def test_a_custom_component_is_rolled_after_its_predecessors(world: OperatorWorld) -> None:
    world.change(greeter={"version": "v2"}, tidb={"config": "[log]\nlevel = 'warn'\n"})
    world.run_until(lambda: world.cluster()["status"]["tidb"]["phase"] == "Upgrade")
    assert {"example/greeter:v1"} == images(world)
    world.run_until_ready(within=300.0)
    assert {"example/greeter:v2"} == images(world)


@pytest.mark.slow
def test_a_custom_component_is_scaled_out_and_in(world: OperatorWorld) -> None:
    world.change(greeter={"replicas": 4})
    world.run_until_ready(within=120.0)
    assert 4 == len(names(world))
    world.change(greeter={"replicas": 1})
    world.run_until_ready(within=120.0)
    assert ["basic-greeter-0"] == names(world)


@pytest.mark.slow
def test_a_custom_component_is_suspended_and_resumed(world: OperatorWorld) -> None:
    world.change(greeter={"suspendAction": {"suspendStatefulSet": True}})
    world.run_until(lambda: not names(world) and world.reason() == "Suspended", within=120.0)
    assert not world.exists(STATEFUL_SETS, "basic-greeter")
    world.change(greeter={"suspendAction": None})
    world.run_until_ready(within=120.0)
    assert 2 == len(names(world))


@pytest.mark.slow
@pytest.mark.rule("1.5")
def test_a_custom_component_is_deleted_with_its_cluster(world: OperatorWorld) -> None:
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.run(60.0)
    assert [] == names(world)
    assert not world.exists(STATEFUL_SETS, "basic-greeter")
