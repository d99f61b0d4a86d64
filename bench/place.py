"""Clusters on a real control plane, with the sandbox's nodes and data plane, for several suites."""

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from apis.crd import KINDS, definition
from bench.figures import note
from bench.operator_process import Cost, OperatorProcess
from discovery.app import make_handler
from kube.client import Client
from kube.config import load_kubeconfig
from kube.errors import NotFound, TooManyRequests
from kube.http_transport import HttpTransport
from kube.objects import Json, Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, TIDB_CLUSTERS
from ports.clock import SystemClock
from rehearsal.world import DISCOVERY
from sandbox.conditions import holds
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings
from sandbox.world import DataPlaneWorld
from tests.controlplane.processes import ControlPlane, free_port, require_or_reason, running

QPS = ("--kube-client-qps=1000", "--kube-client-burst=2000")
_PATIENCE = 300.0
_NODES = 12
"""Enough for a hundred clusters: a node takes 110 pods."""
QUICK = Timings(
    image_pull=0.0,
    init_container=0.0,
    container_start=0.0,
    probe_delay=0.0,
    graceful_stop=0.0,
    grace_second=0.0,
    dependency_retry=0.05,
    script_second=0.01,
    pd_start=0.0,
    pd_join=0.0,
    pd_election=0.05,
    pd_regions_loaded=0.0,
    tikv_start=0.0,
    tidb_start=0.0,
    volume_provision=0.0,
)
"""Pods as fast as possible in the sandbox; heartbeats at their real pace."""

_CLUSTER = """
apiVersion: pingcap.com/v1alpha1
kind: TidbCluster
metadata: {namespace: default}
spec:
  version: v8.5.2
  pd: {replicas: 3, requests: {storage: 1Gi}, config: {}}
  tikv: {replicas: 3, requests: {storage: 1Gi}, config: {}}
  tidb: {replicas: 2, service: {type: ClusterIP}, config: {}}
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The environment of the clusters: the API, the node side, and the proxy to its network."""

    control_plane: ControlPlane
    client: Client
    nodes: DataPlaneWorld
    proxy: str

    def operator(self, *flags: str) -> OperatorProcess:
        """Start a controller-manager that reaches the data plane."""
        proxies = {"HTTP_PROXY": self.proxy, "http_proxy": self.proxy, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        environ = {"NAMESPACE": "default", **proxies}
        return OperatorProcess(self.control_plane.kubeconfig(), free_port(), [*QPS, *flags], environ)

    def cpu_seconds(self) -> float:
        """The CPU seconds of Kubernetes so far: the control plane, and the nodes, which are in this process."""
        return sum(Cost(pid).cpu_seconds() for pid in (os.getpid(), *self.control_plane.pids))

    def await_ready(self, count: int, within: float = _PATIENCE) -> None:
        """Wait until `count` clusters are Ready, without lists, which would be too costly. Raises TimeoutError."""
        page = self.client.list_page(TIDB_CLUSTERS, "default")
        watch = self.client.watch(
            TIDB_CLUSTERS, "default", resource_version=page.resource_version, timeout_seconds=int(within)
        )
        with contextlib.closing(watch):
            ready: set[str] = set()
            for seen in itertools.chain(page.items, (event.object for event in watch)):
                if not isinstance(seen, Object):
                    raise seen
                change = ready.add if holds(seen.decode(), "Ready") else ready.discard
                change(seen.metadata.name)
                if len(ready) == count:
                    return
        raise TimeoutError(f"waited {within:g} s for {count} clusters to be Ready")


def on_a_place(
    measure: Callable[[Place], None],
    timings: Timings = QUICK,
    nodes: int = _NODES,
    *,
    status_subresource: bool = True,
) -> int:
    """Measure on a separate control plane with `nodes` nodes; 1 if none was built.

    v1.6 writes the statuses of its resources only if they have no status subresource.
    """
    if reason := require_or_reason():
        note(reason)
        return 1
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory)) as control_plane,
        _place(control_plane, timings, nodes, status_subresource) as here,
    ):
        measure(here)
    return 0


@contextmanager
def _place(control_plane: ControlPlane, timings: Timings, count: int, status_subresource: bool) -> Iterator[Place]:
    """Nodes and a data plane for a running control plane, and the CRD in it."""
    clock = SystemClock()
    transport = HttpTransport(load_kubeconfig(str(control_plane.kubeconfig()), clock), {}, clock)
    client = Client(transport)
    for kind in KINDS:
        client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind, status_subresource=status_subresource))
    awaited(lambda: _served(client), "the CRD to be served")
    nodes = [
        NodeSpec(f"node-{index}", f"192.168.{index // 200}.{index % 200 + 10}", f"zone-{index % 3}")
        for index in range(count)
    ]
    world = DataPlaneWorld(transport, timings=timings, programs={DISCOVERY: make_handler}, nodes=nodes)
    world.start()
    try:
        yield Place(control_plane, client, world, world.serve_proxy())
    finally:
        world.stop()
        transport.close()


def cluster(name: str, **replicas: int) -> Json:
    """A TidbCluster of 3/3/2, or with other numbers of some components."""
    tree: Json = yaml.safe_load(_CLUSTER)
    tree["metadata"]["name"] = name
    for component, count in replicas.items():
        tree["spec"][component]["replicas"] = count
    return tree


def awaited(condition: Callable[[], bool], what: str, within: float = _PATIENCE, every: float = 0.1) -> None:
    """Wait until `condition` returns True. Raises TimeoutError."""
    deadline = time.monotonic() + within  # noqa: TID251  (another process is timed)
    while not condition():
        if time.monotonic() > deadline:  # noqa: TID251
            raise TimeoutError(f"waited {within:g} s for {what}")
        time.sleep(every)  # noqa: TID251


def _served(client: Client) -> bool:
    try:
        client.list_page(TIDB_CLUSTERS)
    except (NotFound, TooManyRequests):
        return False
    return True
