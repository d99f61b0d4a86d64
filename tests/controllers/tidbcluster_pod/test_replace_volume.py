"""`replace-volume`: the pod's member or store leaves first, then its volumes are replaced (lifecycle.md 13)."""

import pytest

from kube.resources import PODS
from member.labels import MEMBER_ID
from ports.transport import Request
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from tests.controllers.tidbcluster_pod.commanding import Commanded
from tests.operator_world import NAMESPACE, OPERATOR

pytestmark = pytest.mark.slow


def replaced(world: Commanded, pod: str, *claims: str) -> None:
    """Replace the volumes of a pod, and check that each is a new one."""
    uid, before = world.uid(pod), [world.claim(claim) for claim in claims]
    world.tell(pod, replace_volume="true")
    world.run_until(lambda: world.is_back(pod, uid), within=600.0)
    world.run_until_ready(within=300.0)
    assert set() == {world.claim(claim) for claim in claims} & set(before)
    assert [*(f"persistentvolumeclaims {claim}" for claim in claims), f"pods {pod}"] == world.deletions()


@pytest.mark.rule("I2")
def test_a_tikv_pod_gets_a_new_volume_when_its_store_is_tombstone(world: Commanded) -> None:
    pod = "basic-tikv-1"
    store = world.store(pod)
    replaced(world, pod, f"tikv-{pod}")
    assert ("Tombstone", [f"DELETE store/{store.id}"]) == (
        world.pd.store(store.id).state_name,
        world.asked_of_pd(),
    )
    assert ("Up", True) == (world.store(pod).state_name, world.store(pod).id != store.id)


@pytest.mark.parametrize("first", ["replacement", "eviction"])
@pytest.mark.rule("F46", "#5301")
def test_an_eviction_requested_meanwhile_does_not_delay_a_replacement(world: Commanded, first: str) -> None:
    pod = "basic-tikv-1"
    store, uid, claim = world.store(pod), world.uid(pod), world.claim(f"tikv-{pod}")
    if first == "eviction":
        world.tell(pod, evict_leader="none")
        world.run_until(lambda: bool(world.evicting))
    world.tell(pod, replace_volume="true")
    world.run_until(lambda: world.pd.store(store.id).state_name == "Offline")
    world.tell(pod, evict_leader="none")
    world.run_until(lambda: world.is_back(pod, uid), within=600.0)
    world.run_until_ready(within=300.0)
    assert ("Tombstone", True) == (world.pd.store(store.id).state_name, claim != world.claim(f"tikv-{pod}"))
    assert (set(), {}) == (world.evicting, world.evictions)


@pytest.mark.rule("I5")
def test_a_store_without_which_there_are_too_few_stays(world: Commanded) -> None:
    world.change(tikv={"replicas": 3})
    world.run_until(lambda: world.replicas("tikv") == 3 and world.reason() == "Done", within=300.0)
    world.forget()
    world.tell("basic-tikv-1", replace_volume="true")
    world.run(100.0)
    assert ([], []) == (world.asked_of_pd(), world.deletions())
    (event,) = world.events("TooFewStores")
    too_few = "2 TiKV stores would be Up, but PD keeps 3 replicas of each region; raise spec.tikv.replicas first"
    assert too_few in event["message"]

    assert f"basic: TooFewStores: command of pod basic-tikv-1: {event['message']}" == world.progressing
    world.tell("basic-tikv-1", replace_volume=None)
    world.run(5.0)
    assert "Done" == world.reason()


@pytest.mark.rule("lifecycle-8.5")
def test_a_store_whose_data_does_not_fit_on_the_others_stays(world: Commanded) -> None:
    heals = [
        world.world.faults.store_low_space(f"{NAMESPACE}/basic", world.store(f"basic-tikv-{ordinal}").id)
        for ordinal in (0, 2, 3)
    ]
    world.tell("basic-tikv-1", replace_volume="true")
    world.run(100.0)
    assert ([], []) == (world.asked_of_pd(), world.deletions())
    (event,) = world.events("StoresLackRoom")
    assert "of data would have to move, but the stores that stay have room for 0.0 MiB" in event["message"]

    uid = world.uid("basic-tikv-1")
    for heal in heals:
        heal()
    world.run_until(lambda: world.is_back("basic-tikv-1", uid), within=600.0)


@pytest.mark.parametrize("resource", ["pods", "persistentvolumeclaims"])
@pytest.mark.rule("R22")
def test_names_the_obstacle_to_a_step_until_it_is_gone(world: Commanded, resource: str) -> None:
    """Nothing else shows it: an event is gone after an hour, and everything that the spec requests serves."""
    pod, uid = "basic-tikv-1", world.uid("basic-tikv-1")
    why = 'admission webhook "policy.example.com" denied the request'
    allow = world.world.faults.api_fault(Fault(refusal=Refusal(403, "Forbidden", why)), OPERATOR, "delete", resource)
    world.tell(pod, replace_volume="true")
    world.run_until(lambda: world.reason() == "Forbidden", within=600.0)
    world.run(60.0)
    assert world.progressing.startswith(f"basic: Forbidden: command of pod {pod}: DELETE ")
    assert world.progressing.endswith(why)

    allow()
    world.run_until(lambda: world.is_back(pod, uid), within=600.0)
    world.run_until(lambda: world.reason() == "Done", within=300.0)


@pytest.mark.rule("F50", "#5393", "I2", "I12")
def test_the_pd_leader_leaves_before_it_gets_a_new_volume(world: Commanded) -> None:
    pod = world.pd.leader().name
    member = next(each for each in world.pd.members().members if each.name == pod)
    replaced(world, pod, f"pd-{pod}")
    transfer, delete = world.asked_of_pd()
    assert (True, f"DELETE members/id/{member.id}") == (transfer.startswith("POST leader/transfer/"), delete)
    now = {each.name: each.id for each in world.pd.members().members}
    assert (3, True) == (len(now), now[pod] != member.id)
    assert str(now[pod]) == world.get(PODS, pod)["metadata"]["labels"][MEMBER_ID]


@pytest.mark.rule("lifecycle-13")
def test_a_tidb_server_gets_new_volumes(world: Commanded) -> None:
    replaced(world, "basic-tidb-1", "tidb-tmp-basic-tidb-1")


@pytest.mark.rule("I31")
def test_a_new_process_ends_a_replacement_at_every_stage(world: Commanded) -> None:
    pod = "basic-tikv-1"
    uid = world.uid(pod)
    world.tell(pod, replace_volume="true")
    for reached in (world.asked_of_pd, world.deletions):
        world.run_until(lambda reached=reached: bool(reached()), within=600.0)  # type: ignore[misc]
        world.restart()
    world.run_until(lambda: world.is_back(pod, uid), within=600.0)
    world.run_until_ready(within=300.0)
    assert [f"persistentvolumeclaims tikv-{pod}", f"pods {pod}"] == world.deletions()


@pytest.mark.rule("I10")
def test_no_member_leaves_for_a_new_volume_while_another_pod_is_not_ready(world: Commanded) -> None:
    heal = world.world.faults.pod_unready("default/basic-pd-2")
    world.run_until(lambda: "basic-pd-2" not in world.ready())
    before, claim = world.uid("basic-pd-1"), world.claim("pd-basic-pd-1")
    world.tell("basic-pd-1", replace_volume="true")
    world.run(30.0)
    assert (before, claim, []) == (world.uid("basic-pd-1"), world.claim("pd-basic-pd-1"), world.asked_of_pd())
    heal()
    world.run_until(lambda: world.is_back("basic-pd-1", before))
    assert claim != world.claim("pd-basic-pd-1")


@pytest.mark.rule("lifecycle-13")
def test_a_store_that_pd_no_longer_knows_counts_as_gone(world: Commanded) -> None:
    pod = "basic-tikv-1"
    store, uid = world.store(pod), world.uid(pod)
    world.tell(pod, replace_volume="true")
    world.run_until(lambda: world.asked_of_pd() == [f"DELETE store/{store.id}"])
    world.change(paused=True)
    world.run_until(lambda: world.pd.store(store.id).state_name == "Tombstone", within=300.0)
    gone = Request("DELETE", "http://basic-pd.default:2379/pd/api/v1/stores/remove-tombstone")
    assert 200 == world.world.data_plane_transport().request(gone).status
    world.change(paused=None)
    world.run_until(lambda: world.is_back(pod, uid), within=120.0)
    world.run_until_ready(within=300.0)
    assert [f"persistentvolumeclaims tikv-{pod}", f"pods {pod}"] == world.deletions()


@pytest.mark.rule("lifecycle-13", "I31")
def test_a_pod_that_was_recreated_after_its_store_left_gets_its_volume(world: Commanded) -> None:
    """It no longer has a store to be labelled with; its claim shows which one it had."""
    pod = "basic-tikv-1"
    store, claim = world.store(pod), world.claim(f"tikv-{pod}")
    world.tell(pod, replace_volume="true")
    world.run_until(lambda: world.asked_of_pd() == [f"DELETE store/{store.id}"])
    world.change(paused=True)
    world.run_until(lambda: world.pd.store(store.id).state_name == "Tombstone", within=300.0)
    world.admin.delete(PODS, pod, "default")
    world.run(5.0)
    world.change(paused=None)
    world.run_until(lambda: world.claim(f"tikv-{pod}") != claim, within=120.0)
    world.run_until_ready(within=300.0)


@pytest.mark.rule("lifecycle-13")
def test_a_value_other_than_true_replaces_nothing(world: Commanded) -> None:
    world.tell("basic-tikv-1", replace_volume="yes")
    world.run(40.0)
    assert ([], ["UnknownCommand"], []) == (world.asked_of_pd(), world.reasons(), world.deletions())
