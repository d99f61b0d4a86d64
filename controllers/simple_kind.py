"""A kind that needs no more than a model and stages: the controller of a custom resource.

Each object owns what its stages make for it. Its status has the conditions Progressing and Ready, for which the schema
of its CustomResourceDefinition must have room.
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
from controllers.informing import NO_RESYNC, Informers
from controllers.kind import Kind
from controllers.kind_controller import kind_controller
from controllers.references import References, RefersTo
from controllers.runtime import Runtime
from controllers.stages import Attempt, Stage
from controllers.status_pacing import ALL_ALIKE, StatusFields
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
    """What a process gives to the reconciles of a kind.

    `managed_by` is the label of all that is made for it, `caches` are those of what its objects own, read or refer to.
    `is_selective`: whether the caches of custom resources hold only what a label selector selects. `settings` is what
    the process that builds the controller hands to its stages.
    """

    kind: str
    resource: Resource
    runtime: Runtime
    managed_by: str
    caches: Mapping[Resource, Lister]
    is_selective: bool = False
    settings: object = None

    def release(self, owner: Object, finalizer: str) -> None:
        """Let a deleted owner go, as far as this finalizer keeps it. Raises ApiError, TransportError."""
        self.runtime.applier.remove_finalizer(self.resource, owner, finalizer)


@dataclass(slots=True)
class Reconcile(Generic[M]):
    """One reconcile of one object.

    `model` is the object with its defaults; its status is a working copy, which is patched at the end if it differs.
    """

    owner: Object
    model: M
    owned: OwnedObjects
    unseen: TakenNames
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    found: object = None
    """What a stage has found for those after it."""
    _beyond: dict[tuple[Resource, str, str], Object | None] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """That of the owner and all that is made for it."""
        return self.owner.metadata.namespace

    @property
    def name(self) -> str:
        """That of the owner."""
        return self.owner.metadata.name

    def lister(self, resource: Resource) -> Lister:
        """The cache of a resource. Raises LookupError when the kind has nothing to do with such objects."""
        cache = self.owned.caches.get(resource)
        if cache is None:
            raise LookupError(f"the kind {self.owned.kind} does not own {resource}: add it to `owns`, or to `reads`")
        return cache

    def cached(self, resource: Resource, name: str) -> Object | None:
        """An object of the owner's namespace. Raises LookupError as `lister`."""
        found = self.lister(resource).get(self.namespace, name)
        if found is not None:
            self.unseen.forget(resource, name)
        return found

    def referred(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """What the owner refers to, be it selected or not: what no cache can show is read live, once in a reconcile.

        None where it does not exist, or is in another namespace that may not be read. Raises LookupError as `lister`,
        ApiError, TransportError.
        """
        cached = self.lister(resource).get(namespace, name)
        if cached is not None or not self.owned.is_selective:
            return cached
        key = resource, namespace, name
        if key not in self._beyond:
            self._beyond[key] = self._live_beyond(resource, namespace, name)
        return self._beyond[key]

    def secret(self, name: str, namespace: str) -> Object | None:
        """A Secret, read live. Its next change brings the owner back. Raises ApiError, TransportError."""
        return self.owned.runtime.secrets.find((self.owned.resource, self.owner.key), name, namespace)

    def _live_beyond(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return self.owned.runtime.client.find(resource, name, namespace)
        except Forbidden:
            if namespace == self.namespace:
                raise
            return None

    def controls(self, child: Object) -> bool:
        """Whether another object is the owner's."""
        controller = child.metadata.controller
        return controller is not None and controller.uid == self.owner.metadata.uid

    def apply(self, resource: Resource, desired: Json, *, applied: Json | None = None) -> Object:
        """Create an object that the owner controls, or patch what differs in it; it goes when its owner goes.

        Kind, namespace, owner and the label of this controller are filled in. A creation is told as an event, and so
        is its refusal. Raises LookupError, OwnerGone, and as `Applier.apply`, which is the answer of the stage; for
        `applied` see there.
        """
        whole = self.owned_by_this(resource, desired)
        cached = self.cached(resource, desired["metadata"]["name"])
        if cached is None:
            return self._apply_unseen(resource, whole, applied)
        return self.owned.runtime.applier.apply(resource, whole, cached, applied=applied)

    def owned_by_this(self, resource: Resource, desired: Json) -> Json:
        """An object with all that says whose it is."""
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
        """Keep the owner, once it is deleted, until `finalize` of its kind has released it.

        Raises Conflict, other ApiErrors, TransportError.
        """
        self.owner = self.owned.runtime.applier.add_finalizer(self.owned.resource, self.owner, finalizer)

    def live_owner(self) -> Object:
        """The owner as the API server has it now (F4). Raises OwnerGone, ApiError, TransportError."""
        meta, kind = self.owner.metadata, self.owned.resource.kind
        live = self.owned.runtime.client.find(self.owned.resource, meta.name, meta.namespace)
        if live is None or live.metadata.uid != meta.uid or live.metadata.deletion_timestamp:
            raise OwnerGone(f"the {kind} was deleted or recreated; waiting for the cache to show that")
        return live

    def _create(self, resource: Resource, whole: Json) -> Object:
        self.live_owner()
        what = f"create {resource.kind} {whole['metadata']['name']} in {self.owned.resource.kind} {self.name}"
        record = self.owned.runtime.recorder.event
        try:
            created = self.owned.runtime.applier.create(resource, whole)
        except AlreadyExists:
            raise
        except ApiError as error:
            record(self.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
            raise
        record(self.owner, NORMAL, "SuccessfulCreate", f"{what} successful")
        return created

    def make(self, resource: Resource, desired: Json) -> Object:
        """Create an object that the owner controls; what there is of its name, read live, if it was only unseen.

        Raises OwnerGone, ApiError, TransportError.
        """
        return self._made_or_found(resource, self.owned_by_this(resource, desired))[0]

    def _made_or_found(self, resource: Resource, whole: Json) -> tuple[Object, bool]:
        """What the cache lacks may only be unseen: it is looked at live, and not created in every reconcile."""
        runtime, meta = self.owned.runtime, whole["metadata"]
        return self.unseen.make_or_find(
            resource,
            meta["name"],
            runtime.clock,
            make=lambda: self._create(resource, whole),
            find=lambda: runtime.client.find(resource, meta["name"], meta["namespace"]),
        )

    def _apply_unseen(self, resource: Resource, whole: Json, applied: Json | None) -> Object:
        there, made = self._made_or_found(resource, whole)
        if made:
            return there
        runtime, applier = self.owned.runtime, self.owned.runtime.applier
        return self.unseen.write(
            resource, there, runtime.clock, lambda: applier.apply(resource, whole, there, applied=applied)
        )


@dataclass(frozen=True, kw_only=True)
class SimpleKind(Generic[M]):
    """A kind whose objects are reconciled by `stages`, one after another.

    `model` has a field `status`, a model of the whole status but its conditions. `owns` is what stages may `apply`,
    `reads` what they look at beside that, among all that carries the label of this controller, `refers` the custom
    resources that objects name: a change of one brings back the objects that do. `name` is that of the controller,
    empty: the kind in small letters, and `managed_by` its label, empty: its name. For `defaults` and `problems` see
    `Kind`; `others_conditions` are those of a new status beside Progressing and Ready. `observe` only looks, for the
    status: nothing else is done while a spec is not valid. `further_conditions` are set beside Progressing and Ready in
    each reconcile. `finalize`, `status_fields`: see `Kind`.
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
    observe: Callable[[Reconcile[M]], Outcome] = lambda _ctx: Done()
    finalize: Callable[[Object, OwnedObjects], None] | None = None
    further_conditions: Callable[[Reconcile[M]], Mapping[str, ConditionValue]] = lambda _ctx: {}
    status_fields: StatusFields = ALL_ALIKE

    def controllers(
        self,
        runtime: Runtime,
        selector: str = "",
        permitted: Collection[Resource] | None = None,
        shared: Mapping[Resource, Informers] = MappingProxyType({}),
        settings: object = None,
    ) -> tuple[Controller, ...]:
        """Its controller, its handlers registered; nothing is started.

        `selector` selects the custom resources by label. Of what is cluster-scoped in `reads`, only those that are
        `permitted` are cached, None for all. `shared` watch resources of which others own some, too. `settings`: see
        `OwnedObjects`.
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
            problems=lambda model, _owned: self.problems(model),
            hold=_hold,
            status_fields=self.status_fields,
        )

    def _run(self, ctx: Reconcile[M], attempt: Attempt[Reconcile[M]]) -> None:
        stages = [Stage(_OBSERVED, self.observe)] if _HELD in ctx.outcomes else self.stages
        for stage in stages:
            ctx.outcomes[stage.name] = attempt(stage, ctx)

    def _conditions(self, ctx: Reconcile[M], _now: datetime) -> Mapping[str, ConditionValue]:
        ours = {PROGRESSING: progressing(ctx.outcomes), READY: done(ctx.outcomes)}
        return {**ours, **self.further_conditions(ctx)}


_HELD = "spec"
"""What answers for a spec that is not valid."""
_OBSERVED = "status"


def _hold(ctx: Reconcile[Any], _owner: Object, refusal: Refused, _remakes: bool) -> None:
    ctx.outcomes[_HELD] = refusal


def _status(ctx: Reconcile[Any]) -> Model:
    status: Model = ctx.model.status
    return status
