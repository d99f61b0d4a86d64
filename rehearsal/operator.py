"""One operator process without its threads: production wiring, driven by the clock's owner.

Real are the controllers with all their stages, the queues with their back-off, the event handlers, the recorder, the
clients, throttling and retries. Replaced are the informers (`caches`) and the thread of each loop.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from prometheus_client import CollectorRegistry

from controllers.controller import Controller, Result, Sync
from controllers.errors import IgnoreError, RequeueError
from controllers.runtime import Runtime, new_runtime
from controllers.stages import OnDefect
from controllers.wiring import addressed, tidb_controllers
from dataplane.clients import DataPlane
from dataplane.errors import DataPlaneError
from dataplane.tls import TlsMaterial, client_context
from kube.client import Client
from kube.errors import ApiError
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
from member.context import Dependencies, Settings
from ports.clock import FakeClock
from ports.fencing import LeaseExpired, OpenFence
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from ports.transport import ByteStream, Credentials, Request, Response, Transport, TransportError
from rehearsal.caches import Cache, Caches
from rehearsal.rights import OF_VOLUME_MODIFYING, AuthorizedTransport
from sandbox.actor_system import NeverSettles
from sandbox.apiserver import ApiServer, selectors
from sandbox.dataplane.grpc import GrpcNetwork
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import Certificate
from sandbox.overlap import Overlapping
from sandbox.waiting_clock import WaitingClock
from sandbox.world import World
from workqueue.priority_queue import NO_REST, Rest
from workqueue.timers import Timers

USER = "system:serviceaccount:tidb-admin:tidb-controller-manager"
"""The operator's user name."""

RESYNC = 30.0
"""Seconds between two resyncs."""

SETTINGS = Settings(discovery_image="tidb-operator-py:test", rechecks=True)
"""The default settings."""

CLUSTER_SCOPED = (PERSISTENT_VOLUMES, NODES, STORAGE_CLASSES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)

_SYNCS_AT_ONCE = 100

_EXPECTED = (RequeueError, IgnoreError, ApiError, TransportError, DataPlaneError, LeaseExpired)
"""The exceptions that a sync may raise."""

Wrap = Callable[[Transport], Transport]
"""Inserts a layer between the operator and the outside."""


class RecordingTransport:
    """A transport that records its requests."""

    def __init__(self, transport: Transport, requests: list[Request] | None = None) -> None:
        """`requests` is the list to record in, by default a new one."""
        self._transport = transport
        self.requests: list[Request] = [] if requests is None else requests

    def request(self, request: Request) -> Response:
        self.requests.append(request)
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)

    def writes(self) -> list[Request]:
        """The requests that may have changed something."""
        return [request for request in self.requests if not request.is_read]


class _Informers:
    """The caches of every selection, created on first use."""

    def __init__(self, server: ApiServer, at: int | None, instead: Mapping[Resource, Resource]) -> None:
        self._server = server
        self._at = at
        self._instead = instead
        self._selections: dict[str, Caches] = {}

    def selected_by(self, selector: str) -> Caches:
        """The caches of a label selector; of everything for an empty one."""
        if selector not in self._selections:
            self._selections[selector] = Caches(
                self._server, selectors.parse(selector, "", ()), self._at, self._instead
            )
        return self._selections[selector]

    def caches(self) -> dict[Resource, Cache]:
        """All caches: no resource is in two selections."""
        return {resource: cache for each in self._selections.values() for resource, cache in each.all().items()}


def _as_it_is(sync: Sync) -> Sync:
    return sync


def _reporting(sync: Sync, on_defect: OnDefect) -> Sync:
    def reporting(key: str) -> Result | None:
        try:
            return sync(key)
        except _EXPECTED:
            raise
        except Exception as error:
            on_defect(key, error)
            raise

    return reporting


def directly(transport: Transport) -> Transport:
    """Insert nothing."""
    return transport


class Operator:
    """One process of the operator."""

    def __init__(
        self,
        world: World,
        clock: FakeClock,
        seed: int,
        *,
        kubernetes: Wrap = directly,
        dataplane: Wrap = directly,
        watched: Callable[[Sync], Sync] = _as_it_is,
        wait: Callable[[float], object] | None = None,
        ahead: Callable[[], timedelta] = timedelta,
        at: int | None = None,
        settings: Settings = SETTINGS,
        permitted: Collection[Resource] = CLUSTER_SCOPED,
        on_defect: OnDefect = lambda _stage, _error: None,
        rest: Rest = NO_REST,
        build: Callable[[Runtime], Sequence[Controller]] | None = None,
    ) -> None:
        """`watched` wraps every sync; `at` is the initial version of the caches, None for the newest.

        `wait` lets time pass for a waiting caller; by default the world continues meanwhile. `ahead` is the error of
        the machine's time of day. `permitted` are the cluster-scoped resources that it may read. `on_defect` is called
        with each unexpected exception, and with the stage or the key whose sync raised it. `rest`: see
        `controllers.queues`. `build` creates other controllers than the operator's.
        """
        self._world = world
        self.clock = WaitingClock(clock, wait or world.advance, ahead)
        self._side_by_side = Overlapping(wait or world.advance)
        self._wrap = dataplane
        self.dataplane = RecordingTransport(dataplane(world.data_plane_transport()))
        instead = addressed(settings.advanced_stateful_sets)
        more = OF_VOLUME_MODIFYING if settings.modifies_volumes else frozenset()
        client, of_events = (
            self._connect(kubernetes(AuthorizedTransport(world.transport(USER), more)), instead) for _ in range(2)
        )
        self.recorder = EventRecorder(of_events, self.clock, SeededRandomness(seed))
        self._passwords = SeededRandomness(seed)
        self.wired: list[Dependencies] = []
        self.registry = CollectorRegistry()
        self.timers = Timers(self.clock)
        informers = _Informers(world.server, at, instead)
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
            rest=rest,
        )
        self.controllers = build(runtime) if build else self._of_tidb(runtime, settings, permitted)
        for controller in self.controllers:
            controller.sync = _reporting(watched(controller.sync), on_defect)
        self.sync = self.controllers[0].sync
        self.caches = informers.caches()
        self.secrets = secret_metadata.informer_for(SECRETS)
        self._seen = -1
        self._synced_at = self._held_until = clock.now()
        self._rests = rest != NO_REST
        self._synced_changes = 0
        """The changes that the last sync knew."""
        self.resyncs = True
        self.timers.call_at(clock.now() + RESYNC, self._resync)

    def work(self) -> None:
        """Do all work that is due now. Raises NeverSettles if it does not end."""
        for _ in range(_SYNCS_AT_ONCE):
            self._world.settle()
            if not self.step():
                return
        raise NeverSettles(f"still syncing after {_SYNCS_AT_ONCE} syncs at {self.clock.now()} s")

    def let_pass(
        self,
        end: float,
        is_new: Callable[[], bool] = lambda: False,
        pace: float = 0.0,
        may_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        """Let the world run until the operator may have work: a change, its next timer, or the time `end`.

        It stops earlier at a moment at which something `is_new` to the caller. With a `pace`, timers fire so many
        seconds after the last sync at the earliest, and later while they `may_wait`; changes that the operator does not
        follow are none, and one that needs no sync fires no timer either. One that comes during a rest of the queues
        (`controllers.queues`) waits for the end of that, not for the `pace`.
        """
        has_news = self._sees_news if pace else self.has_news
        is_woken = lambda: has_news() or is_new()  # noqa: E731
        due, now = self.timers.next_due(), self.clock.now()
        rests = self._rests and self.changes != self._synced_changes
        earliest = now if rests else self._synced_at + pace
        until = end if due is None else max(min(max(due, earliest), end), now)
        pause = max(until - now, pace)
        while not self._world.advance(max(until - self._world.clock.now(), 0.0), is_woken):
            if not pace or rests or until >= end or not may_wait():
                self._held_until = now
                return
            until = min(until + pause, end)
        self._held_until = until if pace else now

    def _sees_news(self) -> bool:
        """True if the caches, which follow what the operator reads, show something new."""
        before = self.changes
        self.look()
        return self.changes != before

    @property
    def changes(self) -> int:
        """The number of changes that the caches have followed."""
        return self.secrets.changes + sum(cache.changes for cache in self.caches.values())

    def step(self) -> bool:
        """Look, and sync one ready key; True if one was ready."""
        self.look()
        if self.clock.now() >= self._held_until:
            self.timers.fire_due()
        changes = self.changes if self._rests else 0
        worked = any(controller.process_ready_item() for controller in self.controllers)
        if worked:
            self._synced_at, self._synced_changes = self.clock.now(), changes
        self.recorder.send_queued()
        return worked

    @property
    def loops(self) -> tuple[Callable[[], bool], ...]:
        """One step of each thread that a process of the operator has, for an interleaving of threads."""
        first, *others = (controller.process_ready_item for controller in self.controllers)
        return self._inform, first, *others, *others, self._send_events

    def look(self) -> None:
        """Update the caches."""
        version = self._world.server.storage.version
        if version != self._seen:
            self._seen = version
            for cache in (*self.caches.values(), self.secrets):
                cache.look()

    def look_again(self) -> None:
        """Let the next look look even without a change, because a cache has recovered."""
        self._seen = -1

    def has_news(self) -> bool:
        """True if the API server has changes that the caches have not seen."""
        return self._world.server.storage.version != self._seen

    def resync(self) -> None:
        """Requeue every custom resource, or every object of the first controller, as informers do at intervals."""
        own = [cache for resource, cache in self.caches.items() if resource.group == TIDB_CLUSTERS.group]
        for cache in own or [next(iter(self.caches.values()))]:
            cache.resync()

    def _inform(self) -> bool:
        """A step of the informers and timers."""
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
        grpc = GrpcNetwork(self.clock, self._grpc_with)
        data_plane = DataPlane(self._dataplane_with, runtime.fence, self.clock, sql, self._side_by_side, grpc=grpc)
        draw = self._passwords
        return tidb_controllers(
            runtime,
            data_plane,
            settings,
            selector="",
            permitted=permitted,
            passwords=draw,
            on_wired=self.wired.append,
        )

    def _connect(self, transport: Transport, instead: Mapping[Resource, Resource]) -> Client:
        """Connect as `kube.connecting.connect` does."""
        retrying = RetryingTransport(transport, self.clock, Throttle(Rate(), self.clock), Stop())
        return Client(retrying, instead=instead)

    def _dataplane_with(self, tls: TlsMaterial | None) -> Transport:
        """The data plane with a certificate; an unusable one is rejected as over HTTP."""
        if tls is None:
            return self.dataplane
        client_context(tls)
        origin = Origin(certificate=Certificate.of(tls))
        return RecordingTransport(self._wrap(self._world.data_plane_transport(origin)), self.dataplane.requests)

    def _grpc_with(self, credentials: Credentials | None) -> Transport:
        origin = Origin(certificate=Certificate.of(credentials)) if credentials else Origin()
        return RecordingTransport(self._wrap(self._world.data_plane.grpc_transport(origin)), self.dataplane.requests)

    def _resync(self) -> None:
        if self.resyncs:
            self.resync()
        self.timers.call_at(self.clock.now() + RESYNC, self._resync)
