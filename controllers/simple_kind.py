"""The controller of a custom resource that needs only a model and stages.

Each object owns what its stages create. Its status has the conditions Progressing and Ready, which the schema of its
CustomResourceDefinition must permit.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from apis.model import Model
from apis.problem import Problem
from controllers.conditions import PROGRESSING, READY, ConditionValue, done, progressing
from controllers.controller import Controller
from controllers.enqueueing import enqueue_owner
from controllers.executor import Executor
from controllers.informing import NO_RESYNC, Informers
from controllers.kind import Kind
from controllers.kind_controller import kind_controller
from controllers.references import References, RefersTo
from controllers.runtime import Runtime
from controllers.stages import Stage, Steps
from controllers.status_pacing import ALL_ALIKE, StatusFields
from kube.actions import Apply, Create, Decision, Emit
from kube.apply import OwnerGone
from kube.errors import AlreadyExists, ApiError, Forbidden
from kube.events import NORMAL, WARNING
from kube.objects import MANAGED_BY_LABEL, Json, Object
from kube.reading import Lister
from kube.resources import Resource
from kube.taken_names import TakenNames
from member.outcome import Done, Outcome, Refused

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class OwnedObjects:
    """The dependencies of the reconciles of a kind.

    `managed_by` is the label of all objects that the stages create, `caches` are the caches of the resources that
    objects own, read or refer to. `is_selective` is True if the caches of custom resources are limited by a label
    selector. `settings` are passed on to the stages by the process that builds the controller.
    """

    kind: str
    resource: Resource
    runtime: Runtime
    managed_by: str
    caches: Mapping[Resource, Lister]
    is_selective: bool = False
    settings: object = None

    def release(self, owner: Object, finalizer: str) -> None:
        """Remove this finalizer from a deleted owner. Raises ApiError, TransportError."""
        self.runtime.applier.remove_finalizer(self.resource, owner, finalizer)


@dataclass(slots=True)
class Reconcile(Generic[M]):
    """One reconcile of one object.

    `model` is the object with its defaults. Its status is a working copy, which is written at the end if it differs.
    """

    owner: Object
    model: M
    owned: OwnedObjects
    unseen: TakenNames
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    found: object = None
    """A result that a stage passes to later stages."""
    _beyond: dict[tuple[Resource, str, str], Object | None] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The namespace of the owner and of all objects that it owns."""
        return self.owner.metadata.namespace

    @property
    def name(self) -> str:
        """The name of the owner."""
        return self.owner.metadata.name

    def lister(self, resource: Resource) -> Lister:
        """The cache of a resource. Raises LookupError if the kind neither owns, reads nor refers to it."""
        cache = self.owned.caches.get(resource)
        if cache is None:
            raise LookupError(f"the kind {self.owned.kind} does not own {resource}: add it to `owns`, or to `reads`")
        return cache

    def cached(self, resource: Resource, name: str) -> Object | None:
        """The cached object in the owner's namespace, if it exists. Raises LookupError as `lister`."""
        found = self.lister(resource).get(self.namespace, name)
        if found is not None:
            self.unseen.forget(resource, name)
        return found

    def referred(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object to which the owner refers: cached, or, if a selector may hide it, read live once per reconcile.

        None if it does not exist, or is in another namespace that the operator may not read. Raises LookupError as
        `lister`, ApiError, TransportError.
        """
        cached = self.lister(resource).get(namespace, name)
        if cached is not None or not self.owned.is_selective:
            return cached
        key = resource, namespace, name
        if key not in self._beyond:
            self._beyond[key] = self._live_beyond(resource, namespace, name)
        return self._beyond[key]

    def secret(self, name: str, namespace: str) -> Object | None:
        """A Secret, read live. Its next change enqueues the owner. Raises ApiError, TransportError."""
        return self.owned.runtime.secrets.find((self.owned.resource, self.owner.key), name, namespace)

    def _live_beyond(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return self.owned.runtime.client.find(resource, name, namespace)
        except Forbidden:
            if namespace == self.namespace:
                raise
            return None

    def controls(self, child: Object) -> bool:
        """True if the owner controls `child`."""
        controller = child.metadata.controller
        return controller is not None and controller.uid == self.owner.metadata.uid

    def apply(self, resource: Resource, desired: Json, *, applied: Json | None = None) -> Object:
        """Create an object that the owner controls, or patch its differences; Kubernetes deletes it with its owner.

        Fills in kind, namespace, owner and the label of this controller. Records an event when it creates an object or
        the API server refuses that. For `applied` see `Applier.apply`. Raises LookupError, OwnerGone, and as
        `Applier.apply`; the frame turns these errors into the outcome of the stage.
        """
        whole = self.owned_by_this(resource, desired)
        return self.owned.runtime.executor.conclude(self._apply(resource, whole, applied))

    async def _apply(self, resource: Resource, whole: Json, applied: Json | None) -> Object:
        cached = self.cached(resource, whole["metadata"]["name"])
        if cached is not None:
            return await Apply(resource, whole, cached, applied)
        there, made = await self._create_or_get(resource, whole)
        return there if made else await self.unseen.write(resource, whole, there, self.owned.runtime.clock, applied)

    def owned_by_this(self, resource: Resource, desired: Json) -> Json:
        """The desired object with kind, namespace, owner reference and the label of this controller."""
        meta, owner = desired["metadata"], self.owner.metadata
        reference = {
            "apiVersion": self.owned.resource.api_version,
            "kind": self.owned.resource.kind,
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        filled = {
            "namespace": owner.namespace,
            "labels": (meta.get("labels") or {}) | {MANAGED_BY_LABEL: self.owned.managed_by},
            "ownerReferences": [reference],
        }
        return {"apiVersion": resource.api_version, "kind": resource.kind} | desired | {"metadata": meta | filled}

    def event(self, reason: str, message: str, kind: str = NORMAL) -> None:
        """Record an event about the owner. `kind` is `Normal` or `Warning`."""
        self.owned.runtime.recorder.event(self.owner, kind, reason, message)

    def add_finalizer(self, finalizer: str) -> None:
        """Add a finalizer, which keeps the owner after its deletion until `finalize` of its kind removes it.

        Raises Conflict, other ApiErrors, TransportError.
        """
        self.owner = self.owned.runtime.applier.add_finalizer(self.owned.resource, self.owner, finalizer)

    def live_owner(self) -> Object:
        """The owner as the API server has it now (F4). Raises OwnerGone, ApiError, TransportError."""
        meta, kind = self.owner.metadata, self.owned.resource.kind
        live = self.owned.runtime.client.find(self.owned.resource, meta.name, meta.namespace)
        if live is None or live.metadata.uid != meta.uid or live.metadata.deletion_timestamp:
            raise OwnerGone(f"the {kind} was deleted or recreated; waiting for the operator's cache to show that")
        return live

    def is_confirmed(self) -> bool:
        """True if the live owner has the spec that this reconcile decides on. Raises like `live_owner`."""
        return bool(self.live_owner().decode().get("spec") == self.owner.decode().get("spec"))

    async def _create(self, resource: Resource, whole: Json) -> Object:
        self.live_owner()
        what = f"create {resource.kind} {whole['metadata']['name']} in {self.owned.resource.kind} {self.name}"
        try:
            created = await Create(resource, whole)
        except AlreadyExists:
            raise
        except ApiError as error:
            await Emit(self.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
            raise
        await Emit(self.owner, NORMAL, "SuccessfulCreate", f"{what} successful")
        return created

    def make(self, resource: Resource, desired: Json) -> Object:
        """Create an object that the owner controls; if its name is taken, return the existing object, read live.

        Raises OwnerGone, ApiError, TransportError.
        """
        making = self._create_or_get(resource, self.owned_by_this(resource, desired))
        return self.owned.runtime.executor.conclude(making)[0]

    async def _create_or_get(self, resource: Resource, whole: Json) -> tuple[Object, bool]:
        """The object, and True if it was created.

        An object that the cache lacks may exist: then it is read live, and not created again in each reconcile.
        """
        runtime, meta = self.owned.runtime, whole["metadata"]
        return await self.unseen.make_or_find(
            resource,
            meta["name"],
            runtime.clock,
            make=lambda: self._create(resource, whole),
            find=lambda: runtime.client.find(resource, meta["name"], meta["namespace"]),
        )


@dataclass(frozen=True, kw_only=True)
class SimpleKind(Generic[M]):
    """A kind whose objects are reconciled by `stages`, one after another.

    - `model`: has a field `status`, a model of the whole status except its conditions.
    - `owns`: the resources that stages may `apply`.
    - `reads`: further resources that stages read, limited to objects with the label of this controller.
    - `refers`: the custom resources that objects name; a change of one enqueues the objects that name it.
    - `name`: the name of the controller; by default the kind in lower case.
    - `managed_by`: the value of the controller's label; by default its name.
    - `others_conditions`: the conditions of the new status besides Progressing and Ready; see `Kind`.
    - `observe`: updates the status; runs in place of the stages while the spec is invalid.
    - `further_conditions`: set besides Progressing and Ready in each reconcile.
    - `executor`: returns the executor of the stages' actions; without it, the runtime's performs them.
    - `problems`: the `mistakes` of `Kind`; `defaults`, `finalize`, `status_fields`: see there.
    """

    resource: Resource
    model: type[M]
    stages: Sequence[Stage[Reconcile[M]]]
    owns: Sequence[Resource] = ()
    reads: Sequence[Resource] = ()
    refers: Mapping[Resource, RefersTo] = field(default_factory=dict)
    name: str = ""
    managed_by: str = ""
    defaults: Callable[[M], M] = lambda model: model
    problems: Callable[[M], Sequence[Problem]] = lambda _model: ()
    others_conditions: Callable[[Reconcile[M]], Sequence[Json] | None] = lambda _ctx: None
    observe: Callable[[Reconcile[M]], Outcome | Decision[Outcome]] = lambda _ctx: Done()
    finalize: Callable[[Object, OwnedObjects], None] | None = None
    further_conditions: Callable[[Reconcile[M]], Mapping[str, ConditionValue]] = lambda _ctx: {}
    status_fields: StatusFields = ALL_ALIKE
    executor: Callable[[Runtime], Executor] = lambda runtime: runtime.executor

    def controllers(
        self,
        runtime: Runtime,
        selector: str = "",
        permitted: Collection[Resource] | None = None,
        shared: Mapping[Resource, Informers] = MappingProxyType({}),
        settings: object = None,
    ) -> tuple[Controller, ...]:
        """The controller of the kind, with its handlers registered; it is not started.

        `selector` selects the custom resources by label. Cluster-scoped resources in `reads` are only cached if they
        are `permitted`; None permits all. `shared` are informers of resources that several controllers own. For
        `settings` see `OwnedObjects`.
        """
        kind = self._kind()
        managed_by = self.managed_by or kind.name
        objects, owned = runtime.informers(selector), runtime.informers(f"{MANAGED_BY_LABEL}={managed_by}")
        lister = objects.lister_for(self.resource)
        readable = [each for each in self.reads if each.namespaced or permitted is None or each in permitted]
        informers = {resource: shared.get(resource, owned) for resource in (*self.owns, *readable)}
        caches = {resource: each.lister_for(resource) for resource, each in informers.items()}
        caches |= {resource: objects.lister_for(resource) for resource in self.refers}
        deps = OwnedObjects(kind.name, self.resource, runtime, managed_by, caches, bool(selector), settings)
        controller = kind_controller(runtime, kind, objects, deps)
        for resource in self.owns:
            handler = enqueue_owner(self.resource, lister, controller.enqueue)
            informers[resource].informer_for(resource).add_event_handler(handler, NO_RESYNC)
        for resource, refers_to in self.refers.items():
            referring = References(refers_to)
            objects.informer_for(self.resource).add_event_handler(referring.noting(), NO_RESYNC)
            objects.informer_for(resource).add_event_handler(referring.enqueueing(controller.enqueue), NO_RESYNC)
        return (controller,)

    def _kind(self) -> Kind[M, Reconcile[M], OwnedObjects, TakenNames]:
        return Kind(
            name=self.name or self.resource.kind.lower(),
            resource=self.resource,
            model=self.model,
            memory=TakenNames,
            context=Reconcile,
            run=self._run,
            status=_status,
            conditions=self._conditions,
            others_conditions=self.others_conditions,
            finalize=self.finalize,
            defaults=self.defaults,
            mistakes=self.problems,
            hold=_hold,
            status_fields=self.status_fields,
            executor=lambda owned: self.executor(owned.runtime),
        )

    def _run(self, ctx: Reconcile[M]) -> Steps[Reconcile[M]]:
        stages = [Stage(_OBSERVED, self.observe)] if _HELD in ctx.outcomes else self.stages
        for stage in stages:
            ctx.outcomes[stage.name] = yield stage

    def _conditions(self, ctx: Reconcile[M], _now: datetime) -> Mapping[str, ConditionValue]:
        ours = {PROGRESSING: progressing(ctx.outcomes), READY: done(ctx.outcomes)}
        return {**ours, **self.further_conditions(ctx)}


_HELD = "spec"
"""The name in `outcomes` of the refusal of an invalid spec."""
_OBSERVED = "status"


def _hold(ctx: Reconcile[Any], _owner: Object, refusal: Refused, _remakes: bool) -> None:
    ctx.outcomes[_HELD] = refusal


def _status(ctx: Reconcile[Any]) -> Model:
    status: Model = ctx.model.status
    return status
