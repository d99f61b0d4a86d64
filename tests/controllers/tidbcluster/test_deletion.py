"""The garbage collector deletes a cluster's objects; the operator does nothing (lifecycle.md 1.5, I27)."""

import pytest

from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from tests.operator_world import NAMESPACE, OperatorWorld, sample


@pytest.mark.rule("lifecycle-1.5")
def test_deleting_a_cluster_leaves_only_its_claims(basic: OperatorWorld) -> None:
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    basic.run(60.0)

    for resource in (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, ROLES, ROLE_BINDINGS, PODS):
        assert [] == [item for item in basic.every(resource) if item["metadata"]["name"].startswith("basic")]
    claims = [claim["metadata"]["name"] for claim in basic.every(PERSISTENT_VOLUME_CLAIMS)]
    assert ["pd-basic-pd-0", "tikv-basic-tikv-0"] == sorted(claims)
    assert [] == basic.writes()


@pytest.mark.rule("I27")
def test_leaves_a_terminating_cluster_alone(basic: OperatorWorld) -> None:
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"finalizers": ["example.com/keep"]}})
    basic.run(1.0)
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE)
    basic.forget()
    basic.run(60.0)

    assert not basic.exists(STATEFUL_SETS, "basic-tidb")
    assert ([], []) == (basic.writes(), basic.operator.dataplane.requests)


@pytest.mark.rule("lifecycle-1.5")
def test_a_deleted_cluster_has_no_series(basic: OperatorWorld) -> None:
    labels = {"namespace": "default", "name": "basic", "component": "pd"}
    series = "tidb_operator_cluster_spec_replicas"
    assert 1 == basic.operator.registry.get_sample_value(series, labels)
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    basic.run(1.0)
    assert None is basic.operator.registry.get_sample_value(series, labels)


@pytest.mark.rule("F4")
def test_creates_nothing_for_a_deleted_cluster_in_the_cache(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.operator.look()
    world.operator.caches[TIDB_CLUSTERS].blind = True
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.run(5.0)
    assert {"patch tidbclusters.pingcap.com/status basic"} == set(world.writes()), "and that one finds nothing"
    assert [] == world.every(SERVICES)


@pytest.mark.rule("F4")
def test_creates_nothing_for_the_former_cluster_of_the_name(world: OperatorWorld) -> None:
    """The cluster was deleted and recreated under its name, while the cache still shows the old one."""
    world.apply(sample("basic"))
    world.operator.look()
    cache = world.operator.caches[TIDB_CLUSTERS]
    cache.blind = True
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.apply(sample("basic"))
    world.run(5.0)
    assert [] == [write for write in world.writes() if write.startswith("create")]

    cache.blind = False
    cache.look()
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-1.5")
def test_recreates_a_deleted_stateful_set_with_its_data(basic: OperatorWorld) -> None:
    store, pod = list(basic.cluster()["status"]["tikv"]["stores"]), basic.get(PODS, "basic-tikv-0")["metadata"]["uid"]
    basic.admin.delete(STATEFUL_SETS, "basic-tikv", NAMESPACE)
    basic.run(30.0)
    basic.run_until_ready()
    assert pod != basic.get(PODS, "basic-tikv-0")["metadata"]["uid"]
    assert store == list(basic.cluster()["status"]["tikv"]["stores"])


@pytest.mark.parametrize("key", ["default/nobody", "nobody", "no/such/key"])
@pytest.mark.rule("CW-6")
def test_syncs_a_key_without_a_cluster_successfully(world: OperatorWorld, key: str) -> None:
    assert world.operator.sync(key) is None
    assert [] == world.writes()
