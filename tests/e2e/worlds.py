"""The two worlds as an operator in a separate process meets them: API, nodes, data plane behind a forward proxy."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from apis.crd import KINDS, TIDB_CLUSTER, definition
from cli import manifests
from kube.client import Client
from kube.config import load_kubeconfig
from kube.errors import NotFound
from kube.http_transport import HttpTransport
from kube.objects import Json
from kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    NODES,
    SERVICE_ACCOUNTS,
    TIDB_CLUSTERS,
    Resource,
)
from ports.transport import Transport
from rehearsal.world import COMMANDS, PROGRAMS
from sandbox.conditions import holds
from sandbox.dataplane.commands import Command
from sandbox.dataplane.processes import Launch
from sandbox.dataplane.runtime import DataPlane
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings
from sandbox.world import DataPlaneWorld, World
from tests.controlplane.processes import ControlPlane
from tests.e2e.gate import Gate
from tests.e2e.manager_processes import PROCESS_IMAGE, run_as_process
from tests.e2e.operator_pods import CHECK, operator_program
from tests.e2e.operators import ROOT, Operator, reaching
from tests.e2e.waiting import CLOCK, eventually

MANIFESTS = ROOT / "manifests"
SAMPLES = MANIFESTS / "samples"
CRD = definition(TIDB_CLUSTER)
OTHER_CRDS = tuple(definition(kind) for kind in KINDS if kind is not TIDB_CLUSTER)

OPERATOR_NAMESPACE = "tidb-admin"
SERVICE_ACCOUNT = "tidb-controller-manager"

TIMINGS = Timings(store_heartbeat=1.0, store_disconnected=4.0)
"""Real time is waited for here: a lost store is missed sooner."""

_BIRTH = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """One of the two worlds. `transport` and `admin` belong to the admin, `account` and `kubeconfig` to a service
    account."""

    name: str
    directory: Path
    transport: Transport
    admin: Path
    account: Callable[[str, str], Transport]
    kubeconfig: Callable[[str, str], Path]
    world: World | DataPlaneWorld
    proxy: str

    @property
    def client(self) -> Client:
        """The API as admin."""
        return Client(self.transport, user_agent="e2e")

    @property
    def data_plane(self) -> DataPlane:
        """The programs in the pods."""
        return self.world.data_plane

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace of the test's own; its clusters are deleted behind it, and then itself."""
        name = f"e2e-{next(_BIRTH)}"
        self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        eventually(lambda: exists(self.client, SERVICE_ACCOUNTS, "default", name))
        try:
            yield name
        finally:
            for cluster in self.client.list_page(TIDB_CLUSTERS, name).items:
                delete_cluster(self.client, cluster.metadata.name, name)
            self.client.delete(NAMESPACES, name)

    @contextlib.contextmanager
    def gate(self, namespace: str = OPERATOR_NAMESPACE) -> Iterator[Gate]:
        """A way to the API server for the operator alone, as the service account of the manifests."""
        with Gate(self.account(namespace, SERVICE_ACCOUNT)) as gate:
            yield gate

    def environment(self, gate: Gate | None = None, namespace: str = OPERATOR_NAMESPACE) -> Mapping[str, str]:
        """The environment that leads an operator here, through a gate or directly; its Lease is its own."""
        path = write_kubeconfig(self.directory, gate.url) if gate else self.kubeconfig(namespace, SERVICE_ACCOUNT)
        return reaching(path, self.proxy, namespace, HELM_RELEASE=f"e2e-{next(_BIRTH)}")

    def new_log(self) -> Path:
        """A fresh file for what an operator says."""
        return self.directory / f"operator-{next(_BIRTH)}.log"


@contextlib.contextmanager
def sandbox(
    directory: Path,
    crds: Sequence[Json] = (CRD,),
    *,
    installed: bool = True,
    timings: Timings = TIMINGS,
    own_commands: Mapping[str, Command] | None = None,
    nodes: Iterable[NodeSpec] | None = None,
) -> Iterator[Place]:
    """The sandbox with our discovery service in its pods, our manifests and CRDs `installed` or not.

    `own_commands` replace the commands of images.
    """
    world = World(
        timings=timings,
        programs=PROGRAMS,
        commands={**COMMANDS, PROCESS_IMAGE: run_as_process, **(own_commands or {})},
        crds=(*crds, *OTHER_CRDS) if installed else (),
        nodes=nodes,
    )
    world.start()
    try:
        kubeconfig = world.write_kubeconfig(directory)
        _, proxy = world.serve_http()
        place = Place(
            "sandbox",
            directory,
            world.transport(),
            kubeconfig,
            lambda namespace, name: world.transport(f"system:serviceaccount:{namespace}:{name}"),
            lambda _, __: kubeconfig,
            world,
            proxy,
        )
        if installed:
            _install(place.client)
        eventually(lambda: is_serving(place.client))
        yield place
    finally:
        world.stop()


@contextlib.contextmanager
def real(
    control_plane: ControlPlane,
    directory: Path,
    crds: Sequence[Json] = (CRD,),
    *,
    timings: Timings = TIMINGS,
    nodes: Iterable[NodeSpec] | None = None,
    all_rights: bool = False,
) -> Iterator[Place]:
    """The real control plane with our manifests applied and the sandbox's nodes in front of it.

    Pods have the rights of their service accounts; with `all_rights` the administrator's, because v1.6's Role for
    Discovery is too narrow for ours, which runs in its pods. The operator's pods are processes.
    """
    with contextlib.closing(_Accounts(control_plane)) as accounts:
        client = Client(accounts.admin, user_agent="e2e")
        for crd in (*crds, *OTHER_CRDS):
            client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
        _install(client)

        started: list[Operator] = []

        def start(launch: Launch) -> Operator:
            kubeconfig = accounts.kubeconfig(launch.namespace, launch.service_account)
            environ = {**launch.env, **reaching(kubeconfig, world.serve_proxy())}
            log = directory / f"{launch.namespace}.{launch.pod}.{next(_BIRTH)}.log"
            started.append(Operator(log, environ, *launch.command[1:], "--metrics-addr=127.0.0.1:0"))
            return started[-1]

        world = DataPlaneWorld(
            accounts.admin,
            timings=timings,
            programs=PROGRAMS,
            servers=[operator_program(start)],
            commands={**COMMANDS, **CHECK, PROCESS_IMAGE: run_as_process},
            nodes=nodes,
            identity=(lambda _, __: accounts.admin) if all_rights else accounts.transport,
        )
        world.start()
        try:
            eventually(lambda: is_serving(client))
            yield Place(
                "real",
                directory,
                accounts.admin,
                control_plane.kubeconfig(),
                accounts.transport,
                accounts.kubeconfig,
                world,
                world.serve_proxy(),
            )
        finally:
            world.stop()
            for operator in started:
                operator.kill()
                operator.wait()


def _install(client: Client) -> None:
    """Our manifests except the Deployment: the operator runs outside the cluster here."""
    for name in ("deployment.yaml", "rbac-cluster.yaml"):
        documents = manifests.read(MANIFESTS / "operator" / name)
        manifests.apply(client, [document for document in documents if document.kind != "Deployment"])


class _Accounts:
    """Makes tokens for service accounts of the real control plane."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._transports: list[HttpTransport] = []
        self.admin = self._open(control_plane.kubeconfig())

    def kubeconfig(self, namespace: str, name: str) -> Path:
        """The kubeconfig of a service account, with a token of one hour."""
        asked: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = SERVICE_ACCOUNTS.path(namespace, name, "token")
        answer = msgspec.json.decode(Client(self.admin).request("POST", path, body=asked).body)
        return self._control_plane.kubeconfig(f"{namespace}.{name}", answer["status"]["token"])

    def transport(self, namespace: str, name: str) -> HttpTransport:
        """The API as a service account."""
        return self._open(self.kubeconfig(namespace, name))

    def close(self) -> None:
        """End all connections."""
        for transport in self._transports:
            transport.close()

    def _open(self, kubeconfig: Path) -> HttpTransport:
        transport = HttpTransport(load_kubeconfig(str(kubeconfig), CLOCK), {}, CLOCK)
        self._transports.append(transport)
        return transport


def write_kubeconfig(directory: Path, server: str, **user: str) -> Path:
    """A kubeconfig for a server on loopback."""
    path = directory / f"kubeconfig-{next(_BIRTH)}"
    tree = {
        "clusters": [{"name": "e2e", "cluster": {"server": server}}],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    path.write_text(yaml.safe_dump(tree))
    return path


def is_serving(client: Client) -> bool:
    """True if custom resources are served and pods find a node."""
    definitions = [each.decode() for each in client.list_page(CUSTOM_RESOURCE_DEFINITIONS).items]
    nodes = [node.decode() for node in client.list_page(NODES).items]
    return all(holds(each, "Established") for each in definitions) and any(
        holds(node, "Ready") and not node["spec"].get("taints") for node in nodes
    )


def exists(client: Client, resource: Resource, name: str, namespace: str = "") -> bool:
    """True if an object exists now."""
    return client.find(resource, name, namespace) is not None


def sample(name: str) -> Json:
    """A fresh tree of the TidbCluster in a sample."""
    (document,) = manifests.read(SAMPLES / f"{name}.yaml")
    return document.body


def create_cluster(client: Client, tree: Json, namespace: str) -> str:
    """Create a TidbCluster in a namespace; its name."""
    return client.create(TIDB_CLUSTERS, tree, namespace).metadata.name


def delete_cluster(client: Client, name: str, namespace: str) -> None:
    """Delete a TidbCluster and wait until it is gone."""
    with contextlib.suppress(NotFound):
        client.delete(TIDB_CLUSTERS, name, namespace, propagation="Background")
    eventually(lambda: not exists(client, TIDB_CLUSTERS, name, namespace))


def is_ready(client: Client, name: str, namespace: str) -> bool:
    """True if the cluster's Ready condition is True."""
    return holds(client.get(TIDB_CLUSTERS, name, namespace).decode(), "Ready")


def conditions(client: Client, name: str, namespace: str) -> list[str]:
    """The conditions of a cluster in short, for messages."""
    status = client.get(TIDB_CLUSTERS, name, namespace).decode().get("status", {})
    return [f"{c['type']}={c['status']} {c['reason']}: {c['message']}" for c in status.get("conditions", ())]


def await_ready(place: Place, operator: Operator, name: str, namespace: str, within: float = 60.0) -> float:
    """Wait until a cluster is Ready; how long it took, in seconds."""
    started = CLOCK.now()
    client = place.client

    def ready() -> bool:
        assert operator.is_running, f"ended with {operator.exit_code}: {operator.said[-3000:]}"
        return is_ready(client, name, namespace)

    eventually(ready, within, lambda: conditions(client, name, namespace))
    return CLOCK.now() - started
