"""What is left of an object whose deletion nobody saw (informers-workqueue.md INF-23)."""

from dataclasses import dataclass
from typing import TypeAlias

from kube.objects import Object


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown:
    """A tombstone: the object was gone when a relist looked. `obj`, the last state seen, may be stale or None."""

    key: str
    obj: Object | None


LastKnown: TypeAlias = Object | DeletedFinalStateUnknown
"""What on_delete gets: the object as of its deletion, or a tombstone."""


def last_known_object(deleted: LastKnown) -> Object | None:
    """The last known state of what was deleted, None when there is none."""
    return deleted.obj if isinstance(deleted, DeletedFinalStateUnknown) else deleted
