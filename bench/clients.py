"""What SQL clients notice of thirteen operations on a cluster: errors, with and without retries, and the longest pause.

Both worlds of `tests/e2e`: the sandbox, and the sandbox's nodes on the real control plane. TiKV and PD take as long to
elect a leader as in reality, 10 and 3 seconds; all else is quick. The peer is v1.6.6 in the same world, if it was built
(`make upstream`). The clients and their retries: `bench.sql_clients`.

`python -m bench.clients [sandbox|real] [ours|v1.6.6] [OPERATION …]` measures a part.
"""

import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from apis.crd import TIDB_CLUSTER, definition
from apis.graceful_stop import GRACEFUL_STOP
from bench.figures import logs_to_stderr, note, show
from bench.place import QPS, QUICK, awaited, cluster
from bench.settled import Pods, are_replaced, is_settled, pods
from bench.sql_clients import Noticed, SqlClients
from cli.tidb.main import main as kubectl_tidb
from kube.objects import Json
from kube.resources import NODES, PODS, STORAGE_CLASSES, TIDB_CLUSTERS
from member.components import workload_names
from ports.sql import SqlLogin
from sandbox.conditions import condition
from sandbox.controllers.volumes import standard_storage_class
from sandbox.dataplane.pd.stores import NodeState
from sandbox.kubelet.nodes import NodeSpec
from tests.controlplane.processes import require_or_reason, running
from tests.e2e import operators, upstream, worlds
from tests.e2e.waiting import pause
from tests.e2e.worlds import Place

_NAME = "clients"
_WORLDS = ("sandbox", "real")
_OURS, _THEIRS = "ours", "v1.6.6"
_TIMINGS = replace(
    QUICK,
    container_start=0.5,
    graceful_stop=0.5,
    pd_start=0.5,
    pd_election=0.3,
    pd_leader_loss=3.0,
    tikv_start=1.0,
    tidb_start=1.0,
    raft_election=10.0,
    store_heartbeat=1.0,
    store_disconnected=4.0,
    store_check=3.0,
    region_tick=0.1,
    grace_second=0.1,
    script_second=0.1,
)
_FLAGS = (*QPS, "--tikv-failover-period=10s")
_MACHINE = "bench/machine"
_NODES = [
    NodeSpec(f"node-{at}", f"192.168.0.{at + 10}", f"zone-{at % 3}", labels={_MACHINE: "tikv" if at > 2 else "other"})
    for at in range(7)
]
"""Four for TiKV, of which one is spare, so that a lost node costs no other server."""
_VOLUMES = "network"
"""A class of volumes that follow a pod to another node."""
_PATIENCE = 240.0
_REST = 3.0
"""Seconds before and after each operation: the regions come to rest, and late effects still count."""
_SETTLE = 15.0
"""Seconds after a take-over."""


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The cluster in a namespace, and whose operator works on it."""

    place: Place
    namespace: str
    operator: str

    def create(self) -> None:
        """Create it and wait until it is Ready."""
        self.place.client.create(TIDB_CLUSTERS, manifest(), self.namespace)
        self.settles(lambda: True)

    def change(self, **spec: object) -> None:
        """Patch its spec."""
        self.place.client.patch(TIDB_CLUSTERS, _NAME, self.namespace, {"spec": spec})

    def pods(self, *components: str) -> Pods:
        """Its pods."""
        return pods(self.place.client, components, self.namespace)

    def node_of(self, pod: str) -> str:
        """The node of a pod; empty before the scheduler has found one."""
        node: str = self.place.client.get(PODS, pod, self.namespace).decode()["spec"].get("nodeName", "")
        return node

    def is_ours(self) -> bool:
        """True if our operator has reconciled it: v1.6 has no condition Progressing."""
        tree = self.place.client.get(TIDB_CLUSTERS, _NAME, self.namespace).decode()
        return condition((tree.get("status") or {}).get("conditions"), "Progressing") is not None

    def live_stores(self) -> int:
        """The number of TiKV stores that serve."""
        pd = self.place.data_plane.pd_cluster(self.namespace, _NAME)
        stores = pd.stores.all() if pd is not None else []
        return sum(store.dead_since is None and store.node_state is NodeState.SERVING for store in stores)

    def settles(self, done: Callable[[], bool]) -> None:
        """Wait until an operation is `done` and the cluster at rest. Raises TimeoutError."""
        awaited(lambda: done() and is_settled(self.place.client, _NAME, self.namespace), "the operation", _PATIENCE)

    def clients(self) -> SqlClients:
        """Clients of its TiDB Service."""
        return SqlClients(self.place.data_plane.sql(), SqlLogin(f"{_NAME}-tidb.{self.namespace}", 4000, "root"))


def _upgrade(cluster: _Cluster) -> None:
    before = cluster.pods(*workload_names())
    cluster.change(version="v8.5.3")
    cluster.settles(lambda: are_replaced(before, cluster.pods(*workload_names())))


def _configure(cluster: _Cluster) -> None:
    before = cluster.pods("tikv")
    # v1.6.6 restarts nothing for `log.file.max-days`
    cluster.change(tikv={"config": {"storage": {"reserve-space": "1GB"}}})
    cluster.settles(lambda: are_replaced(before, cluster.pods("tikv")))


def _scale(component: str, replicas: int) -> Callable[[_Cluster], None]:
    def scale(cluster: _Cluster) -> None:
        cluster.change(**{component: {"replicas": replicas}})
        cluster.settles(lambda: len(cluster.pods(component)) == replicas)

    return scale


def _delete_pod(cluster: _Cluster) -> None:
    """`kubectl delete pod`."""
    pod = f"{_NAME}-tikv-1"
    before = cluster.pods("tikv")[pod]
    cluster.place.client.delete(PODS, pod, cluster.namespace)
    cluster.settles(lambda: cluster.pods("tikv").get(pod, before) != before)


def _delete_pod_with_hooks(cluster: _Cluster) -> None:
    """`kubectl delete pod` after the hooks have come in by a roll, which counts, too."""
    before = cluster.pods("tikv")
    cluster.place.client.patch(
        TIDB_CLUSTERS, _NAME, cluster.namespace, {"metadata": {"annotations": {GRACEFUL_STOP: "true"}}}
    )
    cluster.settles(lambda: are_replaced(before, cluster.pods("tikv")))
    _delete_pod(cluster)


def _drain(cluster: _Cluster) -> None:
    """`kubectl tidb drain`; with v1.6.6, which has no such command, `kubectl drain`."""
    pod, client = f"{_NAME}-tikv-0", cluster.place.client
    node = cluster.node_of(pod)
    try:
        if cluster.operator == _OURS:
            with redirect_stdout(sys.stderr):
                environment = {"KUBECONFIG": str(cluster.place.admin)}
                kubectl_tidb(["drain", node, "--yes", f"--timeout={_PATIENCE:g}"], environment)
        else:
            client.patch(NODES, node, "", {"spec": {"unschedulable": True}})
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
            client.request("POST", PODS.path(cluster.namespace, pod, "eviction"), body=eviction)
        cluster.settles(lambda: pod in cluster.pods("tikv") and cluster.node_of(pod) not in ("", node))
    finally:
        client.patch(NODES, node, "", {"spec": {"unschedulable": None}})


def _lose_node(cluster: _Cluster) -> None:
    """The machine of a TiKV stops, and another store replaces the lost one."""
    gone, node = cluster.place.world.kubelet.faults.gone, cluster.node_of(f"{_NAME}-tikv-2")
    gone.add(node)
    cluster.place.data_plane.changed()
    try:
        done = "three stores to serve again"
        awaited(lambda: len(cluster.pods("tikv")) > 3 and cluster.live_stores() >= 3, done, _PATIENCE)
    finally:
        gone.discard(node)


_TAKE_OVER = "take_over"
_WITH_HOOKS = "delete_tikv_pod_with_hooks"
"""What v1.6.6 cannot do."""
_OPERATIONS: Mapping[str, Callable[[_Cluster], None]] = MappingProxyType(
    {
        "upgrade": _upgrade,
        "configuration": _configure,
        "tikv_3_to_4": _scale("tikv", 4),
        "tikv_4_to_3": _scale("tikv", 3),
        "tidb_2_to_3": _scale("tidb", 3),
        "tidb_3_to_2": _scale("tidb", 2),
        "pd_3_to_4": _scale("pd", 4),
        "pd_4_to_3": _scale("pd", 3),
        "delete_tikv_pod": _delete_pod,
        _WITH_HOOKS: _delete_pod_with_hooks,
        "drain_tikv_node": _drain,
        "lose_tikv_node": _lose_node,
    }
)
"""All but the take-over. A lost node is last, because the cluster stays larger."""

_Figures: TypeAlias = Iterator[tuple[str, Noticed]]


def main(words: Collection[str] = ()) -> int:
    """Measure everything, or what the words name. 1 if no control plane was built, 2 for an unknown word."""
    every = (*_WORLDS, _OURS, _THEIRS, _TAKE_OVER, *_OPERATIONS)
    if unknown := set(words) - set(every):
        note(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(every)}")
        return 2
    if reason := require_or_reason():
        note(reason)
        return 1
    names = _chosen(words, (_TAKE_OVER, *_OPERATIONS))
    for world in _chosen(words, _WORLDS):
        with tempfile.TemporaryDirectory() as directory, _place(world, Path(directory)) as place:
            of = {who: dict(_figures(place, who, names)) for who in _chosen(words, (_THEIRS, _OURS))}
        _show(world, of.get(_OURS, {}), of.get(_THEIRS, {}))
    return 0


def _chosen(words: Collection[str], of: Sequence[str]) -> Sequence[str]:
    return [each for each in of if each in words] or of


@contextmanager
def _place(world: str, directory: Path) -> Iterator[Place]:
    """A world with v1.6's definition of a TidbCluster, whose status has no subresource."""
    definitions = [definition(TIDB_CLUSTER, status_subresource=False)]
    with ExitStack() as stack:
        if world == "sandbox":
            place = worlds.sandbox(directory, definitions, timings=_TIMINGS, nodes=_NODES)
        else:
            own = directory / "control-plane"
            own.mkdir()
            control_plane = stack.enter_context(running(own))
            place = worlds.real(control_plane, directory, definitions, timings=_TIMINGS, nodes=_NODES, all_rights=True)
        here = stack.enter_context(place)
        volumes = standard_storage_class() | {"metadata": {"name": _VOLUMES}, "provisioner": "ebs.csi.aws.com"}
        volumes["volumeBindingMode"] = "Immediate"
        here.client.create(STORAGE_CLASSES, volumes)
        yield here


def _figures(place: Place, who: str, names: Sequence[str]) -> _Figures:
    """What clients notice of some operations by one operator; those that do not end are left out."""
    measure = _of_ours if who == _OURS else _of_theirs
    try:
        for name, noticed in measure(place, names):
            errors = ", ".join(f"{count} x {text}" for text, count in noticed.messages.most_common(3))
            note(f"{place.name}, {who}, {name}: {noticed.errors} errors, {noticed.longest:.1f} s {errors}")
            yield name, noticed
    except TimeoutError as error:
        note(f"{place.name}, {who}: the cluster is not Ready: {error}")


def _of_theirs(place: Place, names: Sequence[str]) -> _Figures:
    if not upstream.BINARY.exists():
        note(f"no {upstream.BINARY.name}: run `make upstream`")
        return
    with place.namespace() as namespace, _v16(place, namespace):
        cluster = _Cluster(place, namespace, _THEIRS)
        cluster.create()
        clients = cluster.clients()
        with clients.running():
            yield from _operate(cluster, clients, names)


def _of_ours(place: Place, names: Sequence[str]) -> _Figures:
    """v1.6.6 creates the cluster, if it was built."""
    with ExitStack() as ours, place.namespace() as namespace, ExitStack() as theirs:
        taken = _Cluster(place, namespace, _OURS)

        def start() -> None:
            log, environment = place.new_log(), place.environment()
            ours.enter_context(operators.running(log, environment, *_FLAGS, program=operators.PROGRAM))

        def take_over() -> None:
            theirs.close()
            start()
            pause(_SETTLE)
            taken.settles(taken.is_ours)

        there = upstream.BINARY.exists()
        if there:
            theirs.enter_context(_v16(place, namespace))
        else:
            start()
        taken.create()
        clients = taken.clients()
        with clients.running():
            if there:
                yield _TAKE_OVER, _noticed(clients, take_over)
            yield from _operate(taken, clients, names)


def _operate(cluster: _Cluster, clients: SqlClients, names: Sequence[str]) -> _Figures:
    left_out = {_TAKE_OVER} if cluster.operator == _OURS else {_TAKE_OVER, _WITH_HOOKS}
    for name in names:
        if name not in left_out:
            try:
                yield name, _noticed(clients, partial(_OPERATIONS[name], cluster))
            except TimeoutError as error:
                note(f"{cluster.place.name}, {cluster.operator}, {name} is left out: {error}")


def _noticed(clients: SqlClients, act: Callable[[], object]) -> Noticed:
    pause(_REST)
    with clients.measured() as noticed:
        act()
        pause(_REST)
    return noticed


@contextmanager
def _v16(place: Place, namespace: str) -> Iterator[None]:
    """v1.6.6 at work, with the administrator's rights."""
    environment = {**place.environment(), "KUBECONFIG": str(place.admin)}
    with (
        tempfile.TemporaryDirectory() as directory,
        upstream.running(Path(directory), environment, [(namespace, _NAME)], *_FLAGS),
    ):
        yield


def manifest() -> Json:
    """A cluster of 3/3/2 whose TiKV pods have nodes of their own."""
    tree = cluster(_NAME)
    del tree["metadata"]["namespace"]
    spec = tree["spec"]
    spec |= {"configUpdateStrategy": "RollingUpdate", "nodeSelector": {_MACHINE: "other"}}
    spec["pd"] |= {"storageClassName": _VOLUMES, "config": {"schedule": {"max-store-down-time": "10s"}}}
    alone = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "tikv"}},
    }
    spec["tikv"] |= {
        "storageClassName": _VOLUMES,
        "nodeSelector": {_MACHINE: "tikv"},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}},
    }
    return tree


def _show(world: str, ours: Mapping[str, Noticed], theirs: Mapping[str, Noticed]) -> None:
    for name, noticed in ours.items():
        peers = _shown(theirs[name]) if name in theirs else {}
        for (what, unit), value in _shown(noticed).items():
            show(f"clients_{world}_{name}_{what}", value, peers.get((what, unit)), unit, f"{_THEIRS} in the same world")


def _shown(noticed: Noticed) -> Mapping[tuple[str, str], float]:
    """The figures of an operation, by name and unit."""
    return {
        ("errors", "errors"): noticed.errors,
        ("given_up", "transactions"): noticed.given_up,
        ("longest", "s"): noticed.longest,
    }


if __name__ == "__main__":
    logs_to_stderr()
    sys.exit(main(sys.argv[1:]))
