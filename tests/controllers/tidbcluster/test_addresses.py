"""An address in PD that may belong to this cluster proves nothing (lifecycle.md 4.1, F24)."""

from collections.abc import Callable

import pytest

from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS
from sandbox.dataplane.pd.cluster import Member, PdCluster
from sandbox.dataplane.pd.stores import Store
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def pd_of(world: OperatorWorld) -> PdCluster:
    found = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert found is not None
    return found


def store_of(world: OperatorWorld, pod: str) -> Store:
    return next(each for each in pd_of(world).stores.all() if each.address.startswith(f"{pod}."))


def member_of(world: OperatorWorld, pod: str) -> Member:
    return next(each for each in pd_of(world).members.values() if each.name == pod)


def rename_store(world: OperatorWorld) -> Callable[[], None]:
    store = store_of(world, "basic-tikv-2")
    there, store.address = store.address, "basic-tikv-2.basic-tikv-peer:20160"
    return lambda: setattr(store, "address", there)


def rename_member(world: OperatorWorld) -> Callable[[], None]:
    member = member_of(world, "basic-pd-2")
    there = (member.client_url, member.peer_url)
    member.client_url = member.peer_url = "http://basic-pd-2:2379"

    def restore() -> None:
        member.client_url, member.peer_url = there

    return restore


@pytest.fixture
def three(world: OperatorWorld) -> OperatorWorld:
    """`basic` with three PDs and four TiKVs."""
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"], cluster["spec"]["tikv"]["replicas"] = 3, 4
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    return world


@pytest.mark.slow
@pytest.mark.parametrize(("component", "rename"), [("tikv", rename_store), ("pd", rename_member)])
@pytest.mark.parametrize("change", [{"scale": -1}, {"version": "v8.5.3"}])
@pytest.mark.rule("lifecycle-4.1")
def test_neither_scales_in_nor_restarts_while_an_address_is_not_understood(
    three: OperatorWorld, component: str, rename: Callable[[OperatorWorld], Callable[[], None]], change: Json
) -> None:
    restore, replicas = rename(three), three.replicas(component)
    uids = {pod["metadata"]["uid"] for pod in three.every(PODS)}
    wanted = {"replicas": replicas - 1} if "scale" in change else change
    three.change(**{component: wanted})
    three.run(60)
    assert "looks like a pod of this cluster" in three.condition("Progressing")["message"]
    assert replicas == three.replicas(component)
    assert uids == {pod["metadata"]["uid"] for pod in three.every(PODS)}
    assert [] == three.operator.dataplane.writes()
    restore()
    three.run_until_ready(within=180.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-4.1")
def test_the_domain_of_a_running_cluster_is_not_changed(basic: OperatorWorld) -> None:
    generation = basic.get(STATEFUL_SETS, "basic-pd")["metadata"]["generation"]
    basic.change(clusterDomain="cluster.local")
    basic.run_until(lambda: basic.reason() == "InvalidSpec")
    message = basic.condition("Progressing")["message"]
    assert message.startswith('spec.clusterDomain: "cluster.local": cannot be changed')
    assert message.endswith("; remove it")
    assert generation == basic.get(STATEFUL_SETS, "basic-pd")["metadata"]["generation"]
    basic.change(clusterDomain=None)
    basic.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-4.1")
def test_accepts_a_corrected_domain_before_pd_is_bootstrapped(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["clusterDomain"] = "nowhere.example"
    world.apply(cluster)
    world.run(30)
    assert not world.is_ready()
    world.change(clusterDomain="cluster.local")
    world.run_until_ready(within=180.0)
    assert all(name.endswith(".svc.cluster.local") for name in world.cluster()["status"]["pd"]["members"])
