"""The parts of a process that all of its controllers share, in one value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from controllers.controller import Controller, Sync
from controllers.enqueueing import DETAIL, Enqueue, enqueue_object, on_change
from controllers.executor import Executor
from controllers.informing import NO_RESYNC, Informers
from controllers.key_locks import KeyLocks, shared_by
from controllers.memory import Memory
from controllers.metrics import ControllerMetrics
from controllers.observed import ObservedObjects, OnPaused
from controllers.queues import controller_queue
from controllers.stages import OnDefect
from kube.apply import Applier
from kube.client import Client
from kube.events import EventRecorder
from kube.objects import Object
from kube.reading import Lister
from kube.resources import SECRETS, Resource
from kube.secret_reads import SecretReads
from ports.clock import Clock
from ports.fencing import Fence, Ownership, SoleOwner
from ports.observation import is_observing
from workqueue.metrics import MetricsProvider, PrometheusQueueMetrics
from workqueue.priority_queue import NO_REST, Rest
from workqueue.timers import Timers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a process that all of its controllers share; created by `new_runtime`.

    - `informers`: returns the informers for a label selector, the same at each call.
    - `fence`: checked before each write that does not go through `client`.
    - `other_leases`: watches Leases of the same name in other namespaces; None if they are not watched.
    - `secrets`: reads Secrets on behalf of objects.
    - `secret_metadata`: watches all Secrets; None if their changes are not watched.
    - `drain_timeout`: the seconds that running syncs may take after the stop.
    - `on_defect`: called with unexpected exceptions of stages.
    - `executor`: performs the actions of decisions that concern Kubernetes alone.
    - `observed`: decides for which objects nothing may be written.
    - `rest`: the minimum time between two syncs of a key.
    """

    client: Client
    secrets: SecretReads
    applier: Applier
    recorder: EventRecorder
    clock: Clock
    timers: Timers
    informers: Callable[[str], Informers]
    fence: Fence
    registry: CollectorRegistry
    other_leases: Informers | None
    secret_metadata: Informers | None
    controller_metrics: ControllerMetrics
    queue_metrics: MetricsProvider
    drain_timeout: float
    on_defect: OnDefect
    observed: ObservedObjects
    key_locks: KeyLocks
    executor: Executor
    rest: Rest = NO_REST
    _memories: list[tuple[Memory[Any], Resource | None]] = field(default_factory=list)
    _acted_for: list[tuple[Resource, Lister, Enqueue]] = field(default_factory=list)

    def enqueue_objects(
        self,
        informers: Informers,
        resource: Resource,
        enqueue: Enqueue,
        is_echo: Callable[[Object], bool] = lambda _: False,
    ) -> None:
        """Enqueue objects of the resource on their events, for the controller that acts for them (`enqueue_object`)."""
        informers.informer_for(resource).add_event_handler(enqueue_object(enqueue, is_echo))
        self._acted_for.append((resource, informers.lister_for(resource), enqueue))

    def follow_secrets(self) -> None:
        """Enqueue, when a Secret changes, the objects for which it was read.

        The priority is DETAIL: renewing many Secrets of a cluster costs one reconcile, and changing one a hundred times
        a second costs one reconcile in three seconds.
        """
        if self.secret_metadata is None:
            return

        def changed(secret: Object) -> None:
            readers = self.secrets.changed(secret.metadata.namespace, secret.metadata.name)
            for resource, _, enqueue in self._acted_for:
                for kind, key in readers:
                    if kind == resource:
                        enqueue(key, DETAIL)

        self.secret_metadata.informer_for(SECRETS).add_event_handler(on_change(changed), NO_RESYNC)

    def take_up(self, is_new: Callable[[str], bool]) -> None:
        """Enqueue the objects that belong to this process from now on: those whose shard key `is_new`.

        The priority is NEWS, so that each is synced once before the changes that the first of these syncs cause.
        """
        for resource, lister, enqueue in self._acted_for:
            for obj in lister.list():
                if is_new(shared_by(resource, obj.key)):
                    enqueue(obj.key)

    def memory(self, make: Callable[[], T], resource: Resource | None) -> Memory[T]:
        """A controller's memory of each object of a resource, kept while the object belongs to this process.

        Without a resource the shard of a key is unknown: all keys are deleted when this process loses any object.
        """
        memory = Memory(make)
        self._memories.append((memory, resource))
        return memory

    def forget_lost(self) -> None:
        """Delete the memory of objects that belong to another process now: it will be outdated if they return."""
        for memory, resource in self._memories:
            memory.keep(partial(self.key_locks.owns, resource) if resource else lambda _key: False)

    def controller(
        self, name: str, sync: Sync, *, queue: str = "", is_slow: Callable[[str], bool] = lambda _: False
    ) -> Controller:
        """A controller with its own queue, whose name in the metrics is `queue`, or `name` if that is empty.

        Arguments as for `Controller`.
        """
        metrics = self.controller_metrics.of(name)
        keys = controller_queue(
            queue or name,
            self.timers,
            metrics=self.queue_metrics,
            on_throttled=metrics.record_throttled,
            rest=self.rest,
        )
        return Controller(
            name,
            keys,
            sync,
            clock=self.clock,
            metrics=metrics,
            drain_timeout=self.drain_timeout,
            is_slow=is_slow,
            timers=self.timers,
        )


def new_runtime(
    *,
    client: Client,
    recorder: EventRecorder,
    timers: Timers,
    informers: Callable[[str], Informers],
    fence: Fence,
    registry: CollectorRegistry,
    ownership: Ownership | None = None,
    other_leases: Informers | None = None,
    secret_metadata: Informers | None = None,
    drain_timeout: float = 30.0,
    on_defect: OnDefect = lambda _stage, _error: None,
    rest: Rest = NO_REST,
    observes: Callable[[], bool] = is_observing,
    on_paused: OnPaused | None = None,
) -> Runtime:
    """A runtime whose metrics are in `registry`; for the arguments see `Runtime`.

    `ownership` decides which objects belong to this process; by default all of them, guarded by `fence`. `observes`
    returns True if the current sync must write nothing. `on_paused`: see `ObservedObjects`.
    """
    applier = Applier(client, timers.clock, observes)
    return Runtime(
        client=client,
        secrets=SecretReads(client),
        applier=applier,
        recorder=recorder,
        clock=timers.clock,
        timers=timers,
        informers=informers,
        fence=fence,
        registry=registry,
        other_leases=other_leases,
        secret_metadata=secret_metadata,
        controller_metrics=ControllerMetrics(registry),
        queue_metrics=PrometheusQueueMetrics(registry),
        drain_timeout=drain_timeout,
        on_defect=on_defect,
        observed=ObservedObjects(registry, on_paused),
        key_locks=KeyLocks(ownership or SoleOwner(fence)),
        executor=Executor(applier, recorder),
        rest=rest,
    )
