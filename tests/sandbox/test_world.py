"""The world end to end, in one thread on a stepped clock: a seed determines a run."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
)
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ConnectionRefused, Request, RequestTimeout
from sandbox.conditions import holds
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.program import Handler
from sandbox.timings import Timings
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE, PD, create, create_discovery, discovery, get

PROGRAMS = {"/usr/local/bin/tidb-discovery": discovery}


def new_world(clock: FakeClock, seed: int = 1) -> World:
    return World(clock, SeededRandomness(seed), programs=PROGRAMS)


@pytest.fixture
def world(clock: FakeClock) -> Iterator[World]:
    """A world with PD, TiKV and TiDB running."""
    made = new_world(clock)
    create_discovery(made.client())
    create(made.client(), "pd", 3)
    create(made.client(), "tikv", 3)
    create(made.client(), "tidb", 2)
    made.run_until_settled()
    yield made
    made.stop()


def pd(world: World, path: str, method: str = "GET", body: bytes | None = None) -> int:
    """The status of a request to PD."""
    return world.data_plane_transport().request(Request(method, f"{PD}{path}", body=body)).status


def stores(world: World) -> dict[str, Json]:
    """Store and status by pod name, tombstones included."""
    transport = world.data_plane_transport()
    listed = [
        *get(transport, f"{PD}/pd/api/v1/stores")["stores"],
        *get(transport, f"{PD}/pd/api/v1/stores?state=2")["stores"],
    ]
    return {each["store"]["address"].partition(".")[0]: each for each in listed}


def pod(world: World, name: str) -> Json:
    return world.client().get(PODS, name, NAMESPACE).decode()


def set_status(world: World, name: str) -> Json:
    status: Json = world.client().get(STATEFUL_SETS, name, NAMESPACE).decode()["status"]
    return status


def test_a_pd_stateful_set_becomes_one_cluster_of_healthy_members(world: World) -> None:
    health = get(world.data_plane_transport(), f"{PD}/pd/api/v1/health")

    assert ["basic-pd-0", "basic-pd-1", "basic-pd-2"] == sorted(each["name"] for each in health if each["health"])
    assert {"http://basic-pd-0.basic-pd-peer.default.svc:2379"} <= {each["client_urls"][0] for each in health}
    assert get(world.data_plane_transport(), f"{PD}/pd/api/v1/leader")["name"].startswith("basic-pd-")


@pytest.mark.slow
def test_tikv_registers_and_balances_its_stores(world: World) -> None:
    found = stores(world)

    assert ["Up"] * 3 == [each["store"]["state_name"] for each in found.values()]
    assert 30 == sum(each["status"]["leader_count"] for each in found.values())
    assert [30, 30, 30] == [each["status"]["region_count"] for each in found.values()]
    assert 1 == min(each["store"]["id"] for each in found.values())


def test_tidb_serves_status_and_registers_its_topology(world: World) -> None:
    url = "http://basic-tidb-0.basic-tidb-peer.default:10080/status"

    assert get(world.data_plane_transport(), url)["version"].endswith("v8.5.0")
    body = b'{"key": "L3RvcG9sb2d5L3RpZGI=", "range_end": "L3RvcG9sb2d5L3RpZGM="}'
    answer = world.data_plane_transport().request(Request("POST", f"{PD}/v3/kv/range", body=body))
    assert b'"count":"4"' in answer.body


def test_a_stateful_set_reports_its_pods_and_claims(world: World) -> None:
    status = set_status(world, "basic-pd")

    assert 3 == status["readyReplicas"] == status["currentReplicas"] == status["updatedReplicas"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["updateRevision"] == pod(world, "basic-pd-1")["metadata"]["labels"]["controller-revision-hash"]
    claim = world.client().get(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-1", NAMESPACE).decode()
    assert "Bound" == claim["status"]["phase"]
    volume = world.client().get(PERSISTENT_VOLUMES, claim["spec"]["volumeName"]).decode()
    assert "Bound" == volume["status"]["phase"]
    assert 3 == len({pod(world, f"basic-pd-{ordinal}")["spec"]["nodeName"] for ordinal in range(3)})


def test_a_rolling_update_stops_at_the_partition_and_keeps_member_ids(world: World) -> None:
    before = get(world.data_plane_transport(), f"{PD}/pd/api/v1/members")["members"]
    container = world.client().get(STATEFUL_SETS, "basic-pd", NAMESPACE).decode()["spec"]["template"]["spec"]
    container["containers"][0]["image"] = "pingcap/pd:v8.5.1"
    template = {"spec": container}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    patch = {"spec": {"template": template, "updateStrategy": strategy}}
    world.client().patch(STATEFUL_SETS, "basic-pd", NAMESPACE, patch)

    world.run_until_settled()

    status = set_status(world, "basic-pd")
    assert status["currentRevision"] != status["updateRevision"]
    assert (2, 1) == (status["currentReplicas"], status["updatedReplicas"])
    after = get(world.data_plane_transport(), f"{PD}/pd/api/v1/members")["members"]
    assert {each["member_id"] for each in before} == {each["member_id"] for each in after}
    assert ["v8.5.0", "v8.5.0", "v8.5.1"] == sorted(each["binary_version"] for each in after)


def test_idle_is_quiet(world: World) -> None:
    world.advance(11)  # the nodes list their images
    version = world.server.storage.version

    world.advance(9)

    leases = 3
    assert world.server.storage.version - version <= leases


def test_eviction_drains_leaders_until_it_ends(world: World) -> None:
    scheduler = "/pd/api/v1/schedulers"
    assert 200 == pd(world, scheduler, "POST", b'{"name":"evict-leader-scheduler","store_id":1}')
    world.advance(3)
    drained = next(each for each in stores(world).values() if each["store"]["id"] == 1)
    assert 200 == pd(world, f"{scheduler}/evict-leader-scheduler-1", "DELETE")
    world.advance(3)
    back = next(each for each in stores(world).values() if each["store"]["id"] == 1)

    assert 0 == drained["status"]["leader_count"]
    assert 10 == back["status"]["leader_count"]


def test_a_store_is_removed_only_when_others_can_hold_its_replicas(world: World) -> None:
    assert 400 == pd(world, "/pd/api/v1/store/1", "DELETE")
    world.client().patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": {"replicas": 4}})
    world.run_until_settled()

    assert 200 == pd(world, "/pd/api/v1/store/1", "DELETE")
    world.advance(10)

    removed = next(each for each in stores(world).values() if each["store"]["id"] == 1)
    assert ("Tombstone", 0) == (removed["store"]["state_name"], removed["status"]["region_count"])


def test_a_tikv_on_a_new_disk_is_refused_until_its_old_store_is_removed(world: World) -> None:
    world.client().delete(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-2", NAMESPACE)
    world.client().delete(PODS, "basic-tikv-2", NAMESPACE)

    world.run_until(
        lambda: pod(world, "basic-tikv-2")["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) > 0, 60
    )

    ended = pod(world, "basic-tikv-2")["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert "duplicated store address" in ended["message"]


@pytest.mark.slow
def test_a_silent_store_is_disconnected_and_then_down(world: World) -> None:
    world.data_plane.hang(NAMESPACE, "basic-tikv-0")
    world.advance(25)
    assert "Disconnected" == stores(world)["basic-tikv-0"]["store"]["state_name"]
    assert not holds(pod(world, "basic-tikv-0"), "Ready")
    world.advance(1800)
    assert "Down" == stores(world)["basic-tikv-0"]["store"]["state_name"]


def test_pd_without_a_quorum_reports_no_leader(world: World) -> None:
    for member in ("basic-pd-1", "basic-pd-2"):
        world.data_plane.hang(NAMESPACE, member)
    world.advance(1)

    transport = world.data_plane_transport()
    url = "http://basic-pd-0.basic-pd-peer.default.svc:2379/pd/api/v1/leader"
    answer = transport.request(Request("GET", url))

    assert (503, b"[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader\n") == (answer.status, answer.body)

    for member in ("basic-pd-1", "basic-pd-2"):
        world.data_plane.hang(NAMESPACE, member, hung=False)
    world.run_until(lambda: transport.request(Request("GET", url)).status == 200, 60)


def test_a_removed_member_does_not_serve_until_its_disk_is_new(world: World) -> None:
    # as in PD v5.4.3, v6.1.7, v7.5.6 and v8.5.2
    own = "http://basic-pd-2.basic-pd-peer.default.svc:2379"
    transport = world.data_plane_transport()
    assert 200 == pd(world, "/pd/api/v1/members/name/basic-pd-2", "DELETE")
    world.advance(30)

    assert holds(pod(world, "basic-pd-2"), "Ready")
    assert 503 == transport.request(Request("GET", f"{own}/health")).status
    assert 2 == len(get(transport, f"{own}/pd/api/v1/members")["members"])

    world.client().delete(PODS, "basic-pd-2", NAMESPACE)
    world.advance(30)
    assert holds(pod(world, "basic-pd-2"), "Ready")
    with pytest.raises(RequestTimeout):
        transport.request(Request("GET", f"{own}/health", timeout=5.0))

    world.client().delete(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-2", NAMESPACE)
    world.client().delete(PODS, "basic-pd-2", NAMESPACE)
    world.run_until(lambda: 3 == len(get(transport, f"{PD}/pd/api/v1/members")["members"]), 60)


def test_the_pods_of_a_lost_node_return_with_it(world: World) -> None:
    node = pod(world, "basic-tikv-1")["spec"]["nodeName"]
    back = world.faults.node_gone(node)
    world.advance(5)
    assert not holds(pod(world, "basic-tikv-1"), "Ready")
    world.advance(310)
    assert "deletionTimestamp" in pod(world, "basic-tikv-1")["metadata"]

    back()
    world.run_until(lambda: holds(pod(world, "basic-tikv-1"), "Ready"), 60)
    assert 3 == len(stores(world))


def test_faults_strike_names_routes_and_time(world: World, clock: FakeClock) -> None:
    network, transport = world.data_plane.network, world.data_plane_transport()
    network.inject(Fault(Trouble.ANSWER, path="/pd/api/v1/leader", status=500, body=b'"broken"\n'))
    assert 500 == pd(world, "/pd/api/v1/leader")
    network.heal()
    network.inject(Fault(Trouble.BLACK_HOLE, target="*/basic-pd-*"))
    before = clock.now()
    with pytest.raises(RequestTimeout):
        transport.request(Request("GET", f"{PD}/pd/api/v1/health", timeout=5.0))
    assert 5.0 == pytest.approx(clock.now() - before)
    network.heal()
    network.inject(Fault(Trouble.REFUSE, target="*/basic-pd-*"))
    with pytest.raises(ConnectionRefused):
        pd(world, "/pd/api/v1/health")
    with pytest.raises(ConnectionRefused):
        transport.request(Request("GET", "http://nobody.default:2379/"))


@pytest.mark.parametrize(
    ("host", "resolves"),
    [
        ("basic-pd-1.basic-pd-peer.default", True),
        ("basic-pd-1.basic-pd-peer.default.svc", True),
        ("Basic-PD-1.basic-pd-peer.default.svc.cluster.local.", True),
        ("basic-pd.default.svc.cluster.local", True),
        ("basic-pd-1.basic-pd-peer.default.svc.other.example", False),
        ("basic-pd.default.svc.cluster", False),
    ],
)
@pytest.mark.rule("4.1")
def test_names_resolve_only_under_the_domain_of_the_cluster(world: World, host: str, resolves: bool) -> None:
    request = Request("GET", f"http://{host}:2379/pd/api/v1/members")
    if resolves:
        assert 200 == world.data_plane_transport().request(request).status
        return
    with pytest.raises(ConnectionRefused):
        world.data_plane_transport().request(request)


def test_requests_are_counted_by_kind_and_sender(world: World) -> None:
    world.data_plane.network.reset_counts()
    headers = {"user-agent": "operator"}
    for store in (1, 4):
        request = Request("GET", f"{PD}/pd/api/v1/store/{store}", headers)
        world.data_plane_transport().request(request)

    counts = world.data_plane.network.counts()
    assert [("GET", "/pd/api/v1/store/{id}", "operator", 2)] == [
        (each.method, each.path_class, each.user_agent, count) for each, count in counts.items()
    ]


def test_deleting_a_stateful_set_deletes_its_pods_but_not_its_claims(world: World) -> None:
    world.client().delete(STATEFUL_SETS, "basic-tidb", NAMESPACE)
    world.client().delete(STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    world.run_until_settled()

    names = {each.metadata.name for each in world.client().list_page(PODS, NAMESPACE).items}
    assert not {name for name in names if name.startswith("basic-tidb")}
    assert {"basic-tikv-0", "basic-tikv-1", "basic-tikv-2"} <= names
    assert () == world.client().get(PODS, "basic-tikv-0", NAMESPACE).metadata.owner_references


def test_the_pods_of_a_job_go_with_the_owner_of_the_job(clock: FakeClock) -> None:
    world = new_world(clock)
    client = world.client()
    owner = client.create(CONFIG_MAPS, {"metadata": {"name": "owner"}}, NAMESPACE).metadata
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    container = {"name": "c", "image": "grafana", "command": ["grafana"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job: Json = {"metadata": {"name": "work", "ownerReferences": [reference]}, "spec": {"template": template}}
    client.create(JOBS, job, NAMESPACE)
    world.settle()
    assert 1 == len(client.list_page(PODS, NAMESPACE).items)
    client.delete(CONFIG_MAPS, "owner", NAMESPACE)
    world.run_until_settled()
    assert [] == [*client.list_page(JOBS, NAMESPACE).items, *client.list_page(PODS, NAMESPACE).items]
    world.stop()


def test_a_pod_reports_that_it_waits_for_its_config_map(clock: FakeClock) -> None:
    world = new_world(clock)
    create(world.client(), "pd", 1)
    world.client().delete(CONFIG_MAPS, "basic-pd", NAMESPACE)
    world.run_until_settled()

    waiting = pod(world, "basic-pd-0")["status"]["containerStatuses"][0]["state"]["waiting"]
    events = [each.decode() for each in world.client().list_page(EVENTS, NAMESPACE).items]
    assert "ContainerCreating" == waiting["reason"]
    assert ['MountVolume.SetUp failed for volume "startup-script" : configmap "basic-pd" not found'] == [
        each["message"] for each in events if each["reason"] == "FailedMount"
    ]
    world.stop()


def test_the_kubelet_repeats_a_warning_that_the_api_server_refused(clock: FakeClock) -> None:
    world = new_world(clock)
    allow = world.faults.creation_refused("events")
    create(world.client(), "pd", 1)
    world.client().delete(CONFIG_MAPS, "basic-pd", NAMESPACE)
    world.advance(10.0)
    allow()
    world.run_until_settled()

    reasons = [each.decode()["reason"] for each in world.client().list_page(EVENTS, NAMESPACE).items]
    assert 1 == reasons.count("FailedMount")
    world.stop()


def test_pd_asks_until_discovery_answers(clock: FakeClock) -> None:
    world = new_world(clock)
    create(world.client(), "pd", 1)
    world.advance(5)
    assert not holds(pod(world, "basic-pd-0"), "Ready")

    create_discovery(world.client())
    world.run_until(lambda: holds(pod(world, "basic-pd-0"), "Ready"), 10)
    world.stop()


def test_a_program_that_cannot_start_is_a_crashing_container(clock: FakeClock) -> None:
    def broken(*_: object) -> Handler:
        raise KeyError("TC_NAME")

    world = World(clock, SeededRandomness(1), programs={"/usr/local/bin/tidb-discovery": broken})
    create_discovery(world.client())
    world.advance(2)

    listed = world.client().list_page(PODS, NAMESPACE).items
    container = listed[0].decode()["status"]["containerStatuses"][0]
    assert "KeyError: 'TC_NAME'" == container["lastState"]["terminated"]["message"]
    assert "CrashLoopBackOff" == container["state"]["waiting"]["reason"]
    world.stop()


def test_an_unschedulable_pod_has_a_reason(clock: FakeClock) -> None:
    world = new_world(clock)
    resources = {"requests": {"cpu": "1000"}}
    container = {"name": "greedy", "image": "pause:3.9", "resources": resources}
    meta = {"name": "greedy", "namespace": NAMESPACE}
    world.client().create(PODS, {"metadata": meta, "spec": {"containers": [container]}}, NAMESPACE)
    world.run_until_settled()

    condition = pod(world, "greedy")["status"]["conditions"][0]
    assert ("PodScheduled", "False", "Unschedulable") == (condition["type"], condition["status"], condition["reason"])
    assert "0/3 nodes are available: 3 Insufficient cpu." == condition["message"]
    world.stop()


def test_a_preferred_node_wins_only_where_the_pod_fits(clock: FakeClock) -> None:
    world = new_world(clock)
    world.prefer({f"{NAMESPACE}/{name}": "node-2" for name in ("anywhere", "elsewhere")})
    for name, selector in (("anywhere", {}), ("elsewhere", {"kubernetes.io/hostname": "node-1"}), ("other", {})):
        spec = {"containers": [{"name": name, "image": "pause:3.9"}], "nodeSelector": selector}
        world.client().create(PODS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}, NAMESPACE)
    world.run_until_settled()

    nodes = {name: pod(world, name)["spec"]["nodeName"] for name in ("anywhere", "elsewhere", "other")}
    assert {"anywhere": "node-2", "elsewhere": "node-1", "other": "node-0"} == nodes
    world.stop()


@pytest.mark.parametrize(("check", "seconds"), [(0.0, 2.5), (1.0, 3.0)])
def test_the_scheduler_sees_new_volumes_at_its_next_check(clock: FakeClock, check: float, seconds: float) -> None:
    world = World(clock, SeededRandomness(1), Timings(volume_provision=2.5, volume_check=check))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.client().create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": claim}, NAMESPACE)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {"containers": [{"name": "one", "image": "pause:3.9"}], "volumes": [volume]}
    began = clock.now()
    world.client().create(PODS, {"metadata": {"name": "one"}, "spec": spec}, NAMESPACE)
    world.run_until(lambda: "nodeName" in pod(world, "one")["spec"], within=10.0)
    assert seconds == pytest.approx(clock.now() - began, abs=0.1)
    world.stop()


def test_one_seed_is_one_run() -> None:
    def run() -> list[str]:
        clock = FakeClock()
        world = new_world(clock, seed=7)
        create_discovery(world.client())
        create(world.client(), "pd", 3)
        world.run_until_settled()
        calls = [str(entry.call) for entry in world.server.audit.recent()]
        world.stop()
        return calls

    assert run() == run()
