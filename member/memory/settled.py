"""Cached objects that were compared with what is desired of them, and needed nothing.

A cached object never changes: another version is another object. So the comparison is made anew only when the cache
shows another object, or something else is desired.
"""

from collections.abc import Hashable

import msgspec

from kube.objects import Json, Object


class Settled:
    """Those of one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, str], tuple[Object, bytes]] = {}

    def holds(self, what: Hashable, there: Object, desired: Json) -> bool:
        """Whether this very object was found to need nothing for what is desired; `what` tells the comparison."""
        seen, settled = self._known.get((what, there.metadata.name), (None, b""))
        return seen is there and settled == msgspec.json.encode(desired)

    def note(self, what: Hashable, there: Object, desired: Json) -> None:
        """The object needs nothing for what is desired."""
        # text takes a tenth of the room of a tree
        self._known[what, there.metadata.name] = there, msgspec.json.encode(desired)
