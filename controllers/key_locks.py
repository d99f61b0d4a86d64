"""Locks by object: several controllers act for one object, but never two at a time (I35).

A controller may have just read that all pods are Ready, or that PD has another leader, and this must still hold when it
acts. Controllers try the lock and never wait for it, so that no worker is blocked by another.

The locks also answer which process owns an object where several processes share the objects
(docs/adr/0010-shards-by-leases.md). The answer depends only on the key of the object, which never changes, so that
processes with caches of different age agree.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kube.resources import Resource
from ports.fencing import Fence, Ownership

RETRY_AFTER = 0.2
"""Seconds after which a controller that did not get the lock tries again."""


class KeyLocks:
    """Locks of objects, by resource and key. Shared by the controllers of one process."""

    def __init__(self, ownership: Ownership) -> None:
        """`ownership` decides which objects belong to this process."""
        self._ownership = ownership
        self._lock = threading.Lock()
        self._taken: set[tuple[Resource, str]] = set()

    def owns(self, resource: Resource, key: str) -> bool:
        """True if the object `namespace/name` belongs to this process."""
        return self._ownership.owns(shared_by(resource, key))

    def fence_of(self, resource: Resource, key: str) -> Fence:
        """The fence that guards writes for an object. It is open while the object belongs to this process."""
        return self._ownership.fence_of(shared_by(resource, key))

    @contextmanager
    def try_lock(self, resource: Resource, key: str) -> Iterator[bool]:
        """Lock the object `namespace/name` for the block; the value is False if another controller has the lock."""
        taken = (resource, key)
        with self._lock:
            mine = taken not in self._taken
            self._taken.add(taken)
        try:
            with self._ownership.acting_for(shared_by(resource, key)):
                yield mine
        finally:
            if mine:
                with self._lock:
                    self._taken.discard(taken)


def shared_by(resource: Resource, key: str) -> str:
    """The key that decides the shard of an object: its own, or its namespace (`Resource.shared_by_namespace`)."""
    return key.partition("/")[0] if resource.shared_by_namespace else key
