"""Decisions as coroutines, and what they do to the API server as values: actions.

A decision is a coroutine without an event loop. It awaits an action, the executor (`controllers.executor`) performs it,
and the decision continues with the result, or with the exception that the server's answer raised:

    async def keep(volume: Object) -> Waiting:
        await Apply(PERSISTENT_VOLUMES, retained(volume), volume)
        return Waiting("Keeping", "the volume is kept")

So no decision sends anything by itself, and a test can drive one action by action.
"""

from collections.abc import Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from kube.objects import Json, Object
from kube.resources import Resource

T = TypeVar("T")
"""The conclusion of a decision."""

R_co = TypeVar("R_co", covariant=True)
"""The result of an action."""


class Action(Generic[R_co]):
    """Something that the executor does for a decision; awaiting it returns the result."""

    __slots__ = ()

    def __await__(self) -> "Generator[Action[Any], Any, R_co]":
        """Hand the action to the executor that drives the decision."""
        result: R_co = yield self
        return result


Decision: TypeAlias = Coroutine[Action[Any], Any, T]
"""A decision in progress, with a T as its conclusion."""


@dataclass(frozen=True, slots=True)
class Create(Action[Object]):
    """Create an object. Raises AlreadyExists, and like `Apply`."""

    resource: Resource
    desired: Json


@dataclass(frozen=True, slots=True)
class Apply(Action[Object]):
    """Patch the difference between a cached object and the desired state (`kube.apply.Applier.apply`).

    Raises ForeignOwner, DeletedEachTime, Conflict, other ApiErrors, TransportError, LeaseExpired.
    """

    resource: Resource
    desired: Json
    cached: Object
    applied: Json | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Merge(Action[Object]):
    """Set fields of an object that nothing has read. Raises NotFound, other ApiErrors, TransportError, LeaseExpired."""

    resource: Resource
    desired: Json


@dataclass(frozen=True, slots=True)
class Annotate(Action[Object]):
    """Set annotations in the version that was read; None removes one. Raises Conflict, and like `Merge`."""

    resource: Resource
    cached: Object
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class AnnotateAlone(Action[bool]):
    """Set annotations unless admission would change the spec on the way; the result is True if they were set."""

    resource: Resource
    cached: Object
    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class AddFinalizer(Action[Object]):
    """Add a finalizer to an object. Raises Conflict, and like `Merge`."""

    resource: Resource
    cached: Object
    finalizer: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer(Action[Object]):
    """Remove a finalizer from a deleted object. Raises like `AddFinalizer`."""

    resource: Resource
    cached: Object
    finalizer: str


@dataclass(frozen=True, slots=True)
class PatchStatus(Action[Object | None]):
    """Write what differs between two states of an object's status; None if nothing differs.

    Raises RequeueError if another client has written since, other ApiErrors, TransportError, LeaseExpired.
    """

    resource: Resource
    cached: Object
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class Emit(Action[None]):
    """Record an event about an object; `kind` is `NORMAL` or `WARNING` of `kube.events`."""

    about: Object
    kind: str
    reason: str
    message: str
