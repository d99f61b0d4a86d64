"""Thirty clusters from apply to Ready, a minute of idleness, and the start beside a hundred clusters.

The control plane is real; nodes and data plane are the sandbox's, with times close to zero. The peer is v1.6.6,
measured before on a like machine with instant pods and the same 1,000 requests per second.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apis.crd import TIDB_CLUSTER, definition
from bench.figures import note, show
from bench.operator_process import OperatorProcess
from cli.world import DISCOVERY
from discovery.app import make_handler
from kube.client import Client
from kube.config import load_kubeconfig
from kube.errors import NotFound, TooManyRequests
from kube.http_transport import HttpTransport
from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, TIDB_CLUSTERS
from ports.clock import SystemClock
from sandbox.timings import Timings
from sandbox.world import DataPlaneWorld
from tests.controlplane.processes import ControlPlane, free_port, require_or_reason, running

CLUSTERS = 30
PEER = "v1.6.6, measured before on a like machine"
_QPS = ["--kube-client-qps=1000", "--kube-client-burst=2000"]
_PATIENCE = 300.0
_QUICK = Timings(
    image_pull=0.0,
    container_start=0.0,
    probe_delay=0.0,
    pd_start=0.0,
    pd_election=0.05,
    tikv_start=0.0,
    tidb_start=0.0,
    volume_provision=0.0,
)
"""Pods as instant as the sandbox can make them; heartbeats at their real pace."""


def main() -> int:
    """Run all of it. 1 where no control plane was built."""
    if reason := require_or_reason():
        note(reason)
        return 1
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory)) as control_plane,
        _world(control_plane) as (client, proxy),
    ):
        _bring_up(control_plane, client, proxy)
        _start_beside_many(control_plane, client)
    return 0


@contextmanager
def _world(control_plane: ControlPlane) -> Iterator[tuple[Client, str]]:
    clock = SystemClock()
    transport = HttpTransport(load_kubeconfig(str(control_plane.kubeconfig()), clock), {}, clock)
    client = Client(transport)
    client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TIDB_CLUSTER))
    _await(lambda: _served(client), "the CRD to be served")
    world = DataPlaneWorld(transport, timings=_QUICK, programs={DISCOVERY: make_handler})
    world.start()
    try:
        yield client, world.serve_proxy()
    finally:
        world.stop()
        transport.close()


def _bring_up(control_plane: ControlPlane, client: Client, proxy: str) -> None:
    operator = _operator(control_plane, proxy)
    try:
        _await(operator.leads, "the operator to lead")
        before, cpu = operator.requests(), operator.cpu_seconds()
        started = time.monotonic()  # noqa: TID251  (another process is timed)
        for number in range(CLUSTERS):
            client.create(TIDB_CLUSTERS, _cluster(f"c{number}"), "default")
        _await(lambda: _ready(client) == CLUSTERS, f"{CLUSTERS} clusters to be Ready")
        show("bringup_30_wall", time.monotonic() - started, 31.2, "s", PEER)  # noqa: TID251
        show("bringup_30_cpu", operator.cpu_seconds() - cpu, 6.6, "s", PEER)
        show("bringup_30_peak_memory", operator.peak_memory(), 123, "MB", PEER)
        spent = operator.requests() - before
        show("bringup_30_requests", spent.total(), 3995, "requests", PEER)
        note(f"requests by method: {dict(spent)}")
        _idle(operator)
    finally:
        operator.stop()


def _idle(operator: OperatorProcess, seconds: float = 60.0) -> None:
    time.sleep(5)  # noqa: TID251  (let the last events arrive)
    before, cpu = operator.requests(), operator.cpu_seconds()
    time.sleep(seconds)  # noqa: TID251
    spent = operator.requests() - before
    show("idle_60s_cpu", operator.cpu_seconds() - cpu, 1.04, "s", PEER)
    show("idle_60s_get", spent["GET"], 510, "requests", PEER)
    show("idle_60s_writes", spent.total() - spent["GET"], 60, "requests, Lease renewals not counted", PEER)


def _start_beside_many(control_plane: ControlPlane, client: Client, present: int = 100) -> None:
    client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "paused"}})
    for number in range(present - CLUSTERS):
        tree = _cluster(f"p{number}")
        tree["spec"]["paused"] = True
        tree["metadata"]["namespace"] = "paused"
        client.create(TIDB_CLUSTERS, tree, "paused")
    started = time.monotonic()  # noqa: TID251
    operator = _operator(control_plane, "")
    try:
        _await(operator.leads, "the operator to lead")
        show("start_beside_100_wall", time.monotonic() - started, 2.0, "s", "aim")  # noqa: TID251
        show("start_beside_100_peak_memory", operator.peak_memory(), 150, "MB", "aim")
    finally:
        operator.stop()


def _operator(control_plane: ControlPlane, proxy: str) -> OperatorProcess:
    proxies = {"HTTP_PROXY": proxy, "http_proxy": proxy, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    environ = {"NAMESPACE": "default", **(proxies if proxy else {})}
    return OperatorProcess(control_plane.kubeconfig(), free_port(), _QPS, environ)


def _cluster(name: str) -> Json:
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "version": "v8.5.2",
            "pd": {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {}},
            "tikv": {"replicas": 3, "requests": {"storage": "1Gi"}, "config": {}},
            "tidb": {"replicas": 2, "service": {"type": "ClusterIP"}, "config": {}},
        },
    }


def _served(client: Client) -> bool:
    try:
        client.list_page(TIDB_CLUSTERS)
    except (NotFound, TooManyRequests):
        return False
    return True


def _ready(client: Client) -> int:
    def is_ready(tree: Json) -> bool:
        conditions = (tree.get("status") or {}).get("conditions") or ()
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    return sum(is_ready(item.decode()) for item in client.list_page(TIDB_CLUSTERS, "default").items)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE  # noqa: TID251
    while not condition():
        if time.monotonic() > deadline:  # noqa: TID251
            raise TimeoutError(f"waited {_PATIENCE:g} s for {what}")
        time.sleep(0.1)  # noqa: TID251
