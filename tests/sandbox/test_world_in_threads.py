"""The world in real threads and behind real sockets."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
import yaml

from kube.config import load_kubeconfig
from kube.resources import STATEFUL_SETS
from ports.clock import SystemClock
from ports.stopping import Stop
from ports.transport import Request, TransportError
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.world import DataPlaneWorld, World
from tests.e2e.waiting import eventually
from tests.sandbox.clusters import NAMESPACE, PD, create, create_discovery, discovery, get

PROGRAMS = {"/usr/local/bin/tidb-discovery": discovery}
_DEADLINE = 20.0


@pytest.fixture
def world() -> Iterator[World]:
    made = World(programs=PROGRAMS)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def wait_for_ready(world: World, *components: str) -> float:
    """Seconds until all StatefulSets of three are Ready."""
    clock, stop = SystemClock(), Stop()
    start = clock.now()
    while clock.now() - start < _DEADLINE:
        sets = [world.client().get(STATEFUL_SETS, f"basic-{each}", NAMESPACE).decode() for each in components]
        if all(each.get("status", {}).get("readyReplicas") == each["spec"]["replicas"] for each in sets):
            return clock.now() - start
        stop.wait(clock, 0.05)
    raise AssertionError("not ready in time")


def pd_leader(world: World) -> str:
    """The name of PD's leader; empty while the Service has no endpoint, which may follow the pod's readiness."""
    try:
        return str(get(world.data_plane_transport(), f"{PD}/pd/api/v1/leader")["name"])
    except TransportError:
        return ""


@pytest.mark.slow
def test_a_cluster_is_ready_in_seconds_and_reached_through_the_proxy(world: World, tmp_path: Path) -> None:
    create_discovery(world.client())
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        create(world.client(), component, replicas)

    assert wait_for_ready(world, "pd", "tikv", "tidb") < 8.0

    kubeconfig = yaml.safe_load(world.write_kubeconfig(tmp_path).read_text())
    server = kubeconfig["clusters"][0]["cluster"]["server"]
    token = kubeconfig["users"][0]["user"]["token"]
    _, proxy = world.serve_http()
    with urllib3.PoolManager() as direct:
        pods = direct.request("GET", f"{server}/api/v1/pods", headers={"authorization": f"Bearer {token}"})
        assert 200 == pods.status
    with urllib3.ProxyManager(proxy) as through:
        assert 3 == len(through.request("GET", f"{PD}/pd/api/v1/health").json())
        world.data_plane.network.inject(Fault(Trouble.REFUSE, path="/pd/api/v1/leader"))
        with pytest.raises(urllib3.exceptions.ProxyError):
            through.request("GET", f"{PD}/pd/api/v1/leader", retries=False)
    tunnel = http.client.HTTPConnection("127.0.0.1", int(proxy.rpartition(":")[2]), timeout=5)
    tunnel.set_tunnel("basic-pd.default", 2379)
    tunnel.request("GET", "/pd/api/v1/health")
    assert 200 == tunnel.getresponse().status
    tunnel.close()
    assert proxy == load_kubeconfig(str(tmp_path / "kubeconfig"), world.clock).pods_proxy_url


def test_a_stopped_world_leaves_no_thread(world: World) -> None:
    before = threading.active_count()
    world.serve_http()
    world.stop()

    assert threading.active_count() < before


def test_node_side_alone_serves_another_control_plane(world: World) -> None:
    """Two worlds: the second one adds only nodes and data plane to the API of the first."""
    other = DataPlaneWorld(world.transport("system:nodes"), programs=PROGRAMS, nodes=())
    other.start()
    try:
        create_discovery(world.client())
        create(world.client(), "pd", 1)
        wait_for_ready(world, "pd")
        assert "basic-pd-0" == eventually(lambda: pd_leader(world))
        assert 200 == world.data_plane_transport().request(Request("GET", f"{PD}/pd/api/v1/health")).status
    finally:
        other.stop()
