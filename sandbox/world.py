"""The whole world in one process: API server, controllers, scheduler, kubelet, data plane (design.md 4).

`World` has its own control plane. `DataPlaneWorld` puts kubelet, data plane and provisioner in front of a real one.
Both run in threads (`start`, `stop`); a World with a FakeClock can instead be driven step by step in one thread
(`settle`, `advance`, `run_until`), and then one seed is one run.
"""

import contextlib
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import yaml

from kube.client import Client
from kube.config import POD_NETWORK
from kube.errors import AlreadyExists
from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    ENDPOINTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
    Resource,
)
from ports.clock import Clock, FakeClock, SystemClock
from ports.randomness import Randomness, SystemRandomness
from ports.stopping import Stop
from ports.transport import Transport
from sandbox.actor import Actor
from sandbox.actor_system import ActorSystem, NeverSettles, advance, settle
from sandbox.apiserver import ApiServer, Faults, InProcessTransport
from sandbox.apiserver.faults import no_faults
from sandbox.apiserver.http_server import HttpServer
from sandbox.apiserver.storage import Journal
from sandbox.cluster import Cluster
from sandbox.controllers.deployment import Deployments, ReplicaSets
from sandbox.controllers.endpoints import ENDPOINT_SLICES, EndpointControllers
from sandbox.controllers.garbage_collector import GarbageCollector
from sandbox.controllers.job import Jobs
from sandbox.controllers.namespaces import Namespaces
from sandbox.controllers.node_lifecycle import NodeLifecycle
from sandbox.controllers.stateful_set import StatefulSets
from sandbox.controllers.taint_eviction import TaintEviction
from sandbox.controllers.volume_attributes import Resizer
from sandbox.controllers.volumes import NO_PROVISIONER, Provisioner, VolumeBinder, standard_storage_class
from sandbox.dataplane.commands import Command
from sandbox.dataplane.interconnect import Interconnect
from sandbox.dataplane.network import Network, Origin
from sandbox.dataplane.program import Factory, Handler
from sandbox.dataplane.runtime import Commands, DataPlane, Identity, Machine, Questions
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.tls import PROVEN
from sandbox.dataplane.transport import DataPlaneTransport
from sandbox.directory import CLUSTER_DOMAIN, ClusterDirectory
from sandbox.fault_requests import PATH as FAULTS
from sandbox.fault_requests import FaultRequests
from sandbox.faults import WorldFaults
from sandbox.forward_proxy import ForwardProxy, connect_through
from sandbox.kubelet.kubelet import Kubelet
from sandbox.kubelet.nodes import Nodes, NodeSpec, three_nodes
from sandbox.mirror import Mirror
from sandbox.notifier import Notifier
from sandbox.overlap import overlapping
from sandbox.scheduler import Scheduler
from sandbox.timings import Timings

ADMIN = "system:admin"

_QUIET, _SETTLES_WITHIN = 3.0, 300.0

_NODE_SIDE = (
    PODS,
    NODES,
    SERVICES,
    CONFIG_MAPS,
    SECRETS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
)
_CONTROLLED = (
    NAMESPACES,
    ENDPOINTS,
    ENDPOINT_SLICES,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    REPLICA_SETS,
    JOBS,
)


class Real(Machine, Protocol):
    """The machine with the network of its pods."""

    @property
    def journal(self) -> Journal | None:
        """What keeps the objects of its world; None if they end with the process."""

    def gateway(
        self,
        cluster: Cluster,
        network: Network,
        play: Callable[[socket.socket, str], None],
        issue: Callable[[str], str],
        dial: Callable[[], socket.socket],
    ) -> Actor:
        """The actor through which its pods reach Services, names, simulated pods, which `play` plays, and the API.

        `issue` returns a token for a user of the API, to which `dial` connects.
        """

    def close(self) -> None:
        """Kill all processes. Idempotent."""


MakeExtender = Callable[[Transport, Clock, Randomness], Handler]
"""Creates a scheduler extender that uses the given transport to the API server."""


class NodeSide:
    """Kubelet, data plane and provisioner as clients of some control plane."""

    def __init__(
        self,
        *,
        clock: Clock,
        randomness: Randomness,
        timings: Timings,
        notifier: Notifier,
        mirror: Mirror,
        transport: Callable[[str], Transport],
        identity: Identity,
        programs: Mapping[str, Factory],
        servers: Iterable[ServerProgram],
        commands: Mapping[str, Command] | None,
        nodes: Iterable[NodeSpec],
        pause: Callable[[float], None],
        interconnect: Interconnect,
        domain: str = CLUSTER_DOMAIN,
        machine: Machine | None = None,
    ) -> None:
        """`transport` returns the API for a component; `identity` returns it for a service account."""

        def seen_by(component: str) -> Cluster:
            client = Client(transport(component), user_agent=f"sandbox/{component}")
            return Cluster(mirror, client, clock, randomness, component)

        self.seen_by = seen_by
        self.data_plane = DataPlane(
            clock=clock,
            randomness=randomness,
            timings=timings,
            notifier=notifier,
            directory=ClusterDirectory(seen_by("dns"), domain),
            identity=identity,
            programs=programs,
            servers=servers,
            commands=commands,
            pause=pause,
            interconnect=interconnect,
            domain=domain,
            machine=machine,
        )
        self.provisioner = Provisioner(seen_by("provisioner"), timings)
        own_nodes = Nodes(seen_by("kubelet"), nodes, timings)
        self.kubelet = Kubelet(seen_by("kubelet"), self.data_plane, own_nodes, timings)
        questions = Questions(self.data_plane)
        self.actors: list[Actor] = [
            self.data_plane,
            questions,
            Commands(self.data_plane),
            own_nodes,
            self.kubelet,
            self.provisioner,
            Resizer(seen_by("resizer"), timings),
        ]


class World:
    """A Kubernetes cluster of its own, with simulated nodes and data plane."""

    def __init__(
        self,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        timings: Timings | None = None,
        programs: Mapping[str, Factory] | None = None,
        *,
        servers: Iterable[ServerProgram] = (),
        commands: Mapping[str, Command] | None = None,
        crds: Sequence[Json] = (),
        nodes: Iterable[NodeSpec] | None = None,
        faults: Faults = no_faults,
        pause: Callable[[float], None] | None = None,
        domain: str = CLUSTER_DOMAIN,
        beside: "World | None" = None,
        extenders: Mapping[str, MakeExtender] | None = None,
        machine: Real | None = None,
    ) -> None:
        """`servers` extend the built-in ones; for `programs` and `commands` see `DataPlane`.

        With the definition of Advanced StatefulSets among `crds`, their controller runs.

        `extenders` are the scheduler's, by the scheduler name in pods.

        `pause` lets a caller of the data plane wait; by default the rest of the world continues meanwhile. `beside` is
        another Kubernetes with another `domain`; pods and names of both can reach each other. The two share the clock,
        and moving it in one moves it in both.

        `machine` runs containers as real processes, in a world that runs in threads.
        """
        self.clock: Clock = clock or (beside.clock if beside else SystemClock())
        self.domain = domain
        self.interconnect: Interconnect = beside.interconnect if beside else Interconnect()
        self._randomness = randomness or SystemRandomness()
        self._token = self._randomness.uuid()
        self._threaded = False
        self._components: set[str] = set()
        self._stop = Stop()
        tokens = {self._token: ADMIN}
        self.server = ApiServer(self.clock, self._randomness, tokens, faults, pause=pause or self._pause)
        self._http: HttpServer | None = None
        self._proxy: ForwardProxy | None = None
        custom = self._install(crds)
        if machine is not None and machine.journal is not None:
            self.server.resume(machine.journal)
        notifier = Notifier(self.clock)
        mirror = Mirror(self._client("mirror"), (*_NODE_SIDE, *_CONTROLLED, *custom), self.clock, notifier)
        self._mirror = mirror
        side = NodeSide(
            clock=self.clock,
            randomness=self._randomness,
            timings=timings or Timings(),
            notifier=notifier,
            mirror=mirror,
            transport=self._component_transport,
            identity=lambda namespace, name: self.transport(f"system:serviceaccount:{namespace}:{name}"),
            programs=programs or {},
            servers=servers,
            commands=commands,
            nodes=three_nodes() if nodes is None else nodes,
            pause=overlapping(pause or self._pause),
            interconnect=self.interconnect,
            domain=domain,
            machine=machine,
        )
        self.data_plane = side.data_plane
        self.kubelet = side.kubelet
        self.kubelet.reserve(stored.tree() for stored in self.server.storage.objects(PODS.plural))
        self._provisioner = side.provisioner
        self.server.find_output = side.kubelet.output
        self.server.dial = self._dial
        made = {
            name: make(self._component_transport(name), self.clock, self._randomness)
            for name, make in (extenders or {}).items()
        }
        scheduler = self._scheduler = Scheduler(side.seen_by("scheduler"), timings or Timings(), made)
        stateful_sets = StatefulSets(side.seen_by("statefulset-controller"))
        advanced = [
            StatefulSets(side.seen_by("advanced-statefulset-controller"), resource)
            for resource in custom
            if resource == ADVANCED_STATEFUL_SETS
        ]
        actors: list[Actor] = [
            Namespaces(side.seen_by("namespace-controller")),
            NodeLifecycle(side.seen_by("node-controller")),
            TaintEviction(side.seen_by("taint-eviction-controller")),
            stateful_sets,
            *advanced,
            Deployments(side.seen_by("deployment-controller")),
            ReplicaSets(side.seen_by("replicaset-controller")),
            Jobs(side.seen_by("job-controller"), (timings or Timings()).crash_back_off),
            VolumeBinder(side.seen_by("persistent-volume-binder")),
            scheduler,
            *side.actors,
            EndpointControllers(side.seen_by("endpoints-controller")),
            GarbageCollector(side.seen_by("garbage-collector")),
        ]
        self._machine = machine
        if machine is not None:
            beside_pods = self.data_plane.network, self._play, self.server.issue_token, self._dial_api
            actors.append(machine.gateway(side.seen_by("kube-proxy"), *beside_pods))
        self._actors = ActorSystem(self.clock, notifier, mirror, actors, self.server.storage)
        self._all_actors: list[ActorSystem] = beside._all_actors if beside else []
        """The actors of all worlds that share the clock."""
        self._all_actors.append(self._actors)
        self.faults = WorldFaults(
            server=self.server,
            administrator=self._client("administrator"),
            notifier=notifier,
            kubelet=self.kubelet,
            scheduler=scheduler,
            stateful_sets=stateful_sets,
            data_plane=self.data_plane,
            components=self._components,
        )

    @property
    def mirror(self) -> Mirror:
        """The objects as the built-in actors see them."""
        return self._mirror

    def take_over(self, objects: Mapping[Resource, Iterable[Json]]) -> None:
        """Before the start: continue the Kubernetes that these objects were read from. Running pods keep running.

        Volumes of all its provisioners can be had here.
        """
        for resource, trees in objects.items():
            for tree in trees:
                self.server.load(resource, tree)
        self._provisioner.names |= {each["provisioner"] for each in objects.get(STORAGE_CLASSES, ())} - {NO_PROVISIONER}
        running = [each for each in objects.get(PODS, ()) if each.get("status", {}).get("phase") == "Running"]
        self.kubelet.adopt(running)
        names = (f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in running)
        self._scheduler.former = dict(zip(names, (each["spec"]["nodeName"] for each in running), strict=True))

    def prefer(self, nodes: Mapping[str, str]) -> None:
        """From now on, schedule these pods, by `namespace/name`, on these nodes if they fit there.

        Among several nodes, kube-scheduler's choice depends on the order of pods within milliseconds, and on chance.
        """
        self._scheduler.preferred = nodes

    def start(self) -> None:
        """Run in threads until `stop`."""
        self._threaded = True
        self._actors.start(self._stop)

    def stop(self) -> None:
        """End everything; no thread is left. Idempotent."""
        self._stop.set()
        if self._proxy is not None:
            self._proxy.stop()
            self._proxy = None
        if self._http is not None:
            self._http.stop()
            self._http = None
        self.server.disconnect()
        self._actors.join()
        self.data_plane.end_commands()
        if self._machine is not None:
            self._machine.close()

    def settle(self) -> None:
        """Single-threaded: let all actors do their due work. Raises NeverSettles."""
        settle(self._all_actors, self.clock)

    def advance(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Single-threaded: let time pass event by event; stop early when `until` returns True. Needs a FakeClock.

        Returns the result of `until`.
        """
        return advance(self._all_actors, self._fake_clock(), seconds, until)

    def run_until(self, condition: Callable[[], bool], within: float) -> None:
        """Single-threaded: let time pass until `condition` returns True. Raises NeverSettles after `within` seconds."""
        if not advance(self._all_actors, self._fake_clock(), within, condition):
            raise NeverSettles(f"the condition did not hold within {within} s")

    def run_until_settled(self) -> None:
        """Single-threaded: let time pass until no object has changed for 3 s. Raises NeverSettles after 300 s."""
        clock = self._fake_clock()
        end = clock.now() + _SETTLES_WITHIN
        while clock.now() < end:
            before = self._versions()
            self.advance(_QUIET)
            if self._versions() == before:
                return
        raise NeverSettles(f"objects still change after {_SETTLES_WITHIN} s")

    def transport(self, user: str = ADMIN) -> Transport:
        """The Kubernetes API in process, for a user."""
        return InProcessTransport(self.server, user)

    def client(self, user: str = ADMIN) -> Client:
        """A client of the Kubernetes API for a user."""
        return Client(self.transport(user), user_agent="sandbox")

    def data_plane_transport(self, origin: Origin | None = None) -> DataPlaneTransport:
        """PD, TiKV and TiDB in process, from outside or from a pod."""
        return self.data_plane.transport(origin)

    def serve_http(self) -> tuple[str, str]:
        """Serve on free ports of 127.0.0.1; return the URLs of the API server and of the data plane's proxy."""
        if self._http is None or self._proxy is None:
            self.server.beside[FAULTS] = FaultRequests(self.faults, self.client()).answer
            self._http = HttpServer(self.server)
            self._proxy = _forward_proxy(self.data_plane)
            self._http.start()
            self._proxy.start()
        return self._http.url, f"http://127.0.0.1:{self._proxy.port}"

    def write_kubeconfig(self, directory: Path, programs: Path | None = None) -> Path:
        """Write `kubeconfig`, and `env` for a shell to source, into a directory; return the kubeconfig's path.

        `programs`: a directory that `env` puts on PATH.
        """
        api, proxy = self.serve_http()
        directory.mkdir(parents=True, exist_ok=True)
        path = directory.absolute() / "kubeconfig"
        path.write_text(yaml.safe_dump(_kubeconfig(api, self._token, proxy), sort_keys=False), "utf-8")
        path.chmod(0o600)
        # a path may contain bytes that are not text
        (directory / "env").write_text(_environment(path, proxy, programs), encoding="utf-8", errors="surrogateescape")
        return path

    def _client(self, component: str) -> Client:
        return Client(self._component_transport(component), user_agent=f"sandbox/{component}")

    def _component_transport(self, component: str) -> Transport:
        user = f"system:{component}"
        self._components.add(user)
        return self.transport(user)

    def _install(self, crds: Sequence[Json]) -> tuple[Resource, ...]:
        admin = self._client("installer")
        admin.create(STORAGE_CLASSES, standard_storage_class())
        for crd in crds:
            admin.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
        return tuple(custom_resource(crd) for crd in crds)

    def _play(self, connection: socket.socket, authority: str) -> None:
        """Play a simulated server for a real process."""
        self.serve_http()
        if self._proxy is not None:
            self._proxy.play(connection, authority)

    def _dial(self, address: str, port: int) -> socket.socket:
        """A connection to a port of a pod, through the proxy, which also plays simulated servers. Raises OSError."""
        self.serve_http()
        proxy = self._proxy
        if proxy is None or not self.data_plane.network.is_open(address, port, Origin()):
            raise ConnectionRefusedError(f"connection to {address}:{port} refused")
        return connect_through(proxy.port, f"{address}:{port}")

    def _dial_api(self) -> socket.socket:
        """A connection to the API server. Raises OSError."""
        self.serve_http()
        assert self._http is not None
        return socket.create_connection(("127.0.0.1", self._http.port))

    def _pause(self, seconds: float) -> None:
        if self._threaded or not isinstance(self.clock, FakeClock):
            self._stop.wait(self.clock, seconds)
        else:
            advance(self._all_actors, self.clock, seconds)

    def _fake_clock(self) -> FakeClock:
        if not isinstance(self.clock, FakeClock):
            raise TypeError("only a world with a FakeClock can be driven step by step")
        return self.clock

    def _versions(self) -> list[str]:
        return [
            tree["metadata"]["resourceVersion"]
            for resource in self._mirror.resources
            for tree in self._mirror.list(resource)
        ]


class DataPlaneWorld:
    """Simulated nodes and data plane in front of a real control plane, in threads."""

    def __init__(
        self,
        transport: Transport,
        *,
        timings: Timings | None = None,
        programs: Mapping[str, Factory] | None = None,
        servers: Iterable[ServerProgram] = (),
        commands: Mapping[str, Command] | None = None,
        nodes: Iterable[NodeSpec] | None = None,
        identity: Identity | None = None,
    ) -> None:
        """`transport` reaches the API with all rights; pods' programs get `identity`, by default the same transport."""
        self.clock = SystemClock()
        self._stop = Stop()
        self._client = Client(transport, user_agent="sandbox")
        notifier = Notifier(self.clock)
        mirror = Mirror(self._client, _NODE_SIDE, self.clock, notifier)
        side = NodeSide(
            clock=self.clock,
            randomness=SystemRandomness(),
            timings=timings or Timings(),
            notifier=notifier,
            mirror=mirror,
            transport=lambda _: transport,
            identity=identity or (lambda _, __: transport),
            programs=programs or {},
            servers=servers,
            commands=commands,
            nodes=three_nodes() if nodes is None else nodes,
            pause=self._pause,
            interconnect=Interconnect(),
        )
        self.data_plane = side.data_plane
        self.kubelet = side.kubelet
        self._actors = ActorSystem(self.clock, notifier, mirror, side.actors)
        self._proxy: ForwardProxy | None = None

    def start(self) -> None:
        """Install the StorageClass and run in threads until `stop`."""
        with contextlib.suppress(AlreadyExists):
            self._client.create(STORAGE_CLASSES, standard_storage_class())
        self._actors.start(self._stop)

    def stop(self) -> None:
        """End everything; no thread is left. Idempotent."""
        self._stop.set()
        if self._proxy is not None:
            self._proxy.stop()
            self._proxy = None
        self._actors.join()
        self.data_plane.end_commands()

    def data_plane_transport(self, origin: Origin | None = None) -> DataPlaneTransport:
        """PD, TiKV and TiDB in process."""
        return self.data_plane.transport(origin)

    def serve_proxy(self) -> str:
        """Serve the data plane on a free port of 127.0.0.1; return the proxy's URL."""
        if self._proxy is None:
            self._proxy = _forward_proxy(self.data_plane)
            self._proxy.start()
        return f"http://127.0.0.1:{self._proxy.port}"

    def _pause(self, seconds: float) -> None:
        self._stop.wait(self.clock, seconds)


def _forward_proxy(data_plane: DataPlane) -> ForwardProxy:
    transport = data_plane.transport(Origin(certificate=PROVEN))

    def dial(host: str, port: int) -> socket.socket | None:
        found = data_plane.network.target(host, port, Origin())
        connect = getattr(found[0].process, "connect", None) if found else None
        return connect(found[1]) if found and connect else None

    return ForwardProxy(transport, data_plane.network.server_side, data_plane.sql().server, dial)


def load_crds(path: Path) -> list[Json]:
    """The CustomResourceDefinitions of a YAML or JSON file."""
    documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return [document for document in documents if document and document.get("kind") == "CustomResourceDefinition"]


def custom_resource(crd: Json) -> Resource:
    """The resource of a CustomResourceDefinition's stored version."""
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each.get("storage"))
    names = spec["names"]
    return Resource(spec["group"], version, names["plural"], names["kind"], spec.get("scope") == "Namespaced")


def _kubeconfig(server: str, token: str, proxy: str) -> Json:
    network = {"name": POD_NETWORK, "extension": {"proxy-url": proxy}}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {"server": server, "extensions": [network]}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "admin"}}],
        "current-context": "sandbox",
    }


def _quoted(value: str) -> str:
    """A value quoted for a shell, whatever it contains."""
    return "'" + value.replace("'", "'\\''") + "'"


def _environment(kubeconfig: Path, proxy: str, programs: Path | None) -> str:
    """What a shell sources. `sandbox_off` undoes it; sourced twice, it is undone first."""
    path = f'export PATH={_quoted(str(programs))}:"$PATH"' if programs else ":"
    return f"""\
# Source this file to use the sandbox in a shell; `sandbox_off` undoes it.
if [ -n "${{SANDBOX_PROXY+x}}" ] && command -v sandbox_off >/dev/null; then sandbox_off; fi
_sandbox_path=$PATH
_sandbox_kubeconfig=${{KUBECONFIG-}}
_sandbox_had_kubeconfig=${{KUBECONFIG+x}}
sandbox_off() {{
    export PATH="$_sandbox_path"
    if [ -n "$_sandbox_had_kubeconfig" ]; then export KUBECONFIG="$_sandbox_kubeconfig"; else unset KUBECONFIG; fi
    unset SANDBOX_PROXY _sandbox_path _sandbox_kubeconfig _sandbox_had_kubeconfig
    unset -f sandbox_off
}}
export KUBECONFIG={_quoted(str(kubeconfig))}
{path}
# reaches the pods: curl -x "$SANDBOX_PROXY" http://basic-pd.default:2379/pd/api/v1/members
export SANDBOX_PROXY={_quoted(proxy)}
"""
