"""Several controllers act for one object, such as a TidbCluster, but never two at a time (I35).

What one of them has seen live - all pods Ready, another leader in PD - must still hold when it acts. Nobody waits for
its turn: a worker must not be held by what another one waits for.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kube.resources import Resource

RETRY_AFTER = 0.2
"""Seconds after which who did not get its turn tries again."""


class KeyLocks:
    """Who acts for which object. Shared by the controllers of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[tuple[Resource, str]] = set()

    @contextmanager
    def try_lock(self, resource: Resource, key: str) -> Iterator[bool]:
        """Act for the object `namespace/name` while the block runs, if the value is True; nobody else does then."""
        taken = (resource, key)
        with self._lock:
            mine = taken not in self._taken
            self._taken.add(taken)
        try:
            yield mine
        finally:
            if mine:
                with self._lock:
                    self._taken.discard(taken)
