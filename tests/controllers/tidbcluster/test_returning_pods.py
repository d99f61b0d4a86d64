"""Pods that PD counts on are recreated, regardless of which client made their StatefulSet too small (I4, R14,
lifecycle.md 4.6)."""

from typing import Any

import pytest

from kube.objects import Json
from kube.resources import STATEFUL_SETS, TIDB_CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def three(pd: int = 3, tikv: int = 3) -> Json:
    """Three members and three stores by default."""
    cluster: Json = sample("basic")
    cluster["spec"]["pd"]["replicas"], cluster["spec"]["tikv"]["replicas"] = pd, tikv
    return cluster


@pytest.fixture
def basic(world: OperatorWorld) -> OperatorWorld:
    """The world with three members and three stores in it, Ready."""
    world.apply(three())
    world.run_until_ready()
    return world


def recreated(world: OperatorWorld, pd: int, tikv: int = 3) -> None:
    """The TidbCluster is deleted with all that belongs to it, and created again over its volumes."""
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.run_until(lambda: not world.exists(STATEFUL_SETS, "basic-pd"))
    world.run(30)
    world.apply(three(pd, tikv))


def pd_cluster(world: OperatorWorld) -> Any:
    return world.world.data_plane.pd_cluster(NAMESPACE, "basic")


@pytest.mark.slow
@pytest.mark.rule("I4")
def test_a_cluster_recreated_with_fewer_pds_starts_with_all_volumes_and_then_scales_in(
    basic: OperatorWorld,
) -> None:
    before = pd_cluster(basic).id
    recreated(basic, pd=1)
    basic.run_until_ready(within=120)

    assert before == pd_cluster(basic).id
    assert ["basic-pd-0"] == [each.name for each in pd_cluster(basic).members.values()]


@pytest.mark.slow
@pytest.mark.rule("R14")
def test_a_cluster_recreated_with_fewer_pds_and_corrected_keeps_its_pd(basic: OperatorWorld) -> None:
    before = pd_cluster(basic).id
    recreated(basic, pd=1)
    basic.run(1)
    basic.change(pd={"replicas": 3})
    basic.run_until_ready(within=120)

    assert (before, 3) == (pd_cluster(basic).id, len(pd_cluster(basic).members))


@pytest.mark.slow
@pytest.mark.rule("I3")
def test_a_cluster_recreated_with_fewer_stores_loses_none(basic: OperatorWorld) -> None:
    basic.change(tikv={"replicas": 4})
    basic.run_until_ready()
    recreated(basic, pd=3, tikv=3)
    basic.run_until_ready(within=200)

    assert ["Tombstone", "Up", "Up", "Up"] == sorted(
        pd_cluster(basic).stores.state_name(each, basic.clock.now()) for each in pd_cluster(basic).stores.all()
    )


@pytest.mark.slow
@pytest.mark.rule("I4")
def test_recreates_the_pods_of_unmarked_volumes_while_pd_is_silent(basic: OperatorWorld) -> None:
    """Only the volumes show the members: the StatefulSet is too small, and the status was emptied."""
    basic.admin.patch(STATEFUL_SETS, "basic-pd", NAMESPACE, {"spec": {"replicas": 1}})
    basic.world.advance(5)
    status = {"status": {"pd": {"members": None, "synced": False}}}
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, status, subresource="status")
    basic.restart()
    basic.run_until_ready()

    assert 3 == basic.replicas("pd")
