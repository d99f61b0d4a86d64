"""Cached objects that were compared with what is desired of them, and needed nothing.

A cached object never changes: another version is another object. So the comparison is made anew only when the cache
shows another object, or something else is desired.
"""

from collections.abc import Hashable
from weakref import WeakKeyDictionary

import msgspec

from kube.objects import Json, Object


class Settled:
    """Those of one cluster. For one thread at a time."""

    def __init__(self) -> None:
        # what the cache drops is forgotten
        self._known: WeakKeyDictionary[Object, dict[Hashable, bytes]] = WeakKeyDictionary()

    def holds(self, what: Hashable, there: Object, desired: Json) -> bool:
        """Whether this very object was found to need nothing for what is desired; `what` tells the comparison."""
        settled = self._known.get(there, {}).get(what)
        return settled is not None and settled == msgspec.json.encode(desired)

    def note(self, what: Hashable, there: Object, desired: Json) -> None:
        """The object needs nothing for what is desired."""
        # text takes a tenth of the room of a tree
        self._known.setdefault(there, {})[what] = msgspec.json.encode(desired)
