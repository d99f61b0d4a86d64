"""Waiting until the caches show what one wrote oneself (informers-workqueue.md EXP-3).

After a write, a cache may show the world as it was before, and a sync that acted on that would decide again what it has
decided already. A cache that is as new as the write, thanks to events and bookmarks, shows it.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from informers.versions import as_number
from kube.resources import Resource

CacheVersion = Callable[[], str]
"""The version of the last write to a cache, such as `Store.last_resource_version` (ST-10)."""


@dataclass(slots=True)
class _Written:
    uid: str
    versions: dict[Resource, int] = field(default_factory=dict)


class VersionBarrier:
    """The newest version of each resource that was written on behalf of each owner. Safe for threads."""

    def __init__(self, caches: Mapping[Resource, CacheVersion]) -> None:
        """Compare with these caches; what is written to other resources is not waited for."""
        self._caches = caches
        self._lock = threading.Lock()
        self._written: dict[str, _Written] = {}

    def wrote_at(self, owner: str, owner_uid: str, resource: Resource, resource_version: str) -> None:
        """Note the version that a write for `owner` (its key) answered. Another UID is another owner."""
        version = as_number(resource_version)
        if version is None or resource not in self._caches:
            return
        with self._lock:
            written = self._written.get(owner)
            if written is None or written.uid != owner_uid:
                written = self._written[owner] = _Written(owner_uid)
            written.versions[resource] = max(version, written.versions.get(resource, 0))

    def behind(self, owner: str) -> list[Resource]:
        """The resources whose cache does not show the writes for `owner` yet; when there are any, sync later."""
        with self._lock:
            written = self._written.get(owner)
            if written is None:
                return []
            shown = [resource for resource, version in written.versions.items() if self._shows(resource, version)]
            for resource in shown:
                del written.versions[resource]
            if not written.versions:
                del self._written[owner]
            return list(written.versions)

    def clear(self, owner: str, uid: str = "") -> None:
        """Forget an owner that is gone; with a `uid`, only if it is that one."""
        with self._lock:
            written = self._written.get(owner)
            if written and uid in ("", written.uid):
                del self._written[owner]

    def _shows(self, resource: Resource, version: int) -> bool:
        shown = as_number(self._caches[resource]())
        return shown is None or shown >= version
