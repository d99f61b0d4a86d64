"""The answers of PD and TiDB, without Kubernetes (dataplane-apis.md 3, 4, 6)."""

import base64
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.sql import SqlLogin
from ports.transport import Request, RequestTimeout, Response
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.network import Target
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.routes import readable_size
from sandbox.dataplane.pd.stores import Store
from sandbox.dataplane.processes import Launch
from sandbox.dataplane.runtime import DataPlane, Questions
from sandbox.dataplane.sql import SqlServer
from sandbox.notifier import Notifier
from sandbox.timings import Timings
from tests.sandbox.clusters import discovery
from tests.sandbox.scripts import script

_SCRIPT = "/usr/local/bin/start_script.sh"
_PORTS = {"pd": {2379, 2380}, "tikv": {20160, 20180}, "tidb": {4000, 10080}, "discovery": {10261}}


class ByFirstLabel:
    """Resolves every name to the pod of its first label; `basic-pd` and `basic-discovery` to their only pod."""

    def resolve(self, host: str, port: int, namespace: str) -> list[Target]:
        name = host.partition(".")[0]
        return [Target(f"{name}-0" if name in ("basic-pd", "basic-discovery") else name, port)]

    def pods(self, host: str, port: int) -> list[Target]:
        return self.resolve(host, port, "")

    def addresses(self, host: str, namespace: str) -> list[str]:
        return ["10.0.0.1"]


class Plane:
    """A data plane that the test steps."""

    def __init__(self, clock: FakeClock, pause: Callable[[float], None] | None = None) -> None:
        self._clock = clock
        self._plane = DataPlane(
            clock=clock,
            randomness=SeededRandomness(1),
            timings=Timings(),
            notifier=Notifier(clock),
            directory=ByFirstLabel(),
            identity=lambda _, __: self._plane.transport(),
            programs={"/usr/local/bin/tidb-discovery": discovery},
            pause=pause or clock.step,
        )
        self._questions = Questions(self._plane)

    def start(
        self, component: str, ordinal: int = 0, config: str = "", *, disk_of: str = "", service: str = ""
    ) -> None:
        command = ("/usr/local/bin/tidb-discovery",) if component == "discovery" else ("/bin/sh", _SCRIPT)
        environment = {"CLUSTER_NAME": "basic", "PEER_SERVICE_NAME": "basic-pd-peer", "NAMESPACE": "ns"}
        environment |= {"HEADLESS_SERVICE_NAME": service or f"basic-{component}-peer", "CAPACITY": "0"}
        pod = f"basic-{component}-{ordinal}"
        files = {f"/etc/{component}/{component}.toml": config, "/etc/podinfo/annotations": ""}
        if component != "discovery":
            files[_SCRIPT] = script(component)
        self._plane.start(
            Launch(
                namespace="ns",
                pod=pod,
                pod_uid=pod,
                image=f"pingcap/{component}:v8.5.0",
                command=command,
                env=environment | {"HOSTNAME": pod},
                files=files,
                ports=frozenset(_PORTS[component]),
                disks={f"/var/lib/{component}": self._plane.disk(disk_of or pod)},
            )
        )

    def launch(self, launch: Launch) -> None:
        self._plane.start(launch)

    def runs(self, pod: str) -> bool:
        return bool(self._plane.running("ns", pod))

    @property
    def pd(self) -> PdCluster:
        cluster = self._plane.pd_cluster("ns", "basic-pd-0")
        assert cluster is not None
        return cluster

    def stores(self) -> list[Store]:
        cluster = self._plane.pd_cluster("ns", "basic-pd-0")
        return cluster.stores.all() if cluster else []

    def advance(self, seconds: float, step: float = 0.1) -> None:
        end = self._clock.now() + seconds
        while self._clock.now() < end:
            self._plane.step()
            self._questions.step()
            self._clock.step(step)

    def connect(self) -> SqlServer:
        return self._plane.sql().connect(SqlLogin("basic-tidb-0.ns", 4000, "root"))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        host: str = "basic-pd.ns:2379",
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        timeout: float = 30.0,
    ) -> Response:
        payload = None if body is None else json.dumps(body).encode()
        request = Request(method, f"http://{host}{path}", headers, payload, timeout)
        return self._plane.transport().request(request)

    def inject(self, fault: Fault) -> None:
        self._plane.network.inject(fault)

    def kill(self, pod: str) -> None:
        for running in self._plane.running("ns", pod):
            self._plane.kill(running)

    def interrupt_joins(self, pods: str) -> Callable[[], None]:
        self._plane.interrupted_joins.add(pods)
        return lambda: self._plane.interrupted_joins.discard(pods)

    def stop_all(self) -> None:
        for pod in ("basic-tidb-0",):
            for running in self._plane.running("ns", pod):
                self._plane.stop(running)


@pytest.fixture
def plane(clock: FakeClock) -> Plane:
    """Discovery and one PD."""
    made = Plane(clock)
    made.start("discovery")
    made.start("pd", config='lease = 6\n[replication]\nlocation-labels = ["zone", "host"]\nmax-replicas = 1\n')
    made.advance(2)
    return made


def test_stores_before_bootstrap_are_refused_in_pds_exact_words(plane: Plane) -> None:
    answer = plane.ask("GET", "/pd/api/v1/stores")

    text = b'"[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"\n'
    assert (500, text) == (answer.status, answer.body)


def test_the_config_shows_booleans_and_lists_as_texts_and_keeps_pd_toml(plane: Plane) -> None:
    config = json.loads(plane.ask("GET", "/pd/api/v1/config").body)
    replication = config["replication"]

    assert 6 == config["lease"]
    assert ("zone,host", 1, "true") == tuple(
        replication[key] for key in ("location-labels", "max-replicas", "enable-placement-rules")
    )
    off = {"enable-placement-rules": "false"}
    assert 500 == plane.ask("POST", "/pd/api/v1/config/replicate", off).status, "there is no cluster yet"
    plane.start("tikv")
    plane.advance(2)
    assert 200 == plane.ask("POST", "/pd/api/v1/config/replicate", off).status
    assert 400 == plane.ask("POST", "/pd/api/v1/config", {"nonsense": 1}).status
    assert b'"false"' in plane.ask("GET", "/pd/api/v1/config/replicate").body


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/pd/api/v1/nowhere", 404, b"404 page not found\n"),
        ("DELETE", "/pd/api/v1/members/name/nobody", 404, b'"not found, pd: nobody"\n'),
        ("POST", "/pd/api/v1/leader/transfer/nobody", 500, b'"no valid pd to transfer etcd leader"\n'),
        ("GET", "/pd/api/v2/ms/members/tso", 404, b'"not support micro service"\n'),
        # before the first TiKV there are no regions to load
        ("GET", "/pd/api/v2/ready", 500, b""),
    ],
)
def test_pd_answers_as_pd_does(plane: Plane, method: str, path: str, status: int, body: bytes) -> None:
    answer = plane.ask(method, path)

    assert (status, body) == (answer.status, answer.body)


def test_a_member_id_is_a_number_of_64_bits(plane: Plane) -> None:
    member = json.loads(plane.ask("GET", "/pd/api/v1/leader").body)

    assert "basic-pd-0" == member["name"]
    assert 2**32 < member["member_id"] < 2**64


def test_evict_leader_schedulers_are_one_entry_with_a_list(plane: Plane) -> None:
    plane.start("tikv")
    plane.advance(1)
    begin = {"name": "evict-leader-scheduler", "store_id": 1}
    assert b'"The scheduler is created."\n' == plane.ask("POST", "/pd/api/v1/schedulers", begin).body
    assert b'"The scheduler has been applied to the store."\n' == plane.ask("POST", "/pd/api/v1/schedulers", begin).body
    assert "evict-leader-scheduler" in json.loads(plane.ask("GET", "/pd/api/v1/schedulers").body)
    listed = json.loads(plane.ask("GET", "/pd/api/v1/scheduler-config/evict-leader-scheduler/list").body)
    assert ["1"] == list(listed["store-id-ranges"])
    assert b"null\n" == plane.ask("DELETE", "/pd/api/v1/schedulers/evict-leader-scheduler-1").body
    assert 404 == plane.ask("DELETE", "/pd/api/v1/schedulers/evict-leader-scheduler-1").status


def test_store_labels_merge_and_reserved_ones_are_refused(plane: Plane) -> None:
    plane.start("tikv")
    plane.advance(1)
    assert 200 == plane.ask("POST", "/pd/api/v1/store/1/label", {"zone": "a"}).status
    assert 200 == plane.ask("POST", "/pd/api/v1/store/1/label", {"host": "n1"}).status
    assert 400 == plane.ask("POST", "/pd/api/v1/store/1/label", {"engine": "x"}).status
    store = json.loads(plane.ask("GET", "/pd/api/v1/store/1").body)["store"]
    assert [{"key": "host", "value": "n1"}, {"key": "zone", "value": "a"}] == store["labels"]
    assert "state" not in store
    assert b'"[PD:core:ErrStoreNotFound]store 9 not found"\n' == plane.ask("GET", "/pd/api/v1/store/9").body


def test_tikv_metrics_name_the_leaders(plane: Plane) -> None:
    plane.start("tikv")
    plane.advance(1)
    body = plane.ask("GET", "/metrics", host="basic-tikv-0.basic-tikv-peer.ns:20180").body

    assert b'tikv_raftstore_region_count{type="leader"} 1\n' in body


def test_keys_with_a_lease_expire(plane: Plane) -> None:
    def code(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    lease = json.loads(plane.ask("POST", "/v3/lease/grant", {"TTL": "600"}).body)["ID"]
    plane.ask("POST", "/v3/kv/put", {"key": code("/a/1"), "value": code("x"), "lease": lease})
    plane.ask("POST", "/v3/kv/put", {"key": code("/a/2"), "value": code("y")})
    prefix = {"key": code("/a/"), "range_end": code("/a0")}
    assert "2" == json.loads(plane.ask("POST", "/v3/kv/range", prefix).body)["count"]
    plane.advance(601)
    assert "1" == json.loads(plane.ask("POST", "/v3/kv/range", prefix).body)["count"]
    assert "1" == json.loads(plane.ask("POST", "/v3/kv/deleterange", prefix).body)["deleted"]
    assert "kvs" not in json.loads(plane.ask("POST", "/v3/kv/range", prefix).body)


def test_a_tidb_waits_for_tikv_and_leaves_no_topology_behind(plane: Plane) -> None:
    prefix = {"key": base64.b64encode(b"/topology").decode(), "range_end": base64.b64encode(b"/topologz").decode()}
    plane.start("tidb")
    plane.advance(2)
    assert "kvs" not in json.loads(plane.ask("POST", "/v3/kv/range", prefix).body)
    plane.start("tikv")
    plane.advance(2)
    status = "basic-tidb-0.basic-tidb-peer.ns:10080"
    assert 200 == plane.ask("GET", "/status", host=status).status
    assert b'"success!"' == plane.ask("POST", "/upgrade/start", host=status).body
    assert b"duplicated" in plane.ask("POST", "/upgrade/start", host=status).body
    assert "2" == json.loads(plane.ask("POST", "/v3/kv/range", prefix).body)["count"]
    plane.stop_all()
    assert 500 == plane.ask("GET", "/status", host=status).status
    plane.advance(1)
    assert "kvs" not in json.loads(plane.ask("POST", "/v3/kv/range", prefix).body)


def test_sizes_are_written_as_pd_does() -> None:
    assert ("98.6GiB", "0B", "1.969TiB") == tuple(map(readable_size, (int(98.6 * 2**30), 0, int(1.9688 * 2**40))))


def _members(plane: Plane) -> list[str]:
    members = json.loads(plane.ask("GET", "/pd/api/v1/members").body)["members"]
    return sorted((each["name"] for each in members), key=lambda name: name or "~")


def test_etcd_adds_no_member_before_all_voters_are_connected(plane: Plane) -> None:
    for ordinal in (1, 2):
        plane.start("pd", ordinal)
    plane.advance(5)

    # both ask at the same time: the second one ends with `etcdserver: unhealthy cluster`, and its pod is restarted
    late = {"basic-pd-1", "basic-pd-2"} - set(_members(plane))
    assert 1 == len(late)
    plane.start("pd", int(late.pop()[-1]))
    plane.advance(5)
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-2"] == _members(plane)
    plane.kill("basic-pd-2")
    plane.start("pd", 3)
    plane.advance(5)
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-2"] == _members(plane)


def test_a_member_that_never_started_blocks_even_its_own_pod(plane: Plane) -> None:
    plane.start("pd", 1)
    plane.advance(1)
    heal = plane.interrupt_joins("ns/basic-pd-2")
    plane.start("pd", 2)
    plane.advance(5)
    heal()
    for ordinal in (2, 3):
        plane.start("pd", ordinal)
    plane.advance(5)

    assert ["basic-pd-0", "basic-pd-1", ""] == _members(plane)
    plane.kill("basic-pd-1")
    # the new member counts for the quorum: one of three is none
    plane.advance(5)
    assert 503 == plane.ask("GET", "/pd/api/v1/leader").status


@pytest.fixture
def three(plane: Plane) -> Plane:
    """Three PDs, and a store that has sent heartbeats for half a minute."""
    for ordinal in (1, 2):
        plane.start("pd", ordinal)
        plane.advance(2)
    plane.start("tikv")
    plane.advance(30)
    return plane


def _stores(plane: Plane) -> list[tuple[str, int]]:
    found = json.loads(plane.ask("GET", "/pd/api/v1/stores").body)["stores"]
    return [(each["store"]["state_name"], each["status"]["leader_count"]) for each in found]


def _host(plane: Plane, leads: bool) -> str:
    leader = json.loads(plane.ask("GET", "/pd/api/v1/leader").body)["name"]
    other = next(name for name in _members(plane) if name != leader)
    return f"{leader if leads else other}.basic-pd-peer.ns:2379"


@pytest.mark.rule("dataplane-apis-3.1")
def test_followers_forward_every_request_to_the_leader(three: Plane) -> None:
    leader, follower = _host(three, leads=True), _host(three, leads=False)
    config = json.loads(three.ask("GET", "/pd/api/v1/config", host=follower).body)
    assert config["name"] == leader.partition(".")[0]
    itself = three.ask("GET", "/pd/api/v1/config", host=follower, headers={"PD-Allow-follower-handle": "true"})
    assert json.loads(itself.body)["name"] == follower.partition(".")[0]
    again = three.ask("GET", "/pd/api/v1/health", host=follower, headers={"PD-Redirector": "basic-pd-9"})
    assert (500, b"[PD:apiutil:ErrRedirectToNotLeader]redirect to not leader\n") == (again.status, again.body)


@pytest.mark.parametrize("path", ["health", "members", "config", "leader", "stores", "version"])
@pytest.mark.rule("dataplane-apis-3.1")
def test_without_a_leader_followers_answer_503(three: Plane, path: str) -> None:
    follower, others = _host(three, leads=False), _members(three)
    for pod in others:
        if not follower.startswith(f"{pod}."):
            three.kill(pod)
    answer = three.ask("GET", f"/pd/api/v1/{path}", host=follower)
    assert (503, b"[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader\n") == (answer.status, answer.body)


@pytest.mark.rule("dataplane-apis-3.3")
def test_health_is_a_ping_of_the_client_port(three: Plane) -> None:
    healthy = {each["name"]: each["health"] for each in json.loads(three.ask("GET", "/pd/api/v1/health").body)}
    assert {"basic-pd-0": True, "basic-pd-1": True, "basic-pd-2": True} == healthy
    ill = _host(three, leads=False).partition(".")[0]
    three.inject(Fault(Trouble.BLACK_HOLE, f"ns/{ill}", port=2380))
    healthy = {each["name"]: each["health"] for each in json.loads(three.ask("GET", "/pd/api/v1/health").body)}
    assert healthy[ill]
    three.kill(next(name for name in _members(three) if name != ill))
    # but it does not vote
    three.advance(5)
    assert 503 == three.ask("GET", "/pd/api/v1/leader", host=f"{ill}.basic-pd-peer.ns:2379").status


@pytest.mark.rule("dataplane-apis-15.2")
def test_a_new_leader_knows_the_persisted_state(three: Plane) -> None:
    assert [("Up", 1)] == _stores(three)
    three.ask("POST", "/pd/api/v1/schedulers", {"name": "evict-leader-scheduler", "store_id": 1})
    three.ask("POST", "/pd/api/v1/leader/resign")
    three.advance(0.4)
    refused = three.ask("GET", "/pd/api/v1/stores")
    assert (500, True) == (refused.status, b"TiKV cluster not bootstrapped" in refused.body)
    three.advance(0.5)
    # heartbeat times are persisted every five minutes, and the store's region has yet to report
    assert [("Disconnected", 0)] == _stores(three)
    assert [] == json.loads(three.ask("GET", "/pd/api/v1/schedulers").body)
    assert 404 == three.ask("DELETE", "/pd/api/v1/schedulers/evict-leader-scheduler-1").status
    three.advance(12)
    assert [("Up", 1)] == _stores(three)
    assert "evict-leader-scheduler" in json.loads(three.ask("GET", "/pd/api/v1/schedulers").body)


@pytest.mark.rule("dataplane-apis-15.2")
def test_a_store_has_the_address_under_which_it_registered_last(three: Plane) -> None:
    three.kill("basic-tikv-0")
    three.start("tikv", 0, disk_of="basic-tikv-0", service="other-tikv-peer")
    three.advance(2)
    stores = json.loads(three.ask("GET", "/pd/api/v1/stores").body)["stores"]
    assert ["basic-tikv-0.other-tikv-peer.ns.svc:20160"] == [each["store"]["address"] for each in stores]


@pytest.mark.rule("dataplane-apis-15.4")
def test_a_slow_call_takes_effect_after_its_sender_gave_up(three: Plane) -> None:
    three.inject(Fault(Trouble.SLOW, seconds=10.0))
    with pytest.raises(RequestTimeout):
        three.ask("POST", "/pd/api/v1/config", {"max-replicas": 5}, timeout=5.0)
    with pytest.raises(RequestTimeout):
        three.ask("GET", "/pd/api/v1/config", timeout=5.0)
    assert 1 == json.loads(three.ask("GET", "/pd/api/v1/config/replicate", timeout=20.0).body)["max-replicas"]
    three.advance(1)
    assert 5 == json.loads(three.ask("GET", "/pd/api/v1/config/replicate", timeout=20.0).body)["max-replicas"]


@pytest.mark.rule("dataplane-apis-15.1")
def test_a_members_etcd_says_whether_it_reads_with_the_quorum(three: Plane) -> None:
    ill = _host(three, leads=False)
    assert 200 == three.ask("GET", "/health", host=ill).status
    three.inject(Fault(Trouble.BLACK_HOLE, f"ns/{ill.partition('.')[0]}", port=2380))
    assert 503 == three.ask("GET", "/health", host=ill).status
