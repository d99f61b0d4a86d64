"""Two clusters with one instance name (objects.md 1.2): the second is refused before anything is written for it."""

import pytest

from controllers.tidbcluster import stages
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from tests.operator_world import NAMESPACE, OperatorWorld, sample

INSTANCE = "app.kubernetes.io/instance"
_MADE = (STATEFUL_SETS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS, PODS)


def cluster(name: str, instance: str = "") -> Json:
    made = sample("basic")
    made["metadata"]["name"] = name
    if instance:
        made["metadata"]["labels"] = {INSTANCE: instance}
    return made


def relabel(world: OperatorWorld, name: str, instance: str | None) -> None:
    world.admin.patch(TIDB_CLUSTERS, name, NAMESPACE, {"metadata": {"labels": {INSTANCE: instance}}})


def made_for(world: OperatorWorld, name: str) -> dict[str, str]:
    """The existing objects with the names of a cluster's objects, and their UIDs."""
    return {
        f"{resource} {each['metadata']['name']}": each["metadata"]["uid"]
        for resource in (*_MADE, PERSISTENT_VOLUME_CLAIMS)
        for each in world.every(resource)
        if each["metadata"]["name"].startswith(f"{name}-") or f"-{name}-" in each["metadata"]["name"]
    }


def message(world: OperatorWorld, name: str) -> str:
    return str(world.condition("Progressing", name).get("message", ""))


def run_until_taken(world: OperatorWorld, name: str) -> None:
    world.run_until(lambda: world.reason(name) == "InstanceTaken")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [(("a", "web"), ("b", "web")), (("a", ""), ("b", "a")), (("a", "b"), ("b", ""))],
    ids=["one label", "a label that is a name", "a name that is a label"],
)
@pytest.mark.rule("objects-1.2")
def test_refuses_a_second_cluster_and_names_the_first(
    world: OperatorWorld, first: tuple[str, str], second: tuple[str, str]
) -> None:
    world.apply(cluster(*first))
    world.run_until_ready("a")
    before = made_for(world, "a")
    world.apply(cluster(*second))
    run_until_taken(world, "b")
    world.run(120.0)

    assert f"belongs to TidbCluster {first[0]}" in message(world, "b")
    assert ({}, before) == (made_for(world, "b"), made_for(world, "a"))
    assert world.is_ready("a")
    assert not world.is_ready("b")


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_of_two_clusters_created_at_once_the_older_continues(world: OperatorWorld) -> None:
    world.apply(cluster("b", "web"))
    world.world.advance(1.0)
    world.apply(cluster("a", "web"))
    world.run_until_ready("b")
    assert ("InstanceTaken", {}) == (world.reason("a"), made_for(world, "a"))


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_the_name_decides_between_clusters_created_in_the_same_second(world: OperatorWorld) -> None:
    world.apply(cluster("b", "web"))
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    assert ("InstanceTaken", {}) == (world.reason("b"), made_for(world, "b"))


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_deleting_the_refused_cluster_deletes_nothing_of_the_other(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    world.apply(cluster("b", "web"))
    run_until_taken(world, "b")
    before = made_for(world, "a")
    world.admin.delete(TIDB_CLUSTERS, "b", NAMESPACE)
    world.run(60.0)
    assert before == made_for(world, "a")
    assert world.is_ready("a")


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_the_second_cluster_begins_when_nothing_of_the_first_is_left(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    world.apply(cluster("b", "web"))
    run_until_taken(world, "b")
    world.admin.delete(TIDB_CLUSTERS, "a", NAMESPACE)
    world.run_until(lambda: "objects of TidbCluster a; waiting" in message(world, "b"), 10.0)
    world.run_until(lambda: "volumes with the data of another TidbCluster" in message(world, "b"), 120.0)
    assert "pd-a-pd-0, tikv-a-tikv-0" in message(world, "b")
    world.run(60.0)
    assert {} == made_for(world, "b")

    for claim in world.every(PERSISTENT_VOLUME_CLAIMS):
        world.admin.delete(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], NAMESPACE)
    world.run_until_ready("b")


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_a_cluster_recreated_over_its_volumes_keeps_its_name(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    world.apply(cluster("b", "web"))
    run_until_taken(world, "b")
    store = set(world.cluster("a")["status"]["tikv"]["stores"])
    world.admin.delete(TIDB_CLUSTERS, "a", NAMESPACE)
    world.run(60.0)
    world.apply(cluster("a", "web"))
    world.run_until_ready("a", within=120.0)
    world.run_until(lambda: "belongs to TidbCluster a" in message(world, "b"))
    assert ({}, store) == (made_for(world, "b"), set(world.cluster("a")["status"]["tikv"]["stores"]))


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_a_new_instance_label_resolves_the_conflict_immediately(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    world.apply(cluster("b", "web"))
    run_until_taken(world, "b")
    relabel(world, "b", "other")
    world.run_until(lambda: world.exists(STATEFUL_SETS, "b-pd"), 5.0)
    world.run_until_ready("b")
    assert world.is_ready("a")


@pytest.mark.rule("objects-1.2")
def test_a_refused_cluster_begins_when_the_first_changes_its_label_in_time(world: OperatorWorld) -> None:
    first = cluster("a", "web")
    first["spec"]["paused"] = True
    world.apply(first)
    world.world.advance(1.0)
    world.apply(cluster("b", "web"))
    run_until_taken(world, "b")
    relabel(world, "a", None)
    world.run_until_ready("b")


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_a_running_cluster_keeps_its_name_from_an_older_one(world: OperatorWorld) -> None:
    """An older cluster that runs under another name, or does not run, cannot take it over."""
    world.apply(cluster("old"))
    paused = cluster("idle")
    paused["spec"]["paused"] = True
    world.apply(paused)
    world.run_until_ready("old")
    world.apply(cluster("young", "web"))
    world.run_until_ready("young")
    before = made_for(world, "young") | made_for(world, "old")
    relabel(world, "old", "web")
    relabel(world, "idle", "web")
    world.run_until(lambda: world.reason("old") == "InvalidSpec")
    world.admin.patch(TIDB_CLUSTERS, "idle", NAMESPACE, {"spec": {"paused": False}})
    run_until_taken(world, "idle")
    world.run(60.0)

    assert "set it back to old" in message(world, "old")
    assert "belongs to TidbCluster young" in message(world, "idle")
    assert ("Done", True) == (world.reason("young"), world.is_ready("young"))
    assert before == made_for(world, "young") | made_for(world, "old")


@pytest.mark.rule("objects-1.2")
def test_a_name_is_taken_while_a_relabelled_cluster_still_runs_under_it(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    relabel(world, "a", "other")
    world.run_until(lambda: world.reason("a") == "InvalidSpec")
    world.apply(cluster("b", "web"))
    run_until_taken(world, "b")
    world.run(60.0)
    assert {} == made_for(world, "b")

    assert "objects of TidbCluster a" in message(world, "b")

    relabel(world, "a", "web")
    world.run_until(lambda: "belongs to TidbCluster a" in message(world, "b"))
    assert world.is_ready("a")


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_a_suspended_cluster_keeps_its_instance_name(basic: OperatorWorld) -> None:
    basic.change(suspendAction={"suspendStatefulSet": True})
    basic.run_until(lambda: basic.reason() == "Suspended", 120.0)
    basic.run(5.0)
    basic.forget()
    relabel(basic, "basic", "web")
    basic.run_until(lambda: basic.reason() == "InvalidSpec")
    assert "set it back to basic" in basic.condition("Progressing")["message"]
    assert [] == [write for write in basic.writes() if "tidbclusters" not in write and "events" not in write]


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_a_cluster_owns_volumes_of_another_instance_name(basic: OperatorWorld) -> None:
    """Argo CD labels a TidbCluster that is created again over its volumes."""
    basic.change(tikv={"replicas": 3})
    basic.run_until_ready()
    stores = set(basic.cluster()["status"]["tikv"]["stores"])
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    basic.run(60.0)
    basic.apply(cluster("basic", "web"))
    basic.run_until(lambda: basic.exists(STATEFUL_SETS, "basic-tikv"))
    assert 3 == basic.replicas("tikv")
    basic.change(tikv={"replicas": 3})
    basic.run_until_ready(within=120.0)
    assert stores == set(basic.cluster()["status"]["tikv"]["stores"])
    labels = [claim["metadata"]["labels"][INSTANCE] for claim in basic.every(PERSISTENT_VOLUME_CLAIMS)]
    assert {"web"} == set(labels)


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_clusters_that_refer_to_each_other_may_share_a_name(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    part = cluster("b", "web")
    part["spec"] = {key: value for key, value in part["spec"].items() if key not in ("pd", "tikv", "discovery")}
    part["spec"]["cluster"] = {"name": "a"}
    world.apply(part)
    world.run_until(lambda: world.exists(STATEFUL_SETS, "b-tidb"))
    world.run_until(lambda: list(world.cluster("b")["status"]["tidb"].get("members", ())) == ["b-tidb-0"])
    world.run(40.0)
    assert ("Done", True) == (world.reason("a"), world.is_ready("a"))
    assert ["a-tidb-0"] == list(world.cluster("a")["status"]["tidb"]["members"])


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_clusters_of_other_namespaces_do_not_conflict(world: OperatorWorld) -> None:
    world.apply(cluster("a", "web"))
    world.run_until_ready("a")
    world.admin.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    twin = cluster("b", "web")
    twin["metadata"]["namespace"] = "elsewhere"
    world.admin.create(TIDB_CLUSTERS, twin, "elsewhere")
    world.run_until(lambda: world.admin.find(STATEFUL_SETS, "b-pd", "elsewhere") is not None)


@pytest.mark.slow
@pytest.mark.rule("F1")
def test_a_running_cluster_missing_from_the_cache_keeps_its_name(world: OperatorWorld) -> None:
    idle = cluster("idle")
    idle["spec"]["paused"] = True
    world.apply(idle)
    world.world.advance(1.0)
    world.apply(cluster("young", "web"))
    world.run_until_ready("young")
    for resource in (*_MADE, PERSISTENT_VOLUME_CLAIMS):
        if resource in world.operator.caches:
            world.operator.caches[resource].blind = True
            world.operator.caches[resource].empty()
    world.admin.patch(
        TIDB_CLUSTERS, "idle", NAMESPACE, {"metadata": {"labels": {INSTANCE: "web"}}, "spec": {"paused": False}}
    )
    run_until_taken(world, "idle")
    world.run(20.0)
    assert {} == made_for(world, "idle")


@pytest.mark.slow
@pytest.mark.rule("objects-1.2")
def test_of_two_running_clusters_the_older_continues_and_neither_takes_the_others_pods(
    world: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As v1.6 has left them; one of them has grown meanwhile."""
    with monkeypatch.context() as v1_6:
        v1_6.setattr(stages, "instance_taken", lambda _: None)
        world.apply(cluster("a", "web"))
        world.run_until_ready("a")
        second = cluster("b", "web")
        second["spec"]["tidb"]["replicas"] = 2
        world.apply(second)
        world.run_until(lambda: world.exists(STATEFUL_SETS, "b-pd"))
        world.run(60.0)
    before = made_for(world, "a")
    world.change("b", pd={"replicas": 3})
    run_until_taken(world, "b")
    world.change("a", tidb={"replicas": 2})
    world.run_until(lambda: world.replicas("tidb", "a") == 2)
    world.run(60.0)

    assert 1 == world.replicas("pd", "b")
    assert before.items() <= made_for(world, "a").items()
    assert ["a-tidb-0", "a-tidb-1"] == sorted(world.cluster("a")["status"]["tidb"]["members"])
