"""The operator in the sandbox, both in one thread on a clock that is stepped: one seed, one run.

What is real: the sync with all its stages, the queue with its back-off, the event handlers, the recorder, the
doors, Discovery, and the whole sandbox. What stands in is the informers: a `Cache` that looks when it is told to.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from prometheus_client import CollectorRegistry

from apis.crd import TIDB_CLUSTER, definition
from controllers.controller import Controller
from controllers.metrics import ClusterMetrics, ControllerMetrics
from controllers.queues import controller_queue
from controllers.tidbcluster import events
from controllers.tidbcluster.sync import TidbClusterSync
from dataplane.clients import DataPlane
from dataplane.tls import TlsMaterial, client_context
from discovery.app import make_handler
from informers.handlers import ResourceEventHandler
from kube.apply import Applier
from kube.client import Client
from kube.errors import NotFound
from kube.events import COMPONENT, EventRecorder
from kube.objects import Json, Object
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from member.labels import MANAGED_BY, TIDB_OPERATOR
from member.round import Doors, Listers, Settings
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.randomness import SeededRandomness
from ports.transport import ByteStream, Request, Response, Transport
from sandbox.apiserver import Faults
from sandbox.apiserver.faults import no_faults
from sandbox.kubelet.nodes import NodeSpec
from sandbox.stage import Restless
from sandbox.world import World
from workqueue.timers import Timers

NAMESPACE = "default"
OPERATOR = "system:serviceaccount:tidb-admin:tidb-controller-manager"
SAMPLES = Path(__file__).resolve().parents[1] / "manifests" / "samples"

_CACHE = "system:cache"
_RESYNC = 30.0
_SYNCS_AT_ONCE = 100
_OWNED = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)
_CACHED = (TIDB_CLUSTERS, PODS, PERSISTENT_VOLUME_CLAIMS, *_OWNED)


class Cache:
    """What the informers would hold of one resource, as of the last `look`."""

    def __init__(self, client: Client, resource: Resource) -> None:
        self._client = client
        self._resource = resource
        self._selector = "" if resource is TIDB_CLUSTERS else f"{MANAGED_BY}={TIDB_OPERATOR}"
        self._objects: dict[str, Object] = {}
        self.handler: ResourceEventHandler | None = None
        self._looked = False
        self.blind = False
        """While set, looking shows nothing new: the watch lags behind."""

    def look(self) -> None:
        """List, and tell the handler what is new, changed and gone."""
        if self.blind:
            return
        page = self._client.list_page(self._resource, label_selector=self._selector)
        before, self._objects = self._objects, {item.key: item for item in page.items}
        is_initial, self._looked = not self._looked, True
        if self.handler is None:
            return
        for key, new in self._objects.items():
            old = before.get(key)
            if old is None:
                self.handler.on_add(new, is_initial)
            elif old.metadata.resource_version != new.metadata.resource_version:
                self.handler.on_update(old, new)
        for key in before.keys() - self._objects.keys():
            self.handler.on_delete(before[key])

    def resync(self) -> None:
        """Tell the handler of every object again."""
        for item in self._objects.values():
            if self.handler is not None:
                self.handler.on_update(item, item)

    def get(self, namespace: str, name: str) -> Object | None:
        """See `Lister`."""
        return self._objects.get(f"{namespace}/{name}")

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """See `Lister`."""
        wanted = (labels or {}).items()
        return [
            item
            for item in self._objects.values()
            if namespace in ("", item.metadata.namespace) and wanted <= item.metadata.labels.items()
        ]


class Listening:
    """A transport that notes what passes through it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.requests: list[Request] = []

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        self.requests.append(request)
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)

    def writes(self) -> list[Request]:
        """Those that may have changed something."""
        return [request for request in self.requests if request.method != "GET"]


class Operator:
    """One process of the operator, without its threads."""

    def __init__(self, world: World, clock: FakeClock, seed: int) -> None:
        self._world = world
        self.clock = clock
        self.client = world.client(OPERATOR)
        self.dataplane = Listening(world.data_plane_transport())
        self.caches = {resource: Cache(world.client(_CACHE), resource) for resource in _CACHED}
        self.recorder = EventRecorder(self.client, clock, SeededRandomness(seed))
        self.registry = CollectorRegistry()
        self.timers = Timers(clock)
        self._queue = controller_queue("tidbcluster", self.timers)
        applier = Applier(self.client)
        self.doors = Doors(
            self.client,
            applier,
            DataPlane(self._dataplane_with, OpenFence(), clock),
            self.recorder,
            clock,
        )
        self.listers = self._listers()
        self.sync = TidbClusterSync(
            self.caches[TIDB_CLUSTERS],
            self.listers,
            settings=Settings(discovery_image="tidb-operator-py:test"),
            doors=self.doors,
            has_status_subresource=lambda: applier.has_status_subresource(TIDB_CLUSTERS),
            metrics=ClusterMetrics(self.registry),
        )
        metrics = ControllerMetrics(self.registry).of("tidbcluster")
        self._controller = Controller("tidbcluster", self._queue, self.sync, clock=clock, metrics=metrics)
        self._listen()
        self._seen = -1
        self.timers.call_at(clock.now() + _RESYNC, self._resync)

    def work(self) -> None:
        """Do all that is due at this instant. Raises Restless when that has no end."""
        for _ in range(_SYNCS_AT_ONCE):
            self._world.settle()
            self.look()
            self.timers.fire_due()
            if not self._controller.process_ready_item():
                return
            self.recorder.send_queued()
        raise Restless(f"still syncing after {_SYNCS_AT_ONCE} syncs at {self.clock.now()} s")

    def look(self) -> None:
        """Bring the caches up to date."""
        version = self._world.server.storage.version
        if version != self._seen:
            self._seen = version
            for cache in self.caches.values():
                cache.look()

    def has_news(self) -> bool:
        """Whether the API server holds something that the caches have not seen."""
        return self._world.server.storage.version != self._seen

    def resync(self) -> None:
        """Bring every cluster back, as informers do from time to time."""
        self.caches[TIDB_CLUSTERS].resync()

    def _dataplane_with(self, tls: TlsMaterial | None) -> Transport:
        """The sandbox speaks no TLS, but certificates that could not be used are refused as over HTTP."""
        if tls is not None:
            client_context(tls)
        return self.dataplane

    def _resync(self) -> None:
        self.resync()
        self.timers.call_at(self.clock.now() + _RESYNC, self._resync)

    def _listen(self) -> None:
        clusters = self.caches[TIDB_CLUSTERS]
        clusters.handler = events.of_clusters(self._queue.add)
        self.caches[PODS].handler = events.of_pods(clusters, self._queue.add)
        for resource in _OWNED:
            self.caches[resource].handler = events.of_owned(clusters, self._queue.add)

    def _listers(self) -> Listers:
        return Listers(
            config_maps=self.caches[CONFIG_MAPS],
            deployments=self.caches[DEPLOYMENTS],
            persistent_volume_claims=self.caches[PERSISTENT_VOLUME_CLAIMS],
            pods=self.caches[PODS],
            role_bindings=self.caches[ROLE_BINDINGS],
            roles=self.caches[ROLES],
            service_accounts=self.caches[SERVICE_ACCOUNTS],
            services=self.caches[SERVICES],
            stateful_sets=self.caches[STATEFUL_SETS],
        )


class OperatorWorld:
    """A world, the operator in it, and what tests ask of both."""

    def __init__(
        self,
        *,
        seed: int = 1,
        status_subresource: bool = True,
        faults: Faults = no_faults,
        clock: FakeClock | None = None,
        nodes: Iterable[NodeSpec] | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.world = World(
            self.clock,
            SeededRandomness(seed),
            programs={"/usr/local/bin/tidb-discovery": make_handler},
            crds=[definition(TIDB_CLUSTER, status_subresource=status_subresource)],
            nodes=nodes,
            faults=faults,
        )
        self.admin = self.world.client()
        self.operator = Operator(self.world, self.clock, seed)

    def restart(self) -> None:
        """Replace the process of the operator by a new one, which remembers nothing."""
        self.operator = Operator(self.world, self.clock, 2)

    def stop(self) -> None:
        """End the world."""
        self.world.stop()

    # Time

    def run_until(self, condition: Callable[[], bool], within: float = 60.0) -> None:
        """Let world and operator work until `condition` holds. Raises Restless after `within` seconds."""
        end = self.clock.now() + within
        while True:
            self.operator.work()
            if condition():
                return
            if self.clock.now() >= end:
                raise Restless(f"the condition did not hold within {within} s; {self.progressing}")
            self._advance(end)

    def run(self, seconds: float) -> None:
        """Let world and operator work for some time."""
        end = self.clock.now() + seconds
        self.run_until(lambda: self.clock.now() >= end, seconds)

    def run_until_ready(self, name: str = "basic", within: float = 60.0) -> None:
        """Let them work until the cluster is Ready and nothing is left to do."""
        self.run_until(lambda: self.is_ready(name) and self.reason(name) == "Done", within)

    def _advance(self, end: float) -> None:
        due = self.operator.timers.next_due()
        until = end if due is None else min(due, end)
        self.world.advance(max(until - self.clock.now(), 0.0), self.operator.has_news)

    # What users do

    def apply(self, cluster: Json) -> None:
        """Create a TidbCluster."""
        self.admin.create(TIDB_CLUSTERS, cluster, NAMESPACE)

    def change(self, name: str = "basic", /, **spec: Any) -> None:
        """Merge into the spec of a TidbCluster; None removes."""
        self.admin.patch(TIDB_CLUSTERS, name, NAMESPACE, {"spec": spec})

    # What there is to see

    def get(self, resource: Resource, name: str) -> Json:
        """An object as the API server has it."""
        return self.admin.get(resource, name, NAMESPACE).decode()

    def exists(self, resource: Resource, name: str) -> bool:
        """Whether there is such an object."""
        try:
            self.admin.get(resource, name, NAMESPACE)
        except NotFound:
            return False
        return True

    def every(self, resource: Resource) -> list[Json]:
        """All objects of a kind."""
        return [item.decode() for item in self.admin.list_page(resource, NAMESPACE).items]

    def cluster(self, name: str = "basic") -> Json:
        """The TidbCluster."""
        return self.get(TIDB_CLUSTERS, name)

    def condition(self, kind: str, name: str = "basic") -> Json:
        """A condition of the TidbCluster, empty when it has none of that type."""
        conditions = (self.cluster(name).get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    def is_ready(self, name: str = "basic") -> bool:
        """Whether its Ready condition is True."""
        return self.condition("Ready", name).get("status") == "True"

    def reason(self, name: str = "basic") -> str:
        """Why it is or is not progressing."""
        return str(self.condition("Progressing", name).get("reason", ""))

    @property
    def progressing(self) -> str:
        """The Progressing condition of every cluster, for messages."""
        found = {each.metadata.name: self.condition("Progressing", each.metadata.name) for each in self._clusters()}
        return "; ".join(f"{name}: {each.get('reason')}: {each.get('message')}" for name, each in found.items())

    def _clusters(self) -> list[Object]:
        return self.admin.list_page(TIDB_CLUSTERS, NAMESPACE).items

    def replicas(self, component: str, name: str = "basic") -> int:
        """The replicas that the StatefulSet asks for."""
        return int(self.get(STATEFUL_SETS, f"{name}-{component}")["spec"]["replicas"])

    def events(self, reason: str = "") -> list[Json]:
        """The events that the operator recorded, oldest first."""
        found = [each for each in self.every(EVENTS) if (each.get("source") or {}).get("component") == COMPONENT]
        found.sort(key=lambda each: each["metadata"]["name"].rpartition(".")[2])
        return [each for each in found if not reason or each["reason"] == reason]

    def asked_replicas(self, component: str, name: str = "basic") -> list[int]:
        """The replicas that the operator gave the StatefulSet since `forget`, one write after another."""
        return [
            msgspec.json.decode(call.request.body or b"{}")["spec"]["replicas"]
            for call in (entry.call for entry in self.world.server.audit.recent())
            if (call.user, call.resource, call.name) == (OPERATOR, "statefulsets.apps", f"{name}-{component}")
            and b'"replicas"' in (call.request.body or b"")
        ]

    def writes(self) -> list[str]:
        """What the operator wrote to the API server since `forget`: `verb resource[/subresource] name`, in order."""
        return [
            f"{call.verb} {call.resource}{'/' if call.subresource else ''}{call.subresource} {call.name}"
            for call in (entry.call for entry in self.world.server.audit.recent())
            if call.user == OPERATOR and call.is_write
        ]

    def reads(self) -> list[str]:
        """What the operator read live since `forget`: `verb resource name`, in order."""
        return [
            f"{call.verb} {call.resource} {call.name}"
            for call in (entry.call for entry in self.world.server.audit.recent())
            if call.user == OPERATOR and not call.is_write
        ]

    def forget(self) -> None:
        """Begin to count requests anew."""
        self.world.server.audit.clear()
        self.operator.dataplane.requests.clear()


def sample(name: str) -> Json:
    """A TidbCluster of manifests/samples."""
    body: Json = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    return body
