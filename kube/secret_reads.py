"""Secrets read live, and who has read which: what the next change of a Secret must bring back.

The operator caches no content of Secrets, so it cannot see a change in a cache. It watches their metadata instead: a
read subscribes its reader to the next change of that Secret, and no further one. However often a Secret changes, a
reader that has not read it again is not woken again.
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
        """The Secret as it is now, None where there is none. Raises ApiError, TransportError."""
        # subscribed first: a change during the read is a change after it
        with self._lock:
            self._readers.setdefault((namespace, name), set()).add(reader)
            self._read.setdefault(reader, set()).add((namespace, name))
        return self._client.find(SECRETS, name, namespace)

    def changes(self, reader: Reader) -> int:
        """How many changes of Secrets that it had read have been reported for a reader.

        A number taken before a read that is no longer this one: what was read then may be outdated.
        """
        with self._lock:
            return self._changes.get(reader, 0)

    def changed(self, namespace: str, name: str) -> Collection[Reader]:
        """Record that a Secret was created, changed or deleted; return the readers that have not seen that."""
        with self._lock:
            readers = self._readers.pop((namespace, name), set())
            for reader in readers:
                self._read[reader].discard((namespace, name))
                self._changes[reader] = self._changes.get(reader, 0) + 1
        return readers

    def forget(self, reader: Reader) -> None:
        """A reader is gone."""
        with self._lock:
            self._changes.pop(reader, None)
            for secret in self._read.pop(reader, ()):
                self._readers[secret].discard(reader)
                if not self._readers[secret]:
                    del self._readers[secret]
