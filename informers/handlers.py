"""Event handlers of informers (informers-workqueue.md INF-21).

A handler computes keys and adds them to queues. It calls no API and does not sleep (CW-2).
"""

from collections.abc import Callable
from typing import Protocol

from informers.tombstones import LastKnown
from kube.objects import Object

OnAdd = Callable[[Object], None]
OnDetailedAdd = Callable[[Object, bool], None]
OnUpdate = Callable[[Object, Object], None]
OnDelete = Callable[[LastKnown], None]


class ResourceEventHandler(Protocol):
    """Receives notifications, one at a time, in a thread of its own."""

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """Handle a new object; `is_in_initial_list` is True if it existed before the handler was registered."""

    def on_update(self, old: Object, new: Object) -> None:
        """Handle a change or a resync.

        Equal versions mean a resync (INF-22); different UIDs mean that the object was deleted and recreated (INF-24).
        """

    def on_delete(self, obj: LastKnown) -> None:
        """Handle a deletion; `obj` is a tombstone if the watch missed it (INF-23)."""


class ResourceEventHandlerFuncs:
    """A handler made of up to three functions; notifications without a function are dropped."""

    def __init__(
        self, on_add: OnAdd | None = None, on_update: OnUpdate | None = None, on_delete: OnDelete | None = None
    ) -> None:
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:  # noqa: ARG002  (the short form does not ask)
        """Call the function for additions."""
        if self._on_add:
            self._on_add(obj)

    def on_update(self, old: Object, new: Object) -> None:
        """Call the function for updates."""
        if self._on_update:
            self._on_update(old, new)

    def on_delete(self, obj: LastKnown) -> None:
        """Call the function for deletions."""
        if self._on_delete:
            self._on_delete(obj)


class ResourceEventHandlerDetailedFuncs:
    """As ResourceEventHandlerFuncs, with `is_in_initial_list` for additions."""

    def __init__(
        self,
        on_add: OnDetailedAdd | None = None,
        on_update: OnUpdate | None = None,
        on_delete: OnDelete | None = None,
    ) -> None:
        self._on_add = on_add
        self._others = ResourceEventHandlerFuncs(on_update=on_update, on_delete=on_delete)

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """Call the function for additions."""
        if self._on_add:
            self._on_add(obj, is_in_initial_list)

    def on_update(self, old: Object, new: Object) -> None:
        """Call the function for updates."""
        self._others.on_update(old, new)

    def on_delete(self, obj: LastKnown) -> None:
        """Call the function for deletions."""
        self._others.on_delete(obj)


class FilteringResourceEventHandler:
    """Passes on notifications of accepted objects. An object that becomes accepted is added, one that is no longer
    accepted is deleted. `accepts` also receives tombstones.
    """

    def __init__(self, accepts: Callable[[LastKnown], bool], handler: ResourceEventHandler) -> None:
        self._accepts = accepts
        self._handler = handler

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """Pass on the addition of an accepted object."""
        if self._accepts(obj):
            self._handler.on_add(obj, is_in_initial_list)

    def on_update(self, old: Object, new: Object) -> None:
        """Pass on an update, an addition, a deletion of the old state, or nothing."""
        match self._accepts(old), self._accepts(new):
            case True, True:
                self._handler.on_update(old, new)
            case False, True:
                self._handler.on_add(new, False)
            case True, False:
                self._handler.on_delete(old)

    def on_delete(self, obj: LastKnown) -> None:
        """Pass on the deletion of an accepted object."""
        if self._accepts(obj):
            self._handler.on_delete(obj)
