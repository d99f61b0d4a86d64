"""How one listens to an informer (informers-workqueue.md INF-21).

Handlers compute keys and add them to queues; they call no API and never sleep (CW-2).
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
    """Is told what happened, one call after another, in a thread of its own."""

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """An object is new; `is_in_initial_list` when it was there before the handler was."""

    def on_update(self, old: Object, new: Object) -> None:
        """An object changed, or is told again: compare versions to skip, UIDs to see a re-creation (INF-22, INF-24)."""

    def on_delete(self, obj: LastKnown) -> None:
        """An object is gone; a tombstone when nobody saw it go (INF-23)."""


class ResourceEventHandlerFuncs:
    """A handler of up to three functions; what is left out is ignored."""

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
    """As ResourceEventHandlerFuncs, but additions are told whether they belong to the initial list."""

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
    """Tells a handler only of objects that pass; one that begins or ceases to pass is added or deleted.

    `accepts` must cope with tombstones.
    """

    def __init__(self, accepts: Callable[[LastKnown], bool], handler: ResourceEventHandler) -> None:
        self._accepts = accepts
        self._handler = handler

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """Pass on what passes."""
        if self._accepts(obj):
            self._handler.on_add(obj, is_in_initial_list)

    def on_update(self, old: Object, new: Object) -> None:
        """Pass on as update, addition, deletion of the old state, or not at all."""
        match self._accepts(old), self._accepts(new):
            case True, True:
                self._handler.on_update(old, new)
            case False, True:
                self._handler.on_add(new, False)
            case True, False:
                self._handler.on_delete(old)

    def on_delete(self, obj: LastKnown) -> None:
        """Pass on what passes."""
        if self._accepts(obj):
            self._handler.on_delete(obj)
