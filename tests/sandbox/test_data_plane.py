"""PD's and TiDB's answers, without Kubernetes around them (dataplane-apis.md 3, 4, 6)."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request, Response
from sandbox.dataplane.network import Target
from sandbox.dataplane.pd.durations import duration, seconds, size
from sandbox.dataplane.processes import Disk, Launch
from sandbox.dataplane.runtime import DataPlane, Questions
from sandbox.notifier import Notifier
from sandbox.timings import Timings
from tests.sandbox.clusters import discovery
from tests.sandbox.scripts import script

_SCRIPT = "/usr/local/bin/start_script.sh"
_PORTS = {"pd": {2379, 2380}, "tikv": {20160, 20180}, "tidb": {4000, 10080}, "discovery": {10261}}


class ByFirstLabel:
    """Every name leads to the pod of its first label; `basic-pd` and `basic-discovery` to their only pod."""

    def resolve(self, host: str, port: int, namespace: str) -> list[Target]:
        name = host.partition(".")[0]
        return [Target(f"{name}-0" if name in ("basic-pd", "basic-discovery") else name, port)]

    def addresses(self, host: str, namespace: str) -> list[str]:
        return ["10.0.0.1"]


class Plane:
    """One data plane, driven by hand."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._plane = DataPlane(
            clock=clock,
            randomness=SeededRandomness(1),
            timings=Timings(),
            notifier=Notifier(clock),
            directory=ByFirstLabel(),
            identity=lambda _, __: self._plane.transport(),
            programs={"/usr/local/bin/tidb-discovery": discovery},
            pause=clock.step,
        )
        self._questions = Questions(self._plane)

    def start(self, component: str, ordinal: int = 0, config: str = "") -> None:
        command = ("/usr/local/bin/tidb-discovery",) if component == "discovery" else ("/bin/sh", _SCRIPT)
        environment = {"CLUSTER_NAME": "basic", "PEER_SERVICE_NAME": "basic-pd-peer", "NAMESPACE": "ns"}
        environment |= {"HEADLESS_SERVICE_NAME": f"basic-{component}-peer", "CAPACITY": "0"}
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
                disks={f"/var/lib/{component}": Disk(pod)},
                ports=frozenset(_PORTS[component]),
            )
        )

    def advance(self, seconds: float) -> None:
        end = self._clock.now() + seconds
        while self._clock.now() < end:
            self._plane.step()
            self._questions.step()
            self._clock.step(0.1)

    def ask(self, method: str, path: str, body: Any = None, host: str = "basic-pd.ns:2379") -> Response:
        payload = None if body is None else json.dumps(body).encode()
        return self._plane.transport().request(Request(method, f"http://{host}{path}", body=payload))

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
    made.start("pd", config='[replication]\nlocation-labels = ["zone", "host"]\nmax-replicas = 1\n')
    made.advance(2)
    return made


def test_stores_before_bootstrap_are_refused_in_pds_exact_words(plane: Plane) -> None:
    answer = plane.ask("GET", "/pd/api/v1/stores")

    text = b'"[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"\n'
    assert (500, text) == (answer.status, answer.body)


def test_the_config_shows_booleans_and_lists_as_texts_and_keeps_pd_toml(plane: Plane) -> None:
    replication = json.loads(plane.ask("GET", "/pd/api/v1/config").body)["replication"]

    assert ("zone,host", 1, "true") == tuple(
        replication[key] for key in ("location-labels", "max-replicas", "enable-placement-rules")
    )
    assert 200 == plane.ask("POST", "/pd/api/v1/config/replicate", {"enable-placement-rules": "false"}).status
    assert 400 == plane.ask("POST", "/pd/api/v1/config", {"nonsense": 1}).status
    assert b'"false"' in plane.ask("GET", "/pd/api/v1/config/replicate").body


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/pd/api/v1/nowhere", 404, b"404 page not found\n"),
        ("DELETE", "/pd/api/v1/members/name/nobody", 404, b'"not found, pd: nobody"\n'),
        ("POST", "/pd/api/v1/leader/transfer/nobody", 500, b'"no valid pd to transfer etcd leader"\n'),
        ("GET", "/pd/api/v2/ms/members/tso", 404, b"not support microservice"),
        ("GET", "/pd/api/v2/ready", 200, b""),
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


def test_sizes_and_durations_are_written_as_go_does() -> None:
    assert ("98.6GiB", "0B", "1.969TiB") == (size(int(98.6 * 2**30)), size(0), size(int(1.9688 * 2**40)))
    assert ("1h2m3.45s", "30m0s", "10.5s") == (duration(3723.45), duration(1800), duration(10.5))
    assert 1800.0 == seconds("30m0s")


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


def test_a_member_that_never_started_is_in_the_way_even_of_its_own_pod(plane: Plane) -> None:
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
    # it counts for the quorum: one of three is none
    plane.advance(5)
    assert 503 == plane.ask("GET", "/pd/api/v1/leader").status
