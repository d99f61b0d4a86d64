"""After a write, a cache may show the object as it was before (F6, EXP-3).

A reconcile that acted on the older one would decide again what it has decided already. So the version of the own last
write is kept for each key, and a cached object that is older is not acted on.
"""

from dataclasses import dataclass

from kube.objects import Object


@dataclass(slots=True)
class OwnWrite:
    """The newest version of one object that this process wrote and has not seen since; 0 when there is none."""

    _uid: str = ""
    _version: int = 0
    _echo: str = ""

    def remember(self, written: Object, *, is_news: bool = True) -> None:
        """Note what a write answered, and whether what it wrote is news to the next reconcile."""
        self._echo = "" if is_news else written.metadata.resource_version
        if version := _number(written.metadata.resource_version):
            self._uid, self._version = written.metadata.uid, version

    def is_echo(self, seen: Object) -> bool:
        """Whether this is how our last write left the object, and no news."""
        return bool(self._echo) and seen.metadata.resource_version == self._echo

    def is_unseen(self, cached: Object) -> bool:
        """Whether the cached object is older than our last write to it; another UID is another object."""
        version = _number(cached.metadata.resource_version)
        if self._uid == cached.metadata.uid and version and version < self._version:
            return True
        self._version = 0
        return False


def _number(version: str) -> int:
    """The version as a number; 0 when it is none, which compares with nothing."""
    return int(version) if version.isdecimal() else 0
