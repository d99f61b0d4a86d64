"""The nodes that a pod may run on (scheduler-deployment.md 2.3 to 2.7)."""

import pytest

from kube.objects import Json, Object
from kube.resources import NODES, PODS, TIDB_CLUSTERS
from ports.randomness import SeededRandomness
from scheduler.extender import FAIL, Unanswerable
from scheduler.protocol import Answer, Preemption, Question, Victims
from tests.scheduler.worlds import HOST, NAMESPACE, ExtenderWorld, body, node, pod, shuffled


def question(tree: dict[str, object], *names: str) -> Question:
    return Question(Object(body(tree)), names)


@pytest.fixture
def world() -> ExtenderWorld:
    return ExtenderWorld()


@pytest.mark.rule("scheduler-deployment-2.3")
def test_foreign_pods_may_run_anywhere(world: ExtenderWorld) -> None:
    for other in (
        pod("web", labels={}),
        pod("web", ownerReferences=[]),
        pod("db-pd-0", ownerReferences=[{"apiVersion": "v1", "kind": "Job", "name": "x", "uid": "1"}]),
        pod("db-ticdc-0", "ticdc"),
    ):
        assert ["a", "b"] == list(world.extender.filter(question(other, "a", "b")).kept)


@pytest.mark.rule("scheduler-deployment-2.3")
def test_injects_a_failure(world: ExtenderWorld) -> None:
    with pytest.raises(Unanswerable, match="pod db-pd-0 had an intentional failure injected"):
        world.extender.filter(question(pod("db-pd-0", annotations={FAIL: ""}), "a"))


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-2.6")
def test_five_pds_are_placed_2_2_1_in_every_order() -> None:
    for seed in range(20):
        draws = SeededRandomness(seed)
        world = ExtenderWorld(pd={"replicas": 5})
        pods = [f"db-pd-{ordinal}" for ordinal in range(5)]
        for name in pods:
            world.add(name)
        for name in shuffled(pods, draws):
            world.bind(name, shuffled(list(world.ask(name).kept), draws)[0])
        nodes = [each.decode()["spec"]["nodeName"] for each in world.admin.list_page(PODS, NAMESPACE).items]
        assert [1, 2, 2] == sorted(nodes.count(each) for each in "abc")


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_refusal_is_reported_per_node_and_as_an_event(world: ExtenderWorld) -> None:
    world.add("db-pd-0", on="a")
    world.add("db-pd-1")
    why = "unable to schedule to topology: a (1 pd pods), max pods per topology: 1"
    assert Answer((), {"a": why}) == world.ask("db-pd-1", "a")
    assert [("db-pd-1", "Warning", "HAScheduling", why)] == world.events.events


@pytest.mark.rule("scheduler-deployment-2.5")
def test_an_excluded_node_has_a_reason(world: ExtenderWorld) -> None:
    world.add("db-pd-0", on="a")
    world.add("db-pd-1")
    answer = world.ask("db-pd-1")
    assert (["b", "c"], {"a": "a has 1 pd pods, max pods per topology: 1"}) == (list(answer.kept), answer.refused)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_nodes_of_one_zone_are_one_topology() -> None:
    zones = (node("a", zone="x"), node("b", zone="x"), node("c", zone="y"), node("d"))
    world = ExtenderWorld(*zones)
    world.admin.patch(
        TIDB_CLUSTERS, "db", NAMESPACE, {"metadata": {"annotations": {"pingcap.com/ha-topology-key": "zone"}}}
    )
    world.add("db-pd-0", on="a")
    world.add("db-pd-1")
    answer = world.ask("db-pd-1")
    assert (["c"], "the node has no label zone") == (list(answer.kept), answer.refused["d"])


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_failed_member_frees_its_place(world: ExtenderWorld) -> None:
    world.set_status({"pd": {"failureMembers": {"db-pd-0": {"podName": "db-pd-0", "memberDeleted": True}}}})
    world.add("db-pd-0", on="a")
    world.add("db-pd-3")
    assert ["a", "b", "c"] == list(world.ask("db-pd-3").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_an_undesired_pod_frees_its_place_if_there_is_no_other(world: ExtenderWorld) -> None:
    world.add("db-pd-7", on="a")
    world.add("db-pd-0")
    answer = world.ask("db-pd-0")
    assert (["b", "c"], {"a": "a has 1 pd pods, max pods per topology: 1"}) == (list(answer.kept), answer.refused)
    assert ["a"] == list(world.ask("db-pd-0", "a").kept)


@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.parametrize("spec", [None, {"replicas": 0}, {"replicas": 1}], ids=["removed", "none", "one"])
@pytest.mark.rule("scheduler-deployment-2.5")
def test_undesired_pods_are_counted_while_they_exist(world: ExtenderWorld, component: str, spec: Json | None) -> None:
    world.admin.patch(TIDB_CLUSTERS, "db", NAMESPACE, {"spec": {component: spec}})
    world.add(f"db-{component}-0", component, on="a")
    world.add(f"db-{component}-1", component, on="b")
    world.add(f"db-{component}-2", component)
    assert ["c"] == list(world.ask(f"db-{component}-2").kept)
    assert [] == list(world.ask(f"db-{component}-2", "a", "b").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_avoids_the_node_of_a_store_whose_scale_in_was_refused() -> None:
    world = ExtenderWorld(tikv={"replicas": 2})
    world.add("db-tikv-0", "tikv")
    for ordinal, where in ((1, "a"), (2, "b")):
        world.add(f"db-tikv-{ordinal}", "tikv", on=where)
    assert ["c"] == list(world.ask("db-tikv-0").kept)
    assert ["a", "b"] == list(world.ask("db-tikv-0", "a", "b").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_leaving_pods_count_less_than_staying_ones(world: ExtenderWorld) -> None:
    for ordinal, where in ((1, "b"), (2, "c"), (3, "a"), (4, "b")):
        world.add(f"db-pd-{ordinal}", on=where)
    world.add("db-pd-0")
    assert ["a"] == list(world.ask("db-pd-0").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_pod_elsewhere_counts_for_tikv_alone_as_used() -> None:
    world = ExtenderWorld(*(node(each) for each in "abcd"), tikv={"replicas": 4})
    for ordinal, where in enumerate("bcd"):
        world.add(f"db-tikv-{ordinal}", "tikv", on=where)
    world.add("db-tikv-3", "tikv")
    assert ["b", "c"] == list(world.ask("db-tikv-3", "b", "c").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_bound_volume_determines_the_node(world: ExtenderWorld) -> None:
    world.add("db-pd-0", on="a")
    world.add("db-pd-1")
    assert not world.ask("db-pd-1", "a").kept
    world.set_phase("pd-db-pd-1", "Bound")
    assert ["a"] == list(world.ask("db-pd-1", "a").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_ignores_pods_on_a_missing_node(world: ExtenderWorld) -> None:
    world.add("db-pd-0", on="a")
    world.admin.delete(NODES, "a")
    world.add("db-pd-1")
    assert ["b", "c"] == list(world.ask("db-pd-1", "b", "c").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_pod_counts_where_its_volume_is_being_provisioned(world: ExtenderWorld) -> None:
    world.add("db-pd-0", metadata={"annotations": {"volume.kubernetes.io/selected-node": "a"}})
    world.add("db-pd-1")
    assert ["b", "c"] == list(world.ask("db-pd-1").kept)
    world.set_phase("pd-db-pd-0", "Bound")
    assert ["a", "b", "c"] == list(world.ask("db-pd-1").kept)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_names_a_missing_cluster(world: ExtenderWorld) -> None:
    world.add("db-pd-0")
    world.admin.delete(TIDB_CLUSTERS, "db", NAMESPACE)
    assert {"TidbCluster default/db does not exist"} == set(world.ask("db-pd-0").refused.values())


@pytest.mark.rule("scheduler-deployment-2.3")
def test_the_answer_names_a_silent_api_server() -> None:
    world = ExtenderWorld()
    world.add("db-pd-0")
    asked = world.admin.get(PODS, "db-pd-0", NAMESPACE)
    world.world.faults.api_down("extender")
    with pytest.raises(Unanswerable, match="cannot schedule default/db-pd-0: "):
        world.extender.filter(Question(asked, world.nodes))


@pytest.mark.rule("scheduler-deployment-2.7")
def test_a_tidb_returns_to_its_node(world: ExtenderWorld) -> None:
    world.set_status({"tidb": {"members": {"db-tidb-0": {"name": "db-tidb-0", "health": True, "node": "b"}}}})
    world.add_pod("db-tidb-0", "tidb")
    answer = world.ask("db-tidb-0")
    assert (["b"], "db-tidb-0 returns to its node 'b'") == (list(answer.kept), answer.refused["a"])


@pytest.mark.rule("scheduler-deployment-2.7")
def test_a_tidb_may_run_anywhere_if_its_node_is_no_candidate(world: ExtenderWorld) -> None:
    world.set_status({"tidb": {"members": {"db-tidb-0": {"name": "db-tidb-0", "health": True, "node": "x"}}}})
    world.add_pod("db-tidb-0", "tidb")
    assert ["a", "b", "c"] == list(world.ask("db-tidb-0").kept)
    told = ("db-tidb-0", "Normal", "StableScheduling", "cannot run db-tidb-0 on its previous node 'x'")
    assert [told] == world.events.events


@pytest.mark.rule("scheduler-deployment-2.7")
def test_a_new_tidb_causes_no_event(world: ExtenderWorld) -> None:
    world.add_pod("db-tidb-0", "tidb")
    assert ["a", "b", "c"] == list(world.ask("db-tidb-0").kept)
    assert [] == world.events.events


@pytest.mark.rule("scheduler-deployment-2.3")
def test_preemption_filters_nodes_and_takes_no_turn(world: ExtenderWorld) -> None:
    world.add("db-pd-0", on="a")
    world.add("db-pd-1")
    asked = world.admin.get(PODS, "db-pd-1", NAMESPACE)
    victims = {name: Victims(("uid",), 3) for name in "abc"}
    assert {name: Victims(("uid",), 3) for name in "bc"} == world.extender.preempt(Preemption(asked, victims))
    assert ([], []) == (world.marked(), world.events.events)


@pytest.mark.rule("scheduler-deployment-2.5")
def test_labels_of_nodes_come_with_the_question(world: ExtenderWorld) -> None:
    world.add("db-pd-0")
    whole = {"n": Object(body(node("n")))}
    asked = world.admin.get(PODS, "db-pd-0", NAMESPACE)
    assert ["n"] == list(world.extender.filter(Question(asked, ["n"], whole)).kept)
    assert HOST in whole["n"].metadata.labels
