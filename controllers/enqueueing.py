"""Event handlers that every controller needs: from what changed to the key that must be synced (CW-2, CW-3).

What only a start or a resync brings up has a low priority: news never wait behind it (PQ-10).
"""

from typing import Protocol

from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.keys import deletion_handling_meta_namespace_key_func
from informers.tombstones import last_known_object
from kube.objects import Object
from kube.reading import Lister
from kube.resources import Resource

NEWS = 0
"""The priority of what has just happened."""

NO_NEWS = -100
"""The priority of what was there when the handler came, and of what a resync delivers again (PQ-10)."""


class Enqueue(Protocol):
    """Takes a key and how urgent it is; the `add` of a PriorityQueue."""

    def __call__(self, key: str, /, priority: int = NEWS) -> None:
        """Add the key to a queue."""


def priority_of_add(is_in_initial_list: bool) -> int:
    """How urgent an `on_add` is."""
    return NO_NEWS if is_in_initial_list else NEWS


def is_resync(old: Object, new: Object) -> bool:
    """Whether an `on_update` reports no change."""
    return old.metadata.resource_version == new.metadata.resource_version


def enqueue_object(enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """Every event of an object enqueues it, resyncs included."""
    return ResourceEventHandlerDetailedFuncs(
        on_add=lambda obj, is_in_initial_list: enqueue(obj.key, priority_of_add(is_in_initial_list)),
        on_update=lambda old, new: enqueue(new.key, NO_NEWS if is_resync(old, new) else NEWS),
        on_delete=lambda deleted: enqueue(deletion_handling_meta_namespace_key_func(deleted)),
    )


def enqueue_owner(resource: Resource, owners: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A change of an object enqueues the `resource` object that controls it, the one before and the one after.

    An owner that `owners` does not hold, or holds with another UID, is nobody's business.
    """

    def owner(obj: Object | None, priority: int = NEWS) -> None:
        if obj is not None and (key := _controlling_key(resource, owners, obj)):
            enqueue(key, priority)

    def on_add(obj: Object, is_in_initial_list: bool) -> None:
        owner(obj, priority_of_add(is_in_initial_list))

    def on_update(old: Object, new: Object) -> None:
        if is_resync(old, new):
            return
        owner(new)
        if old.metadata.controller != new.metadata.controller:
            owner(old)

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, lambda deleted: owner(last_known_object(deleted)))


def _controlling_key(resource: Resource, owners: Lister, obj: Object) -> str | None:
    reference = obj.metadata.controller
    if reference is None or (reference.api_version, reference.kind) != (resource.api_version, resource.kind):
        return None
    owner = owners.get(obj.metadata.namespace if resource.namespaced else "", reference.name)
    return owner.key if owner is not None and owner.metadata.uid == reference.uid else None
