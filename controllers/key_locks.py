"""Several controllers act for one object, but never two at a time (I35).

What one of them has seen live - all pods Ready, another leader in PD - must still hold when it acts. Nobody waits for
its turn: a worker must not be held by what another one waits for.

Here, too, is asked whose an object is where several processes share them (docs/adr/0010-shards-by-leases.md). By what
it is shared, its key, never changes: two processes whose caches differ in age must give the same answer.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kube.resources import Resource
from ports.fencing import Fence, Ownership

RETRY_AFTER = 0.2
"""Seconds after which who did not get its turn tries again."""


class KeyLocks:
    """Who acts for which object. Shared by the controllers of one process."""

    def __init__(self, ownership: Ownership) -> None:
        """`ownership` tells which objects are this process's to act for."""
        self._ownership = ownership
        self._lock = threading.Lock()
        self._taken: set[tuple[Resource, str]] = set()

    def owns(self, resource: Resource, key: str) -> bool:
        """Whether the object `namespace/name` is this process's to act for."""
        return self._ownership.owns(shared_by(resource, key))

    def fence_of(self, resource: Resource, key: str) -> Fence:
        """What guards writes for an object; open where this process tells of it."""
        return self._ownership.fence_of(shared_by(resource, key))

    @contextmanager
    def try_lock(self, resource: Resource, key: str) -> Iterator[bool]:
        """Act for the object `namespace/name` while the block runs, if the value is True; nobody else does then."""
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
    """The key that decides which shard an object is in: its own, or its namespace (`Resource.shared_by_namespace`)."""
    return key.partition("/")[0] if resource.shared_by_namespace else key
