"""Stores, members and probes with the timings of real clusters (dataplane-apis.md 15)."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request, Response
from sandbox.conditions import condition, holds
from sandbox.timings import Timings
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE, PD, create, create_discovery, discovery, get

PROGRAMS = {"/usr/local/bin/tidb-discovery": discovery}
SCHEDULERS = "/pd/api/v1/schedulers"


@pytest.fixture
def world(clock: FakeClock) -> Iterator[World]:
    """Three PDs and four TiKVs, at rest."""
    made = World(clock, SeededRandomness(1), timings=Timings.real(), programs=PROGRAMS)
    create_discovery(made.client())
    create(made.client(), "pd", 3)
    create(made.client(), "tikv", 4)
    create(made.client(), "tidb", 1)
    made.advance(900)
    yield made
    made.stop()


def ask(world: World, method: str, path: str, body: bytes | None = None) -> Response:
    return world.data_plane_transport().request(Request(method, f"{PD}{path}", body=body))


def store(world: World, pod_name: str) -> Json:
    """Store and status of a pod."""
    transport = world.data_plane_transport()
    listed = [each for state in ("", "?state=2") for each in get(transport, f"{PD}/pd/api/v1/stores{state}")["stores"]]
    return next(each for each in listed if each["store"]["address"].startswith(f"{pod_name}."))


def state(world: World, pod_name: str = "basic-tikv-3") -> str:
    return str(store(world, pod_name)["store"]["state_name"])


def count(world: World, what: str, pod_name: str = "basic-tikv-3") -> int:
    return int(store(world, pod_name)["status"][what])


def pod(world: World, name: str) -> Json:
    return world.client().get(PODS, name, NAMESPACE).decode()


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-18")
def test_a_silent_store_is_disconnected_after_20_s_and_down_after_30_min(world: World) -> None:
    world.faults.pod_crash_loop("*/basic-tikv-3")
    seen = []
    for seconds in (9, 22, 1800):
        world.advance(seconds)
        seen.append(state(world))

    assert ["Up", "Disconnected", "Down"] == seen
    world.advance(300)
    # its peers are recreated on the others; it stays Down forever
    assert ("Down", 0) == (state(world), count(world, "region_count"))


@pytest.mark.slow
def test_a_leaving_store_drains_region_by_region_and_can_be_restored(world: World) -> None:
    number = store(world, "basic-tikv-3")["store"]["id"]
    held = count(world, "region_count")
    assert 200 == ask(world, "DELETE", f"/pd/api/v1/store/{number}").status
    world.advance(10)
    assert "Offline" == state(world)
    assert 0 < count(world, "region_count") < held

    assert 200 == ask(world, "POST", f"/pd/api/v1/store/{number}/state?state=Up").status
    world.advance(300)
    assert ("Up", held) == (state(world), count(world, "region_count"))

    ask(world, "DELETE", f"/pd/api/v1/store/{number}")
    world.advance(120)
    assert ("Tombstone", 0) == (state(world), count(world, "region_count"))
    assert 410 == ask(world, "POST", f"/pd/api/v1/store/{number}/state?state=Up").status
    assert 200 == ask(world, "DELETE", "/pd/api/v1/stores/remove-tombstone").status
    assert 404 == ask(world, "GET", f"/pd/api/v1/store/{number}").status


@pytest.mark.slow
@pytest.mark.rule("dataplane-apis-18")
def test_a_leaving_store_stays_offline_while_another_one_is_dead(world: World) -> None:
    world.faults.pod_hang("*/basic-tikv-0")
    world.advance(60)
    number = store(world, "basic-tikv-3")["store"]["id"]
    assert 200 == ask(world, "DELETE", f"/pd/api/v1/store/{number}").status

    world.advance(1200)

    assert "Offline" == state(world)
    world.faults.heal()
    world.advance(600)
    assert "Tombstone" == state(world)


def test_a_store_is_not_taken_out_when_all_others_are_being_emptied_of_leaders(world: World) -> None:
    names = ("basic-tikv-0", "basic-tikv-1", "basic-tikv-2")
    for each in names:
        body = f'{{"name":"evict-leader-scheduler","store_id":{store(world, each)["store"]["id"]}}}'
        ask(world, "POST", SCHEDULERS, body.encode())

    refused = ask(world, "DELETE", f"/pd/api/v1/store/{store(world, 'basic-tikv-3')['store']['id']}")

    assert 400 == refused.status
    assert b"no extra up store to store the leader" in refused.body


def test_leaders_leave_and_return_a_few_at_a_time(world: World) -> None:
    number = store(world, "basic-tikv-3")["store"]["id"]
    before = count(world, "leader_count")
    ask(world, "POST", SCHEDULERS, f'{{"name":"evict-leader-scheduler","store_id":{number}}}'.encode())
    world.advance(1)
    assert 0 < count(world, "leader_count") < before
    world.advance(10)
    assert 0 == count(world, "leader_count")

    ask(world, "DELETE", f"{SCHEDULERS}/evict-leader-scheduler-{number}")
    world.advance(30)
    assert before == count(world, "leader_count")


@pytest.mark.slow
def test_regions_stay_where_they_are_while_pd_has_no_leader(world: World) -> None:
    names = [f"basic-tikv-{ordinal}" for ordinal in range(4)]
    before = [count(world, "leader_count", each) for each in names]
    heal = world.faults.pd_no_leader(f"{NAMESPACE}/basic")
    world.advance(600)
    heal()
    for _ in range(20):
        world.advance(1)
        if ask(world, "GET", "/pd/api/v1/leader").status == 200:
            assert before == [count(world, "leader_count", each) for each in names]

    assert ["Up"] * 4 == [state(world, each) for each in names]


@pytest.mark.slow
def test_an_idle_hour_writes_only_leases(world: World) -> None:
    version = world.server.storage.version

    world.advance(3600)

    nodes, beats = 3, 360
    assert nodes * beats == world.server.storage.version - version


def test_a_node_is_lost_after_its_grace_and_unknown(world: World) -> None:
    node = pod(world, "basic-tikv-3")["spec"]["nodeName"]

    def ready() -> str:
        found = condition(world.client().get(NODES, node).decode()["status"]["conditions"], "Ready")
        return str(found and found["status"])

    world.faults.node_gone(node)
    world.advance(45)
    early = ready()
    world.advance(10)

    assert ["True", "Unknown"] == [early, ready()]
    assert not holds(pod(world, "basic-tikv-3"), "Ready")


@pytest.mark.slow
def test_a_deleted_node_loses_its_pods_and_returns_empty(world: World) -> None:
    node = pod(world, "basic-tikv-3")["spec"]["nodeName"]
    uid = pod(world, "basic-tikv-3")["metadata"]["uid"]
    back = world.faults.node_gone(node)
    world.client().delete(NODES, node)
    world.advance(50)
    assert uid != pod(world, "basic-tikv-3")["metadata"]["uid"]

    world.faults.node_emptied(node)
    back()
    world.advance(120)
    # a new disk means a new store, which is refused while the old one has its address
    ended = pod(world, "basic-tikv-3")["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert "duplicated store address" in ended["message"]


@pytest.mark.slow
def test_a_node_that_returns_has_restarted_its_containers(world: World) -> None:
    before = pod(world, "basic-tikv-3")
    back = world.faults.node_gone(before["spec"]["nodeName"])
    world.advance(60)
    back()
    world.advance(60)

    after = pod(world, "basic-tikv-3")
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    container = after["status"]["containerStatuses"][0]
    assert (1, True, "Running") == (container["restartCount"], container["ready"], after["status"]["phase"])
    # a real kubelet's reason for a container that it does not find
    assert "ContainerStatusUnknown" == container["lastState"]["terminated"]["reason"]


@pytest.mark.slow
def test_readiness_follows_the_probe_and_not_the_process(world: World) -> None:
    probe = {"tcpSocket": {"port": 20160}, "periodSeconds": 10, "failureThreshold": 3}
    patch = {"template": {"spec": {"containers": [with_probe(world, probe)]}}, "updateStrategy": {"rollingUpdate": {}}}
    patch["updateStrategy"] = {"rollingUpdate": {"partition": 3}}
    world.client().patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": patch})
    world.advance(60)
    assert holds(pod(world, "basic-tikv-3"), "Ready")

    world.faults.pod_hang("*/basic-tikv-3")
    world.advance(15)
    early = holds(pod(world, "basic-tikv-3"), "Ready")
    world.advance(20)

    assert [True, False] == [early, holds(pod(world, "basic-tikv-3"), "Ready")]


def with_probe(world: World, probe: Json) -> Json:
    """TiKV's container with a readiness probe."""
    template = world.client().get(STATEFUL_SETS, "basic-tikv", NAMESPACE).decode()["spec"]["template"]
    container: Json = template["spec"]["containers"][0]
    return container | {"readinessProbe": probe}


@pytest.mark.slow
def test_a_broken_configuration_ends_the_server_at_its_start(world: World) -> None:
    container = with_probe(world, {"tcpSocket": {"port": 20160}})
    data = {"config-file": '[log]\nlevel = "loud"\n'}
    world.client().patch(CONFIG_MAPS, "basic-tikv", NAMESPACE, {"data": data})
    template = {"spec": {"containers": [container]}}
    rolling = {"rollingUpdate": {"partition": 3}}
    spec = {"spec": {"template": template, "updateStrategy": rolling}}
    world.client().patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, spec)
    world.advance(120)

    status = pod(world, "basic-tikv-3")["status"]["containerStatuses"][0]
    assert "unknown log level 'loud'" in status["lastState"]["terminated"]["message"]
    assert "CrashLoopBackOff" == status["state"]["waiting"]["reason"]
    assert "back-off 1m20s" in status["state"]["waiting"]["message"]


def test_a_pre_stop_hook_delays_the_end_within_the_grace_period(clock: FakeClock) -> None:
    made = World(clock, SeededRandomness(1), timings=replace(Timings.real(), image_pull=0.0))
    hook = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 7"]}}}
    container = {"name": "main", "image": "idle:v1", "lifecycle": hook}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 20}
    made.client().create(PODS, {"metadata": {"name": "one"}, "spec": spec}, NAMESPACE)
    made.advance(10)
    made.client().delete(PODS, "one", NAMESPACE)

    def there() -> bool:
        return bool(made.client().list_page(PODS, NAMESPACE).items)

    made.advance(6)
    early = there()
    made.advance(2)
    assert [True, False] == [early, there()]
    made.stop()


def test_a_claim_grows_with_its_request(world: World) -> None:
    grown = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    world.client().patch(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-3", NAMESPACE, grown)
    world.advance(10)

    claim = world.client().get(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-3", NAMESPACE).decode()
    assert {"storage": "2Gi"} == claim["status"]["capacity"]


@pytest.mark.slow
def test_a_world_continues_identically_in_a_forked_process(world: World) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        world.advance(100)
        os.write(writer, str(world.server.storage.version).encode())
        os._exit(0)
    os.waitpid(child, 0)
    there = int(os.read(reader, 100))
    os.close(reader)
    os.close(writer)

    world.advance(100)

    assert there == world.server.storage.version
