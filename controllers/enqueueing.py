"""Event handlers that all controllers share: they enqueue the key that a change affects (CW-2, CW-3).

Keys from an initial list or a resync have a low priority, so that changes never wait behind them (PQ-10).
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
"""The priority of an object that its user has changed or deleted, or whose next stage has just become possible.

The queue does not delay it, even if the key was synced a moment ago.
"""

NEWS = 0
"""The priority of a change."""

DETAIL = -1
"""The priority of a change that no stage waits for, such as a number in a status.

The sync is delayed a little, and covers further changes until then.
"""

ECHO = -2
"""The priority of a status that the last sync of the object has written: a late sync, in case a stage waits for it."""

NO_NEWS = -100
"""The priority of objects in the initial list of a handler, and of resyncs (PQ-10)."""


class Enqueue(Protocol):
    """Takes a key and its priority, like the `add` of a PriorityQueue."""

    def __call__(self, key: str, /, priority: int = NEWS) -> None:
        """Add the key to a queue."""


def priority_of_add(is_in_initial_list: bool) -> int:
    """The priority of an `on_add`."""
    return NO_NEWS if is_in_initial_list else NEWS


def priority_of_update(old: Object, new: Object) -> int:
    """The priority of an `on_update`: DETAIL if only the status differs."""
    if is_resync(old, new):
        return NO_NEWS
    return NEWS if _wish(old) != _wish(new) else DETAIL


def _wish(obj: Object) -> tuple[object, ...]:
    """The parts of an object that differ when its desired state does.

    Objects without a generation, such as ConfigMaps and Services, differ with each change.
    """
    meta = obj.metadata
    generation = meta.generation or meta.resource_version
    marks = (meta.labels, meta.annotations, meta.finalizers, meta.deletion_timestamp, meta.controller)
    return meta.uid, generation, *marks


def _is_by_its_user(old: Object, new: Object) -> bool:
    """True if the spec has changed, or the object is to be deleted.

    Comparing generations is not enough: if the CRD has no status subresource, each write of a status changes it.
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
    """True if an update makes the last replica of a StatefulSet ready."""
    return _is_ready(new) and not _is_ready(old)


def _is_ready(obj: Object) -> bool:
    seen = obj.decode_as(_Replicated)
    return seen.status.ready_replicas >= seen.spec.replicas > 0


def is_resync(old: Object, new: Object) -> bool:
    """True if an `on_update` reports no change."""
    return old.metadata.resource_version == new.metadata.resource_version


def enqueue_object(
    enqueue: Enqueue, is_echo: Callable[[Object], bool] = lambda _: False
) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues an object for each of its events, including resyncs.

    `is_echo` returns True if the object is unchanged since its last sync and no stage waits for what that sync wrote.
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
    """A handler that calls `tell` with each created, changed or deleted object, but not for the initial list."""

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
    """A handler that enqueues the `resource` object that controls a changed object, before and after the change.

    Owners that `owners` lacks, or has with another UID, are ignored. With `statuses_are_details` a change of the status
    has the priority DETAIL, except when the last replica of a StatefulSet becomes ready: stages wait for that.
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
