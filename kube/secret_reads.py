"""Live reads of Secrets, and the reconciles that a change of a Secret triggers.

The operator caches no content of Secrets, so a cache shows no change of it. It watches their metadata instead: a read
subscribes its reader to the next change of that Secret, and to no further one. A Secret that changes often wakes a
reader once until it reads again.
"""

import threading
from collections.abc import Collection
from typing import TypeAlias

from kube.client import Client
from kube.objects import Object
from kube.resources import SECRETS, Resource

Reader: TypeAlias = tuple[Resource, str]
"""An object on whose behalf Secrets are read: its kind, and its `namespace/name`."""

_Secret: TypeAlias = tuple[str, str]
"""Namespace and name."""


class SecretReads:
    """The reads of one process. Safe for use by many threads."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._readers: dict[_Secret, set[Reader]] = {}
        self._read: dict[Reader, set[_Secret]] = {}
        self._changes: dict[Reader, int] = {}

    def find(self, reader: Reader, name: str, namespace: str) -> Object | None:
        """The current Secret, or None. Raises ApiError, TransportError."""
        # subscribe first: a change during the read counts as one after it
        with self._lock:
            self._readers.setdefault((namespace, name), set()).add(reader)
            self._read.setdefault(reader, set()).add((namespace, name))
        return self._client.find(SECRETS, name, namespace)

    def changes(self, reader: Reader) -> int:
        """The number of reported changes of Secrets that a reader had read.

        If it differs from the number before a read, that read may be outdated.
        """
        with self._lock:
            return self._changes.get(reader, 0)

    def changed(self, namespace: str, name: str) -> Collection[Reader]:
        """Record that a Secret was created, changed or deleted; return the readers that must read it again."""
        with self._lock:
            readers = self._readers.pop((namespace, name), set())
            for reader in readers:
                self._read[reader].discard((namespace, name))
                self._changes[reader] = self._changes.get(reader, 0) + 1
        return readers

    def forget(self, reader: Reader) -> None:
        """Forget a reader that was deleted."""
        with self._lock:
            self._changes.pop(reader, None)
            for secret in self._read.pop(reader, ()):
                self._readers[secret].discard(reader)
                if not self._readers[secret]:
                    del self._readers[secret]
