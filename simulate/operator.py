"""One process of the operator without its threads: production wiring, driven by whoever moves the clock.

What is real: the controllers with all their stages, the queues with their back-off, the event handlers, the recorder,
the clients, throttling and retries of requests. What stands in is the informers (`caches`) and the thread of each loop.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from prometheus_client import CollectorRegistry

from controllers.controller import Controller, Sync
from controllers.runtime import Runtime, new_runtime
from controllers.stages import OnDefect
from controllers.wiring import tidb_controllers
from dataplane.clients import DataPlane
from dataplane.tls import TlsMaterial, client_context
from kube.client import Client
from kube.events import EventRecorder
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NODES,
    PERSISTENT_VOLUMES,
    SECRETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    Resource,
)
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from member.context import Settings
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from ports.transport import ByteStream, Request, Response, Transport
from sandbox.actor_system import NeverSettles
from sandbox.apiserver import ApiServer, selectors
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import Certificate
from sandbox.overlap import Overlapping
from sandbox.waiting_clock import WaitingClock
from sandbox.world import World
from simulate.caches import Cache, Caches
from simulate.rights import AuthorizedTransport
from workqueue.timers import Timers

USER = "system:serviceaccount:tidb-admin:tidb-controller-manager"
"""Who the operator is to the API server."""

RESYNC = 30.0
"""Seconds between two resyncs."""

SETTINGS = Settings(discovery_image="tidb-operator-py:test", rechecks=True)
"""The settings it starts with, unless a plan or a test wants otherwise."""

CLUSTER_SCOPED = (PERSISTENT_VOLUMES, NODES, STORAGE_CLASSES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)

_SYNCS_AT_ONCE = 100

Wrap = Callable[[Transport], Transport]
"""Puts something between the operator and the outside."""


class RecordingTransport:
    """A transport that notes what passes through it."""

    def __init__(self, transport: Transport, requests: list[Request] | None = None) -> None:
        """`requests` is where to note them, a list of its own by default."""
        self._transport = transport
        self.requests: list[Request] = [] if requests is None else requests

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        self.requests.append(request)
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)

    def writes(self) -> list[Request]:
        """Those that may have changed something."""
        return [request for request in self.requests if not request.is_read]


class _Informers:
    """The caches of every selection, made when first asked for."""

    def __init__(self, server: ApiServer, at: int | None) -> None:
        self._server = server
        self._at = at
        self._selections: dict[str, Caches] = {}

    def selected_by(self, selector: str) -> Caches:
        """The caches of what a label selector selects; of everything when it is empty."""
        if selector not in self._selections:
            self._selections[selector] = Caches(self._server, selectors.parse(selector, "", ()), self._at)
        return self._selections[selector]

    def caches(self) -> dict[Resource, Cache]:
        """All of them: no resource is in two selections."""
        return {resource: cache for each in self._selections.values() for resource, cache in each.all().items()}


def _as_it_is(sync: Sync) -> Sync:
    return sync


def _directly(transport: Transport) -> Transport:
    return transport


class Operator:
    """One process of the operator."""

    def __init__(
        self,
        world: World,
        clock: FakeClock,
        seed: int,
        *,
        kubernetes: Wrap = _directly,
        dataplane: Wrap = _directly,
        watched: Callable[[Sync], Sync] = _as_it_is,
        wait: Callable[[float], object] | None = None,
        ahead: Callable[[], timedelta] = timedelta,
        at: int | None = None,
        settings: Settings = SETTINGS,
        permitted: Collection[Resource] = CLUSTER_SCOPED,
        on_defect: OnDefect = lambda _stage, _error: None,
        build: Callable[[Runtime], Sequence[Controller]] | None = None,
    ) -> None:
        """`watched` is put around every sync; `at` is the version that the caches begin with, None for the newest.

        `wait` lets time pass for who may not go on yet; by default the world goes on meanwhile. `ahead`: by how much
        the time of day is wrong on its machine. `permitted`: the
        cluster-scoped resources that it may read. `on_defect`: see `Runtime`. `build`
        makes other controllers than those of the operator.
        """
        self._world = world
        self.clock = WaitingClock(clock, wait or world.advance, ahead)
        self._side_by_side = Overlapping(wait or world.advance)
        self._wrap = dataplane
        self.dataplane = RecordingTransport(dataplane(world.data_plane_transport()))
        client, of_events = (self._connect(kubernetes(AuthorizedTransport(world.transport(USER)))) for _ in range(2))
        self.recorder = EventRecorder(of_events, self.clock, SeededRandomness(seed))
        self._passwords = SeededRandomness(seed)
        self.registry = CollectorRegistry()
        self.timers = Timers(self.clock)
        informers = _Informers(world.server, at)
        secret_metadata = Caches(world.server, selectors.parse("", "", ()), at)
        runtime = new_runtime(
            client=client,
            recorder=self.recorder,
            timers=self.timers,
            informers=informers.selected_by,
            secret_metadata=secret_metadata,
            fence=OpenFence(),
            registry=self.registry,
            drain_timeout=0.0,
            on_defect=on_defect,
        )
        self.controllers = build(runtime) if build else self._of_tidb(runtime, settings, permitted)
        for controller in self.controllers:
            controller.sync = watched(controller.sync)
        self.sync = self.controllers[0].sync
        self.caches = informers.caches()
        self.secrets = secret_metadata.informer_for(SECRETS)
        self._seen = -1
        self.resyncs = True
        self.timers.call_at(clock.now() + RESYNC, self._resync)

    def work(self) -> None:
        """Do all that is due at this instant. Raises NeverSettles when that has no end."""
        for _ in range(_SYNCS_AT_ONCE):
            self._world.settle()
            if not self.step():
                return
        raise NeverSettles(f"still syncing after {_SYNCS_AT_ONCE} syncs at {self.clock.now()} s")

    def step(self) -> bool:
        """Look, and sync one key if one is ready; return whether one was."""
        self.look()
        self.timers.fire_due()
        worked = any(controller.process_ready_item() for controller in self.controllers)
        self.recorder.send_queued()
        return worked

    @property
    def loops(self) -> tuple[Callable[[], bool], ...]:
        """The same as one step of each thread that a process has."""
        first, *others = (controller.process_ready_item for controller in self.controllers)
        return self._inform, first, *others, *others, self._send_events

    def look(self) -> None:
        """Bring the caches up to date."""
        version = self._world.server.storage.version
        if version != self._seen:
            self._seen = version
            for cache in (*self.caches.values(), self.secrets):
                cache.look()

    def look_again(self) -> None:
        """Have the next look look, even if nothing changed meanwhile: a cache sees again."""
        self._seen = -1

    def has_news(self) -> bool:
        """Whether the API server holds something that the caches have not seen."""
        return self._world.server.storage.version != self._seen

    def resync(self) -> None:
        """Bring every custom resource back, or every object of the first controller, as informers do now and then."""
        own = [cache for resource, cache in self.caches.items() if resource.group == TIDB_CLUSTERS.group]
        for cache in own or [next(iter(self.caches.values()))]:
            cache.resync()

    def _inform(self) -> bool:
        """A step of the informers and of the timers."""
        due = self.timers.next_due()
        if not self.has_news() and (due is None or due > self.clock.now()):
            return False
        self.look()
        self.timers.fire_due()
        return True

    def _send_events(self) -> bool:
        """A step of the recorder."""
        return self.recorder.send_queued()

    def _of_tidb(self, runtime: Runtime, settings: Settings, permitted: Collection[Resource]) -> Sequence[Controller]:
        sql = self._world.data_plane.sql()
        data_plane = DataPlane(self._dataplane_with, runtime.fence, self.clock, sql, self._side_by_side)
        draw = self._passwords
        return tidb_controllers(runtime, data_plane, settings, selector="", permitted=permitted, passwords=draw)

    def _connect(self, transport: Transport) -> Client:
        """As `kube.connecting.connect` does."""
        return Client(RetryingTransport(transport, self.clock, Throttle(Rate(), self.clock), Stop()))

    def _dataplane_with(self, tls: TlsMaterial | None) -> Transport:
        """The data plane as reached with a certificate; one that cannot be used is refused as over HTTP."""
        if tls is None:
            return self.dataplane
        client_context(tls)
        origin = Origin(certificate=Certificate.of(tls))
        return RecordingTransport(self._wrap(self._world.data_plane_transport(origin)), self.dataplane.requests)

    def _resync(self) -> None:
        if self.resyncs:
            self.resync()
        self.timers.call_at(self.clock.now() + RESYNC, self._resync)
