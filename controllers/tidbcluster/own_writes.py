"""After a write, a cache may show the object as it was before (F6, EXP-3).

A sync that acted on the older one would decide again what it has decided already. So the version of the own last
write is kept for each key, and a cached object that is older is not acted on.
"""

import threading
from dataclasses import dataclass

from kube.objects import Object


@dataclass(frozen=True, slots=True)
class _Written:
    uid: str
    version: int


class OwnWrites:
    """The newest version of each object that this process wrote."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[str, _Written] = {}

    def remember(self, written: Object) -> None:
        """Note what a write answered."""
        if version := _number(written.metadata.resource_version):
            with self._lock:
                self._written[written.key] = _Written(written.metadata.uid, version)

    def unseen(self, cached: Object) -> bool:
        """Whether the cached object is older than our last write to it; another UID is another object."""
        with self._lock:
            written = self._written.get(cached.key)
            if written is None:
                return False
            version = _number(cached.metadata.resource_version)
            if written.uid == cached.metadata.uid and version and version < written.version:
                return True
            del self._written[cached.key]
            return False

    def forget(self, key: str) -> None:
        """Drop what is known of a key whose object is gone."""
        with self._lock:
            self._written.pop(key, None)


def _number(version: str) -> int:
    """The version as a number; 0 when it is none, which compares with nothing."""
    return int(version) if version.isdecimal() else 0
