"""Masters and workers that are lost, alone and together with edits (other-resources.md 6.7, 6.8, lifecycle.md 9)."""

from collections.abc import Callable

import pytest

from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from sandbox.dataplane.dm.book import Book
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE

PERIOD = 300.0


def lose(dm: DMWorld, component: str, ordinal: int) -> tuple[str, Callable[[], None]]:
    """A pod whose server ends whenever it starts, and what ends that."""
    pod = f"{NAME}-{component}-{ordinal}"
    return pod, dm.world.faults.pod_crash_loop(f"{NAMESPACE}/{pod}")


@pytest.mark.slow
@pytest.mark.rule("6.7")
def test_a_lost_master_is_recorded_then_removed_with_its_volume_then_replaced(dm: DMWorld) -> None:
    pod, heal = lose(dm, "dm-master", 1)
    claim = dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-master-{pod}")["metadata"]["uid"]
    dm.run_until(lambda: dm.size("dm-master") == 4, 2 * PERIOD)
    assert [f"members/master/{pod}"] == dm.asked("DELETE")
    assert claim != dm.get(PERSISTENT_VOLUME_CLAIMS, f"dm-master-{pod}")["metadata"]["uid"]
    assert dm.status("master")["failureMembers"][pod]["memberDeleted"]

    heal()
    dm.run_until(lambda: not dm.status("master").get("failureMembers"), PERIOD)
    dm.run_until_ready(NAME, PERIOD)
    assert 3 == dm.size("dm-master") == len(dm.masters.members)


def lose_disk(dm: DMWorld, ordinal: int) -> str:
    """A master whose volume the user replaced: its server starts, finds itself registered already, and ends."""
    pod = f"{NAME}-dm-master-{ordinal}"
    dm.admin.delete(PERSISTENT_VOLUME_CLAIMS, f"dm-master-{pod}", NAMESPACE)
    dm.admin.delete(PODS, pod, NAMESPACE)
    return pod


@pytest.mark.slow
@pytest.mark.rule("6.7")
def test_a_master_that_is_behind_the_service_between_its_crashes_is_replaced_in_time(dm: DMWorld) -> None:
    pod = lose_disk(dm, 1)
    dm.run_until(lambda: pod in (dm.status("master").get("failureMembers") or {}), PERIOD + 30.0)
    dm.run_until_ready(NAME, 2 * PERIOD)


@pytest.mark.slow
@pytest.mark.rule("6.8")
def test_a_lost_worker_gets_a_substitute_beside_a_master_that_crashes(dm: DMWorld) -> None:
    dm.create_source("orders")
    dm.set(master={"maxFailoverCount": 0})
    lose_disk(dm, 1)
    bound = next(each.name for each in dm.workers() if each.source)
    lose(dm, "dm-worker", int(bound[-1]))
    dm.run_until(lambda: dm.size("dm-worker") == 3, PERIOD + 60.0)


@pytest.mark.slow
@pytest.mark.rule("I24")
def test_without_a_majority_no_master_is_removed(dm: DMWorld) -> None:
    heals = [lose(dm, "dm-master", ordinal)[1] for ordinal in (1, 2)]
    dm.run(PERIOD + 30.0)
    assert [] == dm.asked("DELETE")
    assert 3 == dm.size("dm-master")
    assert "DMMasterQuorumLost" == dm.reason(NAME)
    for heal in heals:
        heal()
    dm.run_until_ready(NAME, PERIOD)


@pytest.mark.slow
@pytest.mark.rule("6.8")
def test_a_lost_worker_gets_a_substitute_until_the_user_says_that_it_is_over(dm: DMWorld) -> None:
    dm.create_source("orders")
    bound = next(each.name for each in dm.workers() if each.source)
    ordinal = int(bound[-1])
    pod, heal = lose(dm, "dm-worker", ordinal)
    dm.run_until(lambda: dm.size("dm-worker") == 3, 2 * PERIOD)
    assert [] == dm.asked("DELETE")
    assert "orders" in {each.source for each in dm.workers() if each.name != pod}

    heal()
    dm.run_until(lambda: dm.reason(NAME) == "DMWorkerFailedOver", PERIOD)
    dm.run(60.0)
    assert 3 == dm.size("dm-worker")
    dm.set(worker={"failover": {"recoverByUID": dm.status("worker")["failoverUID"]}})
    dm.run_until(lambda: dm.size("dm-worker") == 2, PERIOD)
    dm.run_until_ready(NAME, PERIOD)
    assert {"orders"} == {each.source for each in dm.workers() if each.source}


@pytest.mark.slow
def test_loss_x_edit_a_scale_in_during_a_failover_keeps_the_quorum(dm: DMWorld) -> None:
    pod, heal = lose(dm, "dm-master", 0)
    dm.run_until(lambda: pod in dm.status("master").get("failureMembers", {}), 2 * PERIOD)
    dm.set(master={"replicas": 1}, version="v8.5.3")
    dm.run(60.0)
    healthy = sum(each.healthy for each in dm.masters.members.values())
    assert healthy > len(dm.masters.members) // 2
    heal()
    dm.run_until_ready(NAME, 3 * PERIOD)
    assert 1 == dm.size("dm-master") == len(dm.masters.members)


@pytest.mark.slow
def test_loss_x_edit_an_upgrade_continues_past_a_replaced_master(dm: DMWorld) -> None:
    pod, heal = lose(dm, "dm-master", 2)
    dm.run_until(lambda: dm.size("dm-master") == 4, 3 * PERIOD)
    dm.set(version="v8.5.3")
    dm.run(60.0)
    images = {each["spec"]["containers"][0]["image"] for each in dm.every(PODS) if f"{NAME}-dm-master" in str(each)}
    assert "pingcap/dm:v8.5.3" in images
    assert 2 * sum(each.healthy for each in dm.masters.members.values()) > len(dm.masters.members)
    heal()
    dm.run_until_ready(NAME, 3 * PERIOD)
    assert pod in {each.name for each in dm.masters.members.values()}


@pytest.mark.slow
@pytest.mark.rule("6.8")
def test_a_substitute_that_does_not_serve_replaces_no_worker(dm: DMWorld) -> None:
    pod, _ = lose(dm, "dm-worker", 1)
    dm.run_until(lambda: dm.size("dm-worker") == 3, 2 * PERIOD)
    dm.world.faults.pod_crash_loop(f"{NAMESPACE}/{NAME}-dm-worker-2")
    dm.run(30.0)
    assert pod in dm.status("worker")["failureMembers"]
    assert "DMWorkerFailedOver" != dm.reason(NAME)


@pytest.mark.slow
@pytest.mark.rule("R19")
def test_claims_stay_while_the_masters_list_no_workers(dm: DMWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master that has just become the leader has not read yet which workers there are."""
    dm.set(worker={"replicas": 1})
    dm.run_until(lambda: not dm.exists(PODS, f"{NAME}-dm-worker-1"))
    dm.run_until_ready(NAME)
    claim = f"dm-worker-{NAME}-dm-worker-1"
    with monkeypatch.context() as forgetful:
        forgetful.setattr(Book, "workers", lambda _: [])
        dm.set(enablePVReclaim=True)
        dm.run(90.0)
        assert dm.exists(PERSISTENT_VOLUME_CLAIMS, claim)
        assert [f"{NAME}-dm-worker-0"] == list(dm.status("worker")["members"])
        assert f"reports no workers, not even {NAME}-dm-worker-0" in dm.condition("Progressing", NAME)["message"]
    dm.run_until(lambda: not dm.exists(PERSISTENT_VOLUME_CLAIMS, claim), within=120.0)
