"""Whether a cache is what the server has: for tests, soaks and debugging (informers-workqueue.md REF-40h, TEST-8).

A cache is compared with a list at exactly its own version, so that what changes meanwhile does not matter. Identity and
version are compared, not bodies: one version of one object has one body.
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
    """Sorted keys: of what the cache lacks, of what only the cache has, and of what it has in another version."""

    missing: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.missing or self.surplus or self.outdated)


def digest(objects: Iterable[Object]) -> str:
    """A text that is the same for the same objects in the same versions, in whatever order."""
    lines = sorted(f"{obj.key} {obj.metadata.uid} {obj.metadata.resource_version}\n" for obj in objects)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def compare(cached: Iterable[Object], listed: Iterable[Object]) -> Difference:
    """In what a cache differs from a list."""
    ours, theirs = {obj.key: _state(obj) for obj in cached}, {obj.key: _state(obj) for obj in listed}
    return Difference(
        missing=tuple(sorted(theirs.keys() - ours.keys())),
        surplus=tuple(sorted(ours.keys() - theirs.keys())),
        outdated=tuple(sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key])),
    )


def check(store: Store, source: ListWatch) -> Difference:
    """In what a cache that has synced differs from the server at the version of the cache.

    Raises Expired when the server has forgotten that version, other ApiErrors and TransportError.
    """
    version, cached = store.snapshot()
    listed = list_pages(source, resource_version=version, resource_version_match="Exact")
    return compare(cached, listed.items)


def _state(obj: Object) -> tuple[str, str]:
    return obj.metadata.uid, obj.metadata.resource_version
