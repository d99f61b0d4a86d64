"""`evict-leader`: leaders move away from a TiKV pod, for as long as it says so (lifecycle.md 13)."""

import pytest

from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from tests.controllers.tidbcluster_pod.commanding import Commanded
from tests.operator_world import NAMESPACE, sample

pytestmark = pytest.mark.slow

POD = "basic-tikv-1"


@pytest.mark.rule("lifecycle-13")
def test_a_pod_is_restarted_without_leaders_which_return_when_it_is_ready(world: Commanded) -> None:
    store, before = world.store(POD), world.uid(POD)
    assert store.leader_count > 0
    world.tell(POD, evict_leader="delete-pod")
    world.run_until(lambda: world.deletions() == [f"pods {POD}"])
    assert ({POD}, {store.id}, 0) == (
        set(world.evictions),
        world.evicting,
        world.store(POD).leader_count,
    )
    assert ("delete-pod", True) == (world.evictions[POD]["value"], bool(world.evictions[POD]["beginTime"]))

    world.run_until(lambda: world.is_back(POD, before) and not world.evictions)
    assert set() == world.evicting
    world.run(60.0)
    assert world.store(POD).leader_count > 0
    assert [f"pods {POD}"] == world.deletions()
    assert ["EvictingLeaders", "PodRestarted", "LeaderEvictionEnded"] == world.reasons()


@pytest.mark.parametrize("command", ["evict_leader", "evict_leader_for_resize"])
@pytest.mark.rule("lifecycle-13")
def test_leaders_stay_away_until_the_annotation_is_removed(world: Commanded, command: str) -> None:
    world.tell(POD, **{command: "none"})
    world.run_until(lambda: world.store(POD).leader_count == 0)
    created = world.get(PODS, POD)["metadata"]["creationTimestamp"]
    assert {POD: {"podCreateTime": created, "value": "none"}} == {
        name: {key: entry[key] for key in ("podCreateTime", "value")} for name, entry in world.evictions.items()
    }
    world.run(30.0)
    world.forget()
    world.run(150.0)
    assert ([], [], []) == (world.writes(), world.reads(), world.asked_of_pd())

    world.tell(POD, **{command: None})
    world.run_until(lambda: not world.evictions, within=2.0)
    assert set() == world.evicting
    world.run_until_ready()


@pytest.mark.rule("F49", "#5302")
def test_volumes_grow_while_leaders_are_kept_away(world: Commanded) -> None:
    world.tell(POD, evict_leader="none")
    world.run_until(lambda: world.store(POD).leader_count == 0)
    assert (True, "Done") == (world.is_ready(), world.reason())
    world.change(tikv={"requests": {"storage": "2Gi"}})
    grown = [f"tikv-basic-tikv-{ordinal}" for ordinal in range(4)]
    world.run_until(lambda: {"2Gi"} == {_capacity(world, claim) for claim in grown})
    world.run(10.0)
    world.run_until_ready()
    assert ({world.store(POD).id}, {POD}) == (world.evicting, set(world.evictions))


def _capacity(world: Commanded, claim: str) -> str:
    return str(world.get(PERSISTENT_VOLUME_CLAIMS, claim)["status"]["capacity"]["storage"])


@pytest.mark.rule("F17")
def test_a_scheduler_that_another_client_removed_is_recreated(world: Commanded) -> None:
    world.tell(POD, evict_leader="none")
    world.run_until(lambda: bool(world.evicting))
    world.pd.end_evict_leaders(world.store(POD).id)
    world.run(35.0)
    assert {world.store(POD).id} == world.evicting


@pytest.mark.rule("I31")
def test_a_new_process_continues_where_the_previous_one_ended(world: Commanded) -> None:
    before = world.uid(POD)
    world.tell(POD, evict_leader="delete-pod")
    world.run_until(lambda: bool(world.evictions))
    world.restart()
    world.run_until(lambda: world.deletions() == [f"pods {POD}"])
    world.restart()
    world.run_until(lambda: world.is_back(POD, before) and not world.evictions)
    assert (set(), [f"pods {POD}"]) == (world.evicting, world.deletions())


@pytest.mark.parametrize("time", ["2020-01-01T00:00:00Z", "tomorrow"])
@pytest.mark.rule("lifecycle-13")
def test_a_time_that_is_over_or_unreadable_ends_the_eviction(world: Commanded, time: str) -> None:
    world.tell(POD, evict_leader="none")
    world.run_until(lambda: bool(world.evicting))
    world.tell(POD, tikv_evict_leader_expiration_time=time)
    world.run_until(lambda: not world.evictions)
    assert (set(), set()) == (world.told(POD), world.evicting)


@pytest.mark.rule("lifecycle-13")
def test_a_time_to_come_is_waited_for_and_no_longer(world: Commanded) -> None:
    end = world.clock.wall().timestamp() + 100.0
    time = world.clock.wall().fromtimestamp(end, tz=world.clock.wall().tzinfo).isoformat()
    world.tell(POD, evict_leader="none", tikv_evict_leader_expiration_time=time)
    world.run(90.0)
    assert {POD} == set(world.evictions)
    # not until the next resync of the pods
    world.run(10.5)
    assert ({}, set()) == (world.evictions, world.told(POD))


@pytest.mark.rule("I10")
def test_pods_that_are_to_be_restarted_take_turns(world: Commanded) -> None:
    pods = ["basic-tikv-0", "basic-tikv-2", "basic-tikv-3"]
    before = {pod: world.uid(pod) for pod in pods}
    for pod in pods:
        world.tell(pod, evict_leader="delete-pod")
    fewest, most = 4, 0

    def all_back() -> bool:
        nonlocal fewest, most
        fewest, most = min(fewest, len(world.ready("tikv"))), max(most, len(world.evicting))
        return all(world.is_back(pod, before[pod]) for pod in pods) and not world.evictions

    world.run_until(all_back, within=600.0)
    assert (3, 1, set()) == (fewest, most, world.evicting)
    assert sorted(f"pods {pod}" for pod in pods) == sorted(world.deletions())


@pytest.mark.rule("lifecycle-13")
def test_no_eviction_begins_while_another_store_is_not_up(world: Commanded) -> None:
    world.world.data_plane.hang(NAMESPACE, "basic-tikv-3")
    world.run_until(lambda: world.store("basic-tikv-3").state_name != "Up", within=120.0)
    world.tell(POD, evict_leader="delete-pod")
    world.run(100.0)
    assert ([], {}, []) == (world.asked_of_pd(), world.evictions, world.deletions())
    assert "StoresNotUp" in world.reasons()

    world.world.data_plane.hang(NAMESPACE, "basic-tikv-3", hung=False)
    world.run_until(lambda: world.deletions() == [f"pods {POD}"], within=180.0)


@pytest.mark.rule("F13")
def test_no_pod_is_restarted_while_another_store_does_not_answer(world: Commanded) -> None:
    """PD calls it Up for 20 s more, and Kubernetes its pod Ready."""
    for fault in (
        Fault(Trouble.BLACK_HOLE, f"{NAMESPACE}/basic-tikv-3"),
        Fault(Trouble.BLACK_HOLE, origin=f"{NAMESPACE}/basic-tikv-3"),
    ):
        world.world.faults.network_fault(fault)
    world.tell(POD, evict_leader="delete-pod")
    world.run(60.0)
    assert ([], "Disconnected") == (world.deletions(), world.store("basic-tikv-3").state_name)

    world.world.faults.heal()
    world.run_until(lambda: world.deletions() == [f"pods {POD}"], within=180.0)


@pytest.mark.rule("I10")
def test_a_rolling_restart_and_a_command_never_take_two_pods_at_a_time(world: Commanded) -> None:
    before = {pod: world.uid(pod) for pod in world.ready("tikv")}
    world.tell(POD, evict_leader="delete-pod")
    world.change(tikv={"annotations": {"tidb.pingcap.com/restartedAt": "now"}})
    fewest = 4

    def settled() -> bool:
        nonlocal fewest
        fewest = min(fewest, len(world.ready("tikv")))
        return all(world.is_back(pod, uid) for pod, uid in before.items()) and world.reason() == "Done"

    world.run_until(settled, within=900.0)
    assert (3, set()) == (fewest, world.evicting)


@pytest.mark.rule("lifecycle-16")
def test_the_entry_of_a_pod_that_was_scaled_in_is_removed(world: Commanded) -> None:
    world.tell("basic-tikv-3", evict_leader="none")
    world.run_until(lambda: bool(world.evicting))
    world.change(tikv={"replicas": 3})
    world.run_until(lambda: not world.evictions and world.replicas("tikv") == 3, within=300.0)
    assert set() == world.evicting


@pytest.mark.rule("lifecycle-13")
def test_asks_seldom_for_an_eviction_that_pd_does_not_list_and_restarts_nothing(world: Commanded) -> None:
    heal = world.world.faults.pd_lies("default/basic", "no-leaders-are-evicted", "all")
    world.tell(POD, evict_leader="none")
    world.run_until(lambda: world.store(POD).leader_count == 0)
    world.forget()
    world.run(95.0)
    assert ([], {"POST schedulers"}) == (world.deletions(), set(world.asked_of_pd()))
    assert len(world.asked_of_pd()) <= 10
    heal()


@pytest.mark.rule("lifecycle-13")
def test_an_unknown_value_is_reported_once_and_does_nothing(world: Commanded) -> None:
    world.tell(POD, evict_leader="yes")
    world.run(95.0)
    (event,) = world.events("UnknownCommand")
    assert (1, ([], {})) == (event["count"], (world.asked_of_pd(), world.evictions))
    assert "'yes' is not one of delete-pod, none" in event["message"]


@pytest.mark.parametrize("trouble", ["paused", "invalid"])
@pytest.mark.rule("I26", "I28")
def test_pods_of_a_cluster_that_is_paused_or_not_valid_are_left_alone(world: Commanded, trouble: str) -> None:
    world.change(**({"paused": True} if trouble == "paused" else {"tikv": {"evictLeaderTimeout": "never"}}))
    world.run(1.0)
    world.tell(POD, evict_leader="delete-pod")
    world.run(60.0)
    assert ([], {}, []) == (world.asked_of_pd(), world.evictions, world.deletions())

    world.change(paused=False, tikv={"evictLeaderTimeout": "1m"})
    world.run_until(lambda: world.deletions() == [f"pods {POD}"])


@pytest.mark.rule("I7")
def test_does_nothing_while_pd_answers_for_another_cluster(world: Commanded) -> None:
    foreign = Fault(Trouble.ANSWER, "*/basic-pd-*", path="/pd/api/v1/cluster", status=200, body=b'{"id": 42}')
    heal = world.world.faults.network_fault(foreign)
    world.tell(POD, evict_leader="delete-pod")
    world.run(60.0)
    assert ([], {}, []) == (world.asked_of_pd(), world.evictions, world.deletions())
    assert "ForeignPD" in world.reasons()

    heal()
    world.run_until(lambda: world.deletions() == [f"pods {POD}"])


@pytest.mark.rule("F19")
def test_the_only_store_is_restarted_without_an_eviction(clock: FakeClock) -> None:
    world = Commanded(clock=clock)
    world.apply(sample("basic"))
    world.run_until_ready()
    world.forget()
    world.tell("basic-tikv-0", evict_leader="delete-pod")
    world.tell("basic-pd-0", pd_transfer_leader="delete-pod")
    world.run_until(lambda: len(world.deletions()) == 2)
    assert (["pods basic-pd-0", "pods basic-tikv-0"], []) == (sorted(world.deletions()), world.asked_of_pd())
    world.run_until_ready()
    world.stop()


@pytest.mark.rule("R07")
def test_a_pod_that_was_recreated_unseen_is_not_deleted(world: Commanded) -> None:
    thaw = world.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    world.tell(POD, evict_leader="delete-pod")
    world.run_until(lambda: bool(world.evicting))
    for cache in world.operator.caches.values():
        cache.blind = True
    world.admin.delete(PODS, POD, NAMESPACE)
    thaw()
    world.run(60.0)
    assert [] == world.deletions()


@pytest.mark.rule("lifecycle-2.4")
def test_other_syncs_do_not_touch_the_entries(world: Commanded) -> None:
    world.tell(POD, evict_leader="none")
    world.run_until(lambda: bool(world.evictions))
    before = world.evictions
    world.change(tikv={"replicas": 5})
    world.run_until(lambda: world.reason() == "Done" and world.replicas("tikv") == 5, within=120.0)
    assert before == world.get(TIDB_CLUSTERS, "basic")["status"]["tikv"]["evictLeader"]
