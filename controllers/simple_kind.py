"""A kind that needs no more than a model and stages: the controller of a custom resource of one's own.

Each object owns what its stages make for it. Its status has the conditions Progressing and Ready, for which the schema
of its CustomResourceDefinition must have room.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from apis.problem import Problem
from apis.shared import Model
from controllers.conditions import PROGRESSING, READY, ConditionValue, done, progressing
from controllers.controller import Controller
from controllers.enqueueing import enqueue_owner
from controllers.kind import Kind
from controllers.kind_controller import kind_controller
from controllers.runtime import Runtime
from controllers.stages import Attempt, Stage
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import Resource
from member.labels import MANAGED_BY
from member.memory.taken_names import TakenNames
from member.outcome import Outcome

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class OwnedObjects:
    """What a process gives to the reconciles of a kind; `caches` are those of the objects that its own may own."""

    kind: str
    resource: Resource
    runtime: Runtime
    caches: Mapping[Resource, Lister]


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

    def cached(self, resource: Resource, name: str) -> Object | None:
        """An object of the owner's namespace. Raises LookupError when the kind does not own such objects."""
        cache = self.owned.caches.get(resource)
        if cache is None:
            raise LookupError(f"the kind {self.owned.kind} does not own {resource}: add it to `owns`")
        return cache.get(self.owner.metadata.namespace, name)

    def apply(self, resource: Resource, desired: Json) -> Object:
        """Create an object that the owner controls, or patch what differs in it; it goes when its owner goes.

        Kind, namespace, owner and the label of this controller are filled in. Raises LookupError, and as
        `Applier.apply`, which is the answer of the stage.
        """
        meta, owned = desired["metadata"], self.owned
        owner, kind = self.owner.metadata, {"apiVersion": owned.resource.api_version, "kind": owned.resource.kind}
        filled = {
            "namespace": owner.namespace,
            "labels": (meta.get("labels") or {}) | {MANAGED_BY: owned.kind},
            "ownerReferences": [kind | {"name": owner.name, "uid": owner.uid, "controller": True}],
        }
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | desired | {"metadata": meta | filled}
        cached = self.cached(resource, meta["name"])
        if cached is None:
            return self._apply_unseen(resource, whole)
        self.unseen.forget(resource, meta["name"])
        return owned.runtime.applier.apply(resource, whole, cached)

    def _apply_unseen(self, resource: Resource, whole: Json) -> Object:
        """What the cache lacks may only be unseen: it is looked at live, and not created in every reconcile."""
        runtime, meta = self.owned.runtime, whole["metadata"]
        there, made = self.unseen.make_or_find(
            resource,
            meta["name"],
            runtime.clock,
            make=lambda: runtime.applier.create(resource, whole),
            find=lambda: runtime.client.find(resource, meta["name"], meta["namespace"]),
        )
        if made:
            return there
        return self.unseen.write(resource, there, runtime.clock, lambda: runtime.applier.apply(resource, whole, there))


@dataclass(frozen=True, kw_only=True)
class SimpleKind(Generic[M]):
    """A kind whose objects are reconciled by `stages`, one after another.

    `model` has a field `status`, a model of the whole status but its conditions. `owns` is what stages may `apply`.
    `name` is that of the controller, empty: the kind in small letters. For `defaults` and `problems` see `Kind`.
    """

    resource: Resource
    model: type[M]
    stages: Sequence[Stage[Reconcile[M]]]
    owns: Sequence[Resource] = ()
    name: str = ""
    defaults: Callable[[M], M] = lambda model: model
    problems: Callable[[M], Sequence[Problem]] = lambda _model: ()

    def controllers(self, runtime: Runtime) -> tuple[Controller, ...]:
        """Its controller, its handlers registered; nothing is started."""
        kind = self._kind()
        objects, owned = runtime.informers(""), runtime.informers(f"{MANAGED_BY}={kind.name}")
        lister = objects.lister_for(self.resource)
        caches = {resource: owned.lister_for(resource) for resource in self.owns}
        deps = OwnedObjects(kind.name, self.resource, runtime, caches)
        controller = kind_controller(runtime, kind, objects, deps)
        for resource in self.owns:
            owned.informer_for(resource).add_event_handler(enqueue_owner(self.resource, lister, controller.enqueue))
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
            conditions=_conditions,
            defaults=self.defaults,
            problems=lambda model, _owned: self.problems(model),
        )

    def _run(self, ctx: Reconcile[M], attempt: Attempt[Reconcile[M]]) -> None:
        for stage in self.stages:
            ctx.outcomes[stage.name] = attempt(stage, ctx)


def _status(ctx: Reconcile[Any]) -> Model:
    status: Model = ctx.model.status
    return status


def _conditions(ctx: Reconcile[M], _now: datetime) -> Mapping[str, ConditionValue]:
    return {PROGRESSING: progressing(ctx.outcomes), READY: done(ctx.outcomes)}
