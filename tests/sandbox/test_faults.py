"""The faults of `world.faults`, each on a running cluster."""

import json
from collections.abc import Callable, Iterator

import pytest

from kube.errors import Expired
from kube.objects import Json
from kube.resources import EVENTS, NODES, PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ConnectionLost, Request, RequestTimeout
from sandbox.apiserver.faults import Fault
from sandbox.conditions import condition, holds
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE, PD, create, create_discovery, discovery, get

PROGRAMS = {"/usr/local/bin/tidb-discovery": discovery}
BASIC = f"{NAMESPACE}/basic"
USER = "system:serviceaccount:default:somebody"


@pytest.fixture
def world(clock: FakeClock) -> Iterator[World]:
    """PD and TiKV, running."""
    made = World(clock, SeededRandomness(1), programs=PROGRAMS)
    create_discovery(made.client())
    create(made.client(), "pd", 3)
    create(made.client(), "tikv", 3)
    made.run_until_settled()
    yield made
    made.stop()


def pod(world: World, name: str) -> Json:
    return world.client().get(PODS, name, NAMESPACE).decode()


def is_ready(world: World, name: str) -> bool:
    return holds(pod(world, name), "Ready")


def waiting(world: World, name: str) -> str:
    """Why the container of a pod does not run."""
    state: Json = pod(world, name)["status"]["containerStatuses"][0]["state"]
    return str(state.get("waiting", {}).get("reason", ""))


def delete(world: World, name: str, grace: int | None = None) -> None:
    world.client().delete(PODS, name, NAMESPACE, grace_period_seconds=grace)


def replaced(world: World, name: str, uid: str) -> Callable[[], bool]:
    """True if the pod was recreated with another UID."""
    return lambda: any(
        each.metadata.name == name and each.metadata.uid != uid
        for each in world.client().list_page(PODS, NAMESPACE).items
    )


@pytest.mark.rule("FP6")
def test_the_machine_of_a_pod_stops_or_all_of_its_zone(world: World) -> None:
    nodes = {name: pod(world, name)["spec"]["nodeName"] for name in ("basic-pd-0", "basic-tikv-1")}
    for verb in (world.faults.host_gone, world.faults.zone_gone):
        start = verb(f"{NAMESPACE}/basic-tikv-1")
        world.advance(5)
        assert not is_ready(world, "basic-tikv-1")
        assert (nodes["basic-pd-0"] != nodes["basic-tikv-1"]) is is_ready(world, "basic-pd-0")
        start()
        world.run_until(lambda: is_ready(world, "basic-tikv-1"), 60)
    with pytest.raises(LookupError, match="basic-tikv-9 is on no node"):
        world.faults.host_gone(f"{NAMESPACE}/basic-tikv-9")


@pytest.mark.rule("FP6")
def test_a_machine_is_removed_with_its_node(world: World) -> None:
    before = pod(world, "basic-tikv-1")
    back = world.faults.host_removed(f"{NAMESPACE}/basic-tikv-1")
    assert world.client().find(NODES, before["spec"]["nodeName"]) is None
    world.advance(30)
    assert before["metadata"]["uid"] == pod(world, "basic-tikv-1")["metadata"]["uid"]

    # a pod that cannot run anywhere is collected and recreated
    world.run_until(replaced(world, "basic-tikv-1", before["metadata"]["uid"]), 30)
    assert not is_ready(world, "basic-tikv-1")
    back()
    world.run_until(lambda: is_ready(world, "basic-tikv-1"), 60)


@pytest.mark.rule("FP6")
def test_pods_leave_a_machine_under_maintenance(world: World) -> None:
    before = pod(world, "basic-tikv-1")
    back = world.faults.host_tainted(f"{NAMESPACE}/basic-tikv-1")
    world.run_until(replaced(world, "basic-tikv-1", before["metadata"]["uid"]), 60)
    world.advance(10)
    assert not is_ready(world, "basic-tikv-1")

    back()
    world.run_until(lambda: is_ready(world, "basic-tikv-1"), 60)
    assert before["spec"]["nodeName"] == pod(world, "basic-tikv-1")["spec"]["nodeName"]


@pytest.mark.rule("FP6")
def test_a_pod_of_a_lost_node_stays_until_it_is_deleted_by_force(world: World) -> None:
    before = pod(world, "basic-tikv-1")
    node = before["spec"]["nodeName"]
    back = world.faults.node_gone(node)
    world.advance(360)
    gone = world.client().get(NODES, node).decode()
    assert ["NoExecute", "NoSchedule"] == sorted(each["effect"] for each in gone["spec"]["taints"])
    assert "deletionTimestamp" in pod(world, "basic-tikv-1")["metadata"]

    delete(world, "basic-tikv-1", 0)
    world.run_until(replaced(world, "basic-tikv-1", before["metadata"]["uid"]), 5)
    world.advance(5)
    scheduled = condition(pod(world, "basic-tikv-1")["status"]["conditions"], "PodScheduled")
    assert scheduled is not None
    # its volume is on the node that is gone
    assert "didn't match PersistentVolume's node affinity" in scheduled["message"]

    back()
    world.run_until(lambda: is_ready(world, "basic-tikv-1"), 60)


@pytest.mark.rule("FP6")
def test_a_node_that_is_cut_off_keeps_running_force_deleted_pods(world: World) -> None:
    before = pod(world, "basic-tikv-1")
    back = world.faults.node_cut_off(before["spec"]["nodeName"])
    world.advance(360)

    delete(world, "basic-tikv-1", 0)
    world.advance(30)
    stores = get(world.data_plane_transport(), f"{PD}/pd/api/v1/stores")["stores"]
    assert ["Up"] * 3 == [each["store"]["state_name"] for each in stores]
    assert [(NAMESPACE, "basic-tikv-1")] == world.data_plane.pods("*/basic-tikv-1")

    back()
    world.run_until(lambda: is_ready(world, "basic-tikv-1"), 60)
    assert 1 == len(world.data_plane.running(NAMESPACE, "basic-tikv-1"))


@pytest.mark.rule("FP7")
def test_a_pod_may_find_no_node(world: World) -> None:
    uid = pod(world, "basic-tikv-2")["metadata"]["uid"]
    heal = world.faults.pod_pending("default/basic-tikv-2")
    delete(world, "basic-tikv-2")
    world.run_until(replaced(world, "basic-tikv-2", uid), 60)
    world.advance(5)
    scheduled = condition(pod(world, "basic-tikv-2")["status"].get("conditions"), "PodScheduled")
    assert scheduled is not None
    assert ("False", "Unschedulable") == (scheduled["status"], scheduled["reason"])

    heal()
    world.run_until(lambda: is_ready(world, "basic-tikv-2"), 60)


@pytest.mark.rule("FP7")
def test_a_pod_may_crash_repeatedly(world: World) -> None:
    heal = world.faults.pod_crash_loop("*/basic-tikv-0")
    world.advance(20)
    status = pod(world, "basic-tikv-0")["status"]["containerStatuses"][0]
    assert "CrashLoopBackOff" == waiting(world, "basic-tikv-0")
    assert status["restartCount"] > 2

    heal()
    world.run_until(lambda: is_ready(world, "basic-tikv-0"), 60)


@pytest.mark.rule("FP7")
def test_a_pod_may_hang_be_unready_or_never_end(world: World) -> None:
    resume = world.faults.pod_hang("*/basic-tikv-0")
    world.faults.pod_unready("*/basic-tikv-1")
    world.faults.pod_terminating("*/basic-tikv-2")
    delete(world, "basic-tikv-2")
    world.advance(30)
    assert [False, False] == [is_ready(world, "basic-tikv-0"), is_ready(world, "basic-tikv-1")]
    assert "deletionTimestamp" in pod(world, "basic-tikv-2")["metadata"]

    resume()
    world.faults.heal()
    ordinals = range(3)
    world.run_until(lambda: all(is_ready(world, f"basic-tikv-{each}") for each in ordinals), 60)


@pytest.mark.rule("FP7")
def test_a_node_may_end_a_pod_for_good(world: World) -> None:
    evicted = pod(world, "basic-tikv-1")["metadata"]["uid"]
    world.faults.pod_evicted("*/basic-tikv-1")
    world.run_until(replaced(world, "basic-tikv-1", evicted), 60)
    world.run_until(lambda: is_ready(world, "basic-tikv-1"), 60)
    (event,) = [each.decode() for each in world.client().list_page(EVENTS).items if b"Evicted" in each.raw]
    assert ("Warning", "Evicted") == (event["type"], event["reason"])
    assert event["message"].startswith("The node was low on resource: ephemeral-storage.")


@pytest.mark.rule("FP7")
def test_an_image_may_be_missing(world: World) -> None:
    heal = world.faults.image_missing("pingcap/tikv:*")
    delete(world, "basic-tikv-0")
    world.run_until(lambda: waiting(world, "basic-tikv-0") == "ImagePullBackOff", 60)

    heal()
    world.run_until(lambda: is_ready(world, "basic-tikv-0"), 60)


@pytest.mark.rule("FP5")
def test_pd_may_answer_garbage(world: World) -> None:
    faults, transport = world.faults, world.data_plane_transport()

    def ask(path: str, method: str = "GET") -> bytes:
        return transport.request(Request(method, f"{PD}{path}")).body

    whole = ask("/pd/api/v1/members")
    heal = faults.pd_truncated(BASIC, "/pd/api/v1/members")
    assert whole[: len(whole) // 2] == ask("/pd/api/v1/members")
    heal()
    heal = faults.pd_no_stores(BASIC)
    assert {"count": 0, "stores": []} == json.loads(ask("/pd/api/v1/stores"))
    heal()
    heal = faults.pd_answers(BASIC, 200, b"?", every=2)
    assert [False, True] == [ask("/pd/api/v1/members") == b"?" for _ in range(2)]
    heal()
    faults.pd_answer_lost(BASIC, method="POST")
    with pytest.raises(ConnectionLost):
        ask("/pd/api/v1/leader/resign", "POST")
    faults.heal()
    assert whole[:20] == ask("/pd/api/v1/members")[:20]


@pytest.mark.rule("FP5")
def test_pd_may_answer_as_it_did_before(world: World) -> None:
    url = f"{PD}/pd/api/v1/stores"
    begin = b'{"name":"evict-leader-scheduler","store_id":1}'

    def leaders() -> list[int]:
        return [each["status"]["leader_count"] for each in get(world.data_plane_transport(), url)["stores"]]

    heal = world.faults.pd_old(BASIC, "/pd/api/v1/stores")
    before = leaders()
    world.data_plane_transport().request(Request("POST", f"{PD}/pd/api/v1/schedulers", body=begin))
    world.advance(10)
    old = leaders()
    heal()

    assert before == old != leaders()


@pytest.mark.rule("FP5")
def test_pd_may_be_without_etcd_and_a_store_without_space(world: World) -> None:
    transport = world.data_plane_transport()

    def available() -> str:
        return str(get(transport, f"{PD}/pd/api/v1/store/1")["status"]["available"])

    before = available()
    healed = [world.faults.etcd_down(BASIC), world.faults.store_low_space(BASIC, 1)]
    with pytest.raises(RequestTimeout):
        transport.request(Request("POST", f"{PD}/v3/kv/range", body=b"{}", timeout=1))
    assert before != available()

    for heal in healed:
        heal()
    assert before == available()


@pytest.mark.rule("FP5")
def test_pd_may_have_no_leader(world: World) -> None:
    heal = world.faults.pd_no_leader(BASIC)
    assert 503 == world.data_plane_transport().request(Request("GET", f"{PD}/pd/api/v1/leader")).status

    heal()
    world.advance(10)
    assert 200 == world.data_plane_transport().request(Request("GET", f"{PD}/pd/api/v1/leader")).status


def test_the_operator_may_be_cut_off_while_the_pods_talk(world: World, clock: FakeClock) -> None:
    world.faults.network_cut()
    before = clock.now()
    with pytest.raises(RequestTimeout):
        get(world.data_plane_transport(), f"{PD}/pd/api/v1/health")
    world.advance(60)
    world.faults.heal()

    stores = get(world.data_plane_transport(), f"{PD}/pd/api/v1/stores")["stores"]
    assert ["Up"] * 3 == [each["store"]["state_name"] for each in stores]
    assert clock.now() - before > 60


@pytest.mark.rule("FP12")
def test_the_api_server_may_be_down_restart_or_forget(world: World) -> None:
    client = world.client(USER)
    version = client.list_page(PODS, NAMESPACE).resource_version
    heal = world.faults.api_down()
    with pytest.raises(ConnectionLost):
        client.list_page(PODS, NAMESPACE)
    delete_later = world.faults.api_fault(Fault(lose_answer=True), user=USER, verb="delete", resource="pods")
    heal()
    with pytest.raises(ConnectionLost):
        client.delete(PODS, "basic-tikv-0", NAMESPACE)
    delete_later()
    assert "deletionTimestamp" in pod(world, "basic-tikv-0")["metadata"]

    world.faults.api_restart(expired=True)
    with pytest.raises(Expired):
        _drain(world, version)


@pytest.mark.rule("FP4")
def test_a_late_answer_of_the_api_server_takes_the_worlds_time(world: World, clock: FakeClock) -> None:
    world.faults.api_fault(Fault(delay=7.0), user=USER)
    before = clock.now()

    world.client(USER).list_page(PODS, NAMESPACE)

    assert 7.0 == pytest.approx(clock.now() - before)


def _drain(world: World, version: str) -> None:
    watch = world.client(USER).watch(PODS, NAMESPACE, resource_version=version, timeout_seconds=60)
    event = next(iter(watch))
    watch.close()
    if isinstance(event.object, Exception):
        raise event.object
