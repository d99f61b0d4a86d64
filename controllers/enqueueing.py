"""Event handlers that every controller needs: from what changed to the key that must be synced (CW-2, CW-3).

What only a start or a resync brings up has a low priority: news never wait behind it (PQ-10).
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.keys import deletion_handling_meta_namespace_key_func
from informers.tombstones import LastKnown, last_known_object
from kube.objects import Object
from kube.reading import Lister
from kube.resources import STATEFUL_SETS, Resource

URGENT = 1
"""The priority of an object that its user has changed or deleted, or whose next stage has waited for what is there now:
it waits for no rest.
"""

NEWS = 0
"""That of what has just happened."""

DETAIL = -1
"""That of what has just happened and what nobody waits for, such as a number in a status.

It is looked at a moment later, together with what happens until then.
"""

ECHO = -2
"""That of a status which the sync of the object has written itself: a second look, in case somebody waits for it."""

NO_NEWS = -100
"""The priority of what was there when the handler came, and of what a resync delivers again (PQ-10)."""


class Enqueue(Protocol):
    """Takes a key and how urgent it is; the `add` of a PriorityQueue."""

    def __call__(self, key: str, /, priority: int = NEWS) -> None:
        """Add the key to a queue."""


def priority_of_add(is_in_initial_list: bool) -> int:
    """How urgent an `on_add` is."""
    return NO_NEWS if is_in_initial_list else NEWS


def priority_of_update(old: Object, new: Object) -> int:
    """How urgent an `on_update` of an object is whose status alone tells of no wish."""
    if is_resync(old, new):
        return NO_NEWS
    return NEWS if _wish(old) != _wish(new) else DETAIL


def _wish(obj: Object) -> tuple[object, ...]:
    """What tells whether somebody wants something else of an object: all but the status, where there is a generation.

    That of a ConfigMap or Service has none: each change of it counts.
    """
    meta = obj.metadata
    generation = meta.generation or meta.resource_version
    marks = (meta.labels, meta.annotations, meta.finalizers, meta.deletion_timestamp, meta.controller)
    return meta.uid, generation, *marks


def _is_by_its_user(old: Object, new: Object) -> bool:
    """Whether an object got another spec, or is to be deleted.

    The generation alone does not tell: where a CRD has no status subresource it moves with each status.
    """
    before, after = old.metadata, new.metadata
    if before.deletion_timestamp != after.deletion_timestamp:
        return True
    return before.generation != after.generation and _spec(old) != _spec(new)


class _WithSpec(msgspec.Struct, frozen=True):
    spec: msgspec.Raw = msgspec.Raw()


class _Wanted(msgspec.Struct, frozen=True):
    replicas: int = 1


class _Seen(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0


class _Replicated(msgspec.Struct, frozen=True):
    spec: _Wanted = msgspec.field(default_factory=_Wanted)
    status: _Seen = msgspec.field(default_factory=_Seen)


def _spec(obj: Object) -> bytes:
    return bytes(obj.decode_as(_WithSpec).spec)


def _priority_of_status(old: Object, new: Object) -> int:
    return URGENT if new.kind == STATEFUL_SETS.kind and _becomes_ready(old, new) else priority_of_update(old, new)


def _becomes_ready(old: Object, new: Object) -> bool:
    """Whether the last replica of a StatefulSet has become ready."""
    return _is_ready(new) and not _is_ready(old)


def _is_ready(obj: Object) -> bool:
    seen = obj.decode_as(_Replicated)
    return seen.status.ready_replicas >= seen.spec.replicas > 0


def is_resync(old: Object, new: Object) -> bool:
    """Whether an `on_update` reports no change."""
    return old.metadata.resource_version == new.metadata.resource_version


def enqueue_object(
    enqueue: Enqueue, is_echo: Callable[[Object], bool] = lambda _: False
) -> ResourceEventHandlerDetailedFuncs:
    """Every event of an object enqueues it, resyncs included.

    `is_echo` tells whether an object is as its last sync has left it, and nobody waits for that.
    """

    def on_update(old: Object, new: Object) -> None:
        priority = priority_of_update(old, new)
        if priority == DETAIL:
            priority = ECHO if is_echo(new) else NEWS
        elif priority == NEWS and _is_by_its_user(old, new):
            priority = URGENT
        enqueue(new.key, priority)

    return ResourceEventHandlerDetailedFuncs(
        on_add=lambda obj, is_in_initial_list: enqueue(obj.key, priority_of_add(is_in_initial_list)),
        on_update=on_update,
        on_delete=lambda deleted: enqueue(deletion_handling_meta_namespace_key_func(deleted)),
    )


def on_change(tell: Callable[[Object], None]) -> ResourceEventHandlerDetailedFuncs:
    """Call `tell` with each object that is created, changed or deleted; not for what was there before the handler."""

    def on_add(obj: Object, is_in_initial_list: bool) -> None:
        if not is_in_initial_list:
            tell(obj)

    def on_update(old: Object, new: Object) -> None:
        if not is_resync(old, new):
            tell(new)

    def on_delete(deleted: LastKnown) -> None:
        if (gone := last_known_object(deleted)) is not None:
            tell(gone)

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, on_delete)


def enqueue_owner(
    resource: Resource, owners: Lister, enqueue: Enqueue, *, statuses_are_details: bool = False
) -> ResourceEventHandlerDetailedFuncs:
    """A change of an object enqueues the `resource` object that controls it, the one before and the one after.

    An owner that `owners` does not hold, or holds with another UID, is nobody's business. With `statuses_are_details`
    another status is one, but for that of a StatefulSet whose last replica has become ready: stages wait for that.
    """

    def owner(obj: Object | None, priority: int = NEWS) -> None:
        if obj is not None and (key := _controlling_key(resource, owners, obj)):
            enqueue(key, priority)

    def on_add(obj: Object, is_in_initial_list: bool) -> None:
        owner(obj, priority_of_add(is_in_initial_list))

    def on_update(old: Object, new: Object) -> None:
        if is_resync(old, new):
            return
        owner(new, _priority_of_status(old, new) if statuses_are_details else NEWS)
        if old.metadata.controller != new.metadata.controller:
            owner(old)

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, lambda deleted: owner(last_known_object(deleted)))


def _controlling_key(resource: Resource, owners: Lister, obj: Object) -> str | None:
    reference = obj.metadata.controller
    if reference is None or (reference.api_version, reference.kind) != (resource.api_version, resource.kind):
        return None
    owner = owners.get(obj.metadata.namespace if resource.namespaced else "", reference.name)
    return owner.key if owner is not None and owner.metadata.uid == reference.uid else None
