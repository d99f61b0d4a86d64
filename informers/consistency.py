"""Comparison of a cache with the server, for tests, soaks and debugging (informers-workqueue.md REF-40h, TEST-8).

The cache is compared with a list at exactly its own version, so that changes during the comparison do not matter.
Comparing names, UIDs and versions is enough: an object has one body per version.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from informers.list_watch import ListWatch
from informers.pager import list_pages
from informers.store import Store
from kube.objects import Object


@dataclass(frozen=True, slots=True)
class Difference:
    """Sorted keys of the objects that are only on the server, only in the cache, or in both with different versions."""

    missing: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True if cache and server differ."""
        return bool(self.missing or self.surplus or self.outdated)


def digest(objects: Iterable[Object]) -> str:
    """A digest of keys, UIDs and versions that does not depend on the order of the objects."""
    lines = sorted(f"{obj.key} {obj.metadata.uid} {obj.metadata.resource_version}\n" for obj in objects)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def compare(cached: Iterable[Object], listed: Iterable[Object]) -> Difference:
    """The difference between a cache and a list."""
    ours, theirs = {obj.key: _state(obj) for obj in cached}, {obj.key: _state(obj) for obj in listed}
    return Difference(
        missing=tuple(sorted(theirs.keys() - ours.keys())),
        surplus=tuple(sorted(ours.keys() - theirs.keys())),
        outdated=tuple(sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key])),
    )


def check(store: Store, source: ListWatch) -> Difference:
    """The difference between a synced cache and the server at the version of the cache.

    Raises Expired if the server has compacted that version, other ApiErrors and TransportError.
    """
    version, cached = store.snapshot()
    listed = list_pages(source, resource_version=version, resource_version_match="Exact")
    return compare(cached, listed.items)


def _state(obj: Object) -> tuple[str, str]:
    return obj.metadata.uid, obj.metadata.resource_version
