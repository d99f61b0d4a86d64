"""Tombstones of objects whose deletion the watch missed (informers-workqueue.md INF-23)."""

from dataclasses import dataclass
from typing import TypeAlias

from kube.objects import Object


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown:
    """A relist did not contain the object. `obj` is its last known state, which may be stale, or None."""

    key: str
    obj: Object | None


LastKnown: TypeAlias = Object | DeletedFinalStateUnknown
"""The argument of `on_delete`: the object at its deletion, or a tombstone."""


def last_known_object(deleted: LastKnown) -> Object | None:
    """The last known state of a deleted object, or None."""
    return deleted.obj if isinstance(deleted, DeletedFinalStateUnknown) else deleted
