"""The extender's answer about 5,000 nodes, over HTTP, with names of nodes or whole ones."""

import json
import time
from collections.abc import Callable

import urllib3

from apis.crd import TIDB_CLUSTER, definition
from bench.figures import show
from informers.factory import SharedInformerFactory
from kube.client import Client
from kube.events import EventRecorder
from kube.objects import Json
from kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from ports.clock import SystemClock
from ports.http_server import Server, answer_with
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from sandbox.world import World
from scheduler.app import App
from scheduler.cluster_state import ClusterState
from scheduler.extender import Extender

_NODES, _PODS, _ROUNDS = 5_000, 5, 50
_NAMESPACE = "default"
_WHOLE_BYTES = 6_000
"""The size of a cloud node's JSON."""


def main() -> int:
    """Run the suite."""
    clock, stop = SystemClock(), Stop()
    world = World(clock, SeededRandomness(1), crds=[definition(TIDB_CLUSTER)], nodes=())
    client = world.client()
    names = _fill(client)
    nodes = SharedInformerFactory(client, clock, SeededRandomness(1), metadata_only=True)
    state = ClusterState(client, nodes.lister_for(NODES))
    nodes.start(stop)
    nodes.wait_for_cache_sync(stop)
    recorder = EventRecorder(client, clock, SeededRandomness(1))
    server = Server(
        "extender",
        ("127.0.0.1", 0),
        answer_with(App(Extender(state, recorder, clock), clock).handle),
        longest_body=1 << 28,
    )
    pod = client.get(PODS, "db-pd-0", _NAMESPACE).decode()
    with server.serving(), urllib3.PoolManager() as pool:
        url = f"http://127.0.0.1:{server.port}/scheduler/filter"
        by_name = json.dumps({"Pod": pod, "NodeNames": names}).encode()
        whole = json.dumps({"Pod": pod, "Nodes": {"items": [_node(name) for name in names]}}).encode()
        show("filter_5000_nodes_by_name_slowest", _slowest(lambda: _post(pool, url, by_name)), 50.0, "ms", "aim")
        show("filter_5000_whole_nodes_slowest", _slowest(lambda: _post(pool, url, whole)), None, "ms")
    stop.set()
    nodes.shutdown()
    world.stop()
    return 0


def _post(pool: urllib3.PoolManager, url: str, body: bytes) -> None:
    answer = pool.request("POST", url, body=body)
    if answer.status != 200 or answer.json()["Error"]:
        raise RuntimeError(answer.data[:500])


def _slowest(call: Callable[[], None]) -> float:
    """The slowest of several calls, in milliseconds."""
    took = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        call()
        took.append((time.perf_counter() - started) * 1000)
    return max(took)


def _fill(client: Client) -> list[str]:
    names = [f"node-{number}" for number in range(_NODES)]
    for name in names:
        client.create(NODES, _node(name, 0))
    component = {"baseImage": "pingcap/pd", "replicas": _PODS, "requests": {"storage": "1Gi"}}
    meta = {"name": "db", "namespace": _NAMESPACE}
    spec = {"version": "v8.5.2", "pd": component}
    client.create(
        TIDB_CLUSTERS,
        {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": meta, "spec": spec},
        _NAMESPACE,
    )
    for ordinal in range(_PODS):
        _add(client, f"db-pd-{ordinal}", f"node-{ordinal}" if ordinal else "")
    return names


def _add(client: Client, name: str, node: str) -> None:
    own = {"name": "tidb-cluster", "managed-by": "tidb-operator", "instance": "db", "component": "pd"}
    labels = {f"app.kubernetes.io/{key}": value for key, value in own.items()}
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": storage}
    client.create(PERSISTENT_VOLUME_CLAIMS, claim | {"metadata": {"name": f"pd-{name}", "labels": labels}}, _NAMESPACE)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db-pd", "uid": "1", "controller": True}
    spec = {"containers": [{"name": "pd", "image": "pingcap/pd"}]} | ({"nodeName": node} if node else {})
    meta = {"name": name, "labels": labels, "ownerReferences": [owner]}
    client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, _NAMESPACE)


def _node(name: str, size: int = _WHOLE_BYTES) -> Json:
    images = [{"names": [f"registry/image@sha256:{'0' * 64}"], "sizeBytes": 1}] * (size // 110)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"images": images},
    }
