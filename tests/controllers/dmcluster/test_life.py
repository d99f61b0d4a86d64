"""The life of a DMCluster in the sandbox (other-resources.md 6)."""

import pytest

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE, sample

DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"


@pytest.mark.rule("other-resources-6.7")
def test_workers_start_after_a_quorum_of_masters(world: DMWorld) -> None:
    world.apply(sample("dm"))
    world.run_until(lambda: world.exists(STATEFUL_SETS, f"{NAME}-dm-worker"))
    members = world.status("master")["members"]
    assert 2 <= sum(each["health"] for each in members.values())

    world.run_until_ready(NAME)
    assert ("Ready", "DM cluster is fully up and running") == (
        world.condition("Ready", NAME)["reason"],
        world.condition("Ready", NAME)["message"],
    )
    assert 3 == len(world.masters.members)
    assert [f"{NAME}-dm-worker-{ordinal}" for ordinal in (0, 1)] == [each.name for each in world.workers()]
    assert {"free"} == {each["stage"] for each in world.status("worker")["members"].values()}
    assert world.leader == world.status("master")["leader"]["name"]


@pytest.mark.rule("O8")
def test_a_wait_names_the_pods_that_the_masters_do_not_list(dm: DMWorld) -> None:
    said = []
    for pod in (f"{NAME}-dm-master-1", f"{NAME}-dm-worker-1"):
        target, lie = f"{NAMESPACE}/{NAME}-dm-master-*", "dm-member-is-missing"
        heal = dm.world.faults.server_lies(target, lie, pod)
        dm.run(45.0)
        said.append(dm.condition("Progressing", NAME)["message"])
        heal()
        dm.run_until_ready(NAME)
    masters, workers = said
    assert f"2 of 3 masters are healthy; waiting for {NAME}-dm-master-1" in masters
    assert f"waiting for {NAME}-dm-worker-1 to register with the masters" in workers


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_masters_scaled_out_before_their_first_start_bootstrap_together(world: DMWorld) -> None:
    """No master may begin until all desired ones have asked Discovery."""
    cluster = sample("dm")
    cluster["spec"]["master"]["nodeSelector"] = {"no": "such-node"}
    world.apply(cluster)
    world.run(20.0)
    world.set(master={"replicas": 5})
    world.run(20.0)
    assert 5 == world.size("dm-master")
    world.set(master={"nodeSelector": None})
    world.run_until_ready(NAME, within=120.0)
    assert 5 == len(world.masters.members)


@pytest.mark.slow
@pytest.mark.rule("I29")
def test_five_resyncs_of_a_ready_cluster_cost_nothing(dm: DMWorld) -> None:
    dm.run(70.0)
    dm.forget()
    dm.run(150.0)

    assert [] == dm.writes()
    assert [] == dm.reads()
    assert [] == dm.operator.dataplane.writes()
    assert 3 * 5 == len(dm.operator.dataplane.requests)


@pytest.mark.slow
@pytest.mark.rule("I31")
def test_a_new_process_finds_nothing_to_do(dm: DMWorld) -> None:
    dm.run(70.0)
    dm.restart()
    dm.forget()
    dm.run(70.0)
    assert [] == dm.writes()


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.7")
def test_masters_are_restarted_from_the_top_and_the_leader_hands_over(dm: DMWorld) -> None:
    dm.lead(2)
    dm.set(version="v8.5.3")
    alive: list[int] = []

    def is_done() -> bool:
        alive.append(sum(each.healthy for each in dm.masters.members.values()))
        return _is_at(dm, "v8.5.3")

    dm.run_until(is_done, 120)
    assert 2 <= min(alive)
    assert "leader/1" in dm.asked("PUT")
    assert {"8.5.3"} == {each.version for each in dm.masters.members.values()}
    assert 3 == dm.spec_of("dm-master")["updateStrategy"]["rollingUpdate"]["partition"]


def _is_at(dm: DMWorld, version: str) -> bool:
    pods = [each for each in dm.every(PODS) if "-dm-" in each["metadata"]["name"] and "discovery" not in str(each)]
    images = {each["spec"]["containers"][0]["image"] for each in pods}
    return {f"pingcap/dm:{version}"} == images and dm.is_ready(NAME) and dm.reason(NAME) == "Done"


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.7")
def test_a_leader_that_is_scaled_in_is_evicted_then_removed_then_its_claim_is_marked(dm: DMWorld) -> None:
    dm.lead(2)
    dm.forget()
    dm.set(master={"replicas": 2})
    dm.run_until(lambda: dm.size("dm-master") == 2)

    assert ["leader/1"] == list(dict.fromkeys(dm.asked("PUT")))
    assert [f"members/master/{NAME}-dm-master-2"] == dm.asked("DELETE")
    dm.run_until_ready(NAME)
    assert {f"{NAME}-dm-master-0", f"{NAME}-dm-master-1"} == {each.name for each in dm.masters.members.values()}
    claim = dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-master-{NAME}-dm-master-2")
    assert DEFERRED in claim["metadata"]["annotations"]


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.7")
def test_a_scale_out_deletes_the_one_claim_that_is_in_its_way(dm: DMWorld) -> None:
    dm.set(master={"replicas": 2}, worker={"replicas": 1})
    dm.run_until_ready(NAME, 120)
    left = dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-worker-{NAME}-dm-worker-1")["metadata"]["uid"]
    masters = dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-master-{NAME}-dm-master-2")["metadata"]["uid"]

    dm.set(master={"replicas": 3})
    dm.run_until_ready(NAME, 120)
    assert masters != dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-master-{NAME}-dm-master-2")["metadata"]["uid"]
    assert left == dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-worker-{NAME}-dm-worker-1")["metadata"]["uid"]


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.8")
def test_a_worker_with_a_source_leaves_when_another_is_free_to_take_it(dm: DMWorld) -> None:
    bound = {dm.create_source("orders"), dm.create_source("stock")}
    assert 2 == len(bound)
    dm.set(worker={"replicas": 1})
    dm.run_until(lambda: dm.reason(NAME) == "DMWorkerBound")
    dm.run(30.0)
    assert 2 == dm.size("dm-worker")

    dm.set(worker={"replicas": 3})
    dm.run_until_ready(NAME)
    free = next(each.name for each in dm.workers() if each.stage == "free")
    assert f"{NAME}-dm-worker-2" == free
    dm.set(worker={"replicas": 2})
    dm.run_until_ready(NAME)
    assert {"orders", "stock"} == {each.source for each in dm.workers()}


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.8")
def test_a_removed_worker_is_deleted_from_dm_once_it_is_offline(dm: DMWorld) -> None:
    dm.forget()
    dm.set(worker={"replicas": 1})
    dm.run_until_ready(NAME)
    assert [f"members/worker/{NAME}-dm-worker-1"] == dm.asked("DELETE")
    assert [f"{NAME}-dm-worker-0"] == [each.name for each in dm.workers()]


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.1")
def test_the_last_master_cannot_be_scaled_in(dm: DMWorld) -> None:
    dm.set(master={"replicas": 0})
    dm.run_until(lambda: dm.reason(NAME) == "FailedScaleIn")
    dm.run(30.0)
    assert 3 == dm.size("dm-master")


@pytest.mark.slow
@pytest.mark.rule("other-resources-6")
def test_workers_are_suspended_before_masters_and_all_resume_on_their_volumes(dm: DMWorld) -> None:
    claims = {each["metadata"]["uid"] for each in dm.every(PERSISTENT_VOLUME_CLAIMS)}
    ids = set(dm.masters.members)
    dm.set(suspendAction={"suspendStatefulSet": True})
    dm.run_until(lambda: not dm.exists(STATEFUL_SETS, f"{NAME}-dm-worker"))
    assert dm.exists(STATEFUL_SETS, f"{NAME}-dm-master")
    dm.run_until(lambda: not dm.exists(STATEFUL_SETS, f"{NAME}-dm-master"))
    dm.run_until(lambda: {} == dm.status("master").get("members", {}))

    dm.set(suspendAction=None)
    dm.run_until_ready(NAME)
    assert claims == {each["metadata"]["uid"] for each in dm.every(PERSISTENT_VOLUME_CLAIMS)}
    assert ids == set(dm.masters.members)


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.3")
def test_deletion_leaves_the_claims(dm: DMWorld) -> None:
    claims = {each["metadata"]["name"] for each in dm.every(PERSISTENT_VOLUME_CLAIMS)}
    dm.admin.delete(DM_CLUSTERS, NAME, NAMESPACE)
    dm.run(30.0)
    for resource in (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, PODS):
        assert [] == [each["metadata"]["name"] for each in dm.every(resource) if NAME in each["metadata"]["name"]]
    assert claims == {each["metadata"]["name"] for each in dm.every(PERSISTENT_VOLUME_CLAIMS)}


@pytest.mark.slow
@pytest.mark.rule("other-resources-6.3")
def test_a_volume_grows_and_the_next_pod_gets_one_as_large(dm: DMWorld) -> None:
    dm.set(worker={"storageSize": "20Gi"})
    dm.run_until_ready(NAME)
    for ordinal in (0, 1):
        claim = dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-worker-{NAME}-dm-worker-{ordinal}")
        assert "20Gi" == claim["spec"]["resources"]["requests"]["storage"]
    (template,) = dm.spec_of("dm-worker")["volumeClaimTemplates"]
    assert "20Gi" == template["spec"]["resources"]["requests"]["storage"]


@pytest.mark.slow
@pytest.mark.parametrize("field", ["discovery", "tlsCluster", "affinity", "dnsConfig", "suspendAction"])
def test_sub_objects_may_be_empty(world: DMWorld, field: str) -> None:
    cluster = sample("dm")
    empty: Json = {"service": {}, "suspendAction": {}, "affinity": {}, "requests": {}, "readinessProbe": {}}
    cluster["spec"] |= {field: {}, "master": {"replicas": 1} | empty}
    world.apply(cluster)
    world.run_until_ready(NAME)


@pytest.mark.slow
def test_optional_parts_may_be_absent(world: DMWorld) -> None:
    world.apply(sample("dm") | {"spec": {"version": "v8.5.2", "master": {"replicas": 1}}})
    world.run_until_ready(NAME)
    assert [f"{NAME}-dm-master"] == [each["metadata"]["name"] for each in world.every(STATEFUL_SETS)]


@pytest.mark.rule("other-resources-3.5")
def test_an_old_version_and_missing_masters_are_named(world: DMWorld) -> None:
    cluster = sample("dm")
    cluster["spec"] |= {"version": "v1.0.7"}
    del cluster["spec"]["master"]
    world.apply(cluster)
    world.run(5.0)
    message = world.condition("Progressing", NAME)["message"]
    assert "spec.master" in message
    assert "spec.version" in message
    assert [] == world.every(STATEFUL_SETS)
