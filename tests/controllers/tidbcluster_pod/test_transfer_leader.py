"""`pd-transfer-leader` and `tidb-graceful-shutdown` (lifecycle.md 13)."""

import pytest

from sandbox.dataplane.faults import Fault, Trouble
from tests.controllers.tidbcluster_pod.commanding import Commanded
from tests.operator_world import NAMESPACE

pytestmark = pytest.mark.slow


def leader(world: Commanded) -> str:
    return world.pd.leader().name


@pytest.mark.rule("I12")
def test_the_pd_leader_is_restarted_after_another_one_leads(world: Commanded) -> None:
    pod = leader(world)
    before = world.uid(pod)
    world.tell(pod, pd_transfer_leader="delete-pod")
    world.run_until(lambda: bool(world.deletions()))
    assert ([f"pods {pod}"], False) == (world.deletions(), leader(world) == pod)
    world.run_until(lambda: world.is_back(pod, before))
    world.run_until_ready()
    assert (1, [f"pods {pod}"]) == (len(world.asked_of_pd()), world.deletions())
    assert ["TransferringPDLeader", "PodRestarted"] == world.reasons()[:2]


@pytest.mark.rule("lifecycle-13")
def test_the_leader_stays_away_while_the_pod_says_so(world: Commanded) -> None:
    pod = leader(world)
    world.tell(pod, pd_transfer_leader="none")
    world.run_until(lambda: leader(world) != pod)
    world.run(5.0)
    world.pd.transfer_leader(pod)
    world.run(40.0)
    assert (False, []) == (leader(world) == pod, world.deletions())
    assert "LeaderTransferred" in world.reasons()


@pytest.mark.rule("lifecycle-13")
def test_a_failed_transfer_is_reported_and_retried(world: Commanded) -> None:
    pod = leader(world)
    refused = Fault(Trouble.ANSWER, method="POST", path="/pd/api/v1/leader/transfer/*", body=b'"no"')
    heal = world.world.faults.network_fault(refused)
    world.tell(pod, pd_transfer_leader="delete-pod")
    world.run(60.0)
    (event,) = world.events("ApiError")
    assert (True, [], "Warning") == (pod == leader(world), world.deletions(), event["type"])

    heal()
    world.run_until(lambda: world.deletions() == [f"pods {pod}"], within=120.0)
    assert pod != leader(world)


@pytest.mark.rule("I12")
def test_pods_with_the_same_command_do_not_hand_over_to_each_other(world: Commanded) -> None:
    before = {pod: world.uid(pod) for pod in world.ready("pd")}
    for pod in before:
        world.tell(pod, pd_transfer_leader="delete-pod")
    world.run_until(lambda: all(world.is_back(pod, uid) for pod, uid in before.items()), within=300.0)
    world.run_until_ready()
    assert ([f"pods {pod}" for pod in sorted(before)], True) == (world.deletions(), len(world.asked_of_pd()) <= 3)

    world.forget()
    for pod in before:
        world.tell(pod, pd_transfer_leader="none")
    world.run(100.0)
    assert ([], True) == (world.asked_of_pd(), "NoSuccessor" in world.reasons())


@pytest.mark.rule("I9")
def test_no_pd_is_restarted_while_another_one_is_ill(world: Commanded) -> None:
    pod = leader(world)
    ill = next(name for name in ("basic-pd-0", "basic-pd-1") if name != pod)
    world.world.data_plane.hang(NAMESPACE, ill)
    world.tell(pod, pd_transfer_leader="delete-pod")
    world.run_until(lambda: "PDQuorum" in world.reasons(), within=120.0)
    world.run(60.0)
    assert [] == world.deletions()


@pytest.mark.rule("I9")
def test_the_wait_for_a_quorum_names_the_member_that_an_administrator_has_removed(world: Commanded) -> None:
    pod = leader(world)
    removed = next(name for name in ("basic-pd-0", "basic-pd-1") if name != pod)
    world.world.faults.pd_ctl(f"{NAMESPACE}/basic", "DELETE", f"members/name/{removed}")
    world.run(40.0)
    world.tell(pod, pd_transfer_leader="delete-pod")
    world.run_until(lambda: "PDQuorum" in world.reasons(), within=120.0)
    message = world.condition("Progressing")["message"]
    assert "was removed from PD" in message
    assert f"kubectl annotate pod {removed} tidb.pingcap.com/replace-volume=true" in message
    assert [] == world.deletions()


@pytest.mark.parametrize("time", ["2020-01-01T00:00:00Z", "soon"])
@pytest.mark.rule("lifecycle-13")
def test_an_expired_transfer_does_not_happen(world: Commanded, time: str) -> None:
    pod = leader(world)
    world.tell(pod, pd_transfer_leader="none", pd_evict_leader_expiration_time=time)
    world.run_until(lambda: not world.told(pod))
    world.run(5.0)
    assert pod == leader(world)


@pytest.mark.rule("lifecycle-13")
def test_a_tidb_server_is_restarted_when_all_others_serve(world: Commanded) -> None:
    before = {pod: world.uid(pod) for pod in ("basic-tidb-0", "basic-tidb-1")}
    for pod in before:
        world.tell(pod, tidb_graceful_shutdown="delete-pod")
    fewest = 2

    def all_back() -> bool:
        nonlocal fewest
        fewest = min(fewest, len(world.ready("tidb")))
        return all(world.is_back(pod, uid) for pod, uid in before.items())

    world.run_until(all_back, within=180.0)
    assert (1, {f"pods {pod}" for pod in before}) == (fewest, set(world.deletions()))


@pytest.mark.rule("lifecycle-13")
def test_a_tidb_server_that_is_to_stay_stays(world: Commanded) -> None:
    world.tell("basic-tidb-0", tidb_graceful_shutdown="none")
    world.run(40.0)
    assert ([], []) == (world.deletions(), world.reasons())
