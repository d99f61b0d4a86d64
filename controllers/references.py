"""An index of references by name, so that a change of an object enqueues the objects that refer to it (CW-2)."""

import threading
from collections.abc import Callable, Collection

from controllers.enqueueing import NEWS, Enqueue, is_resync
from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.keys import deletion_handling_meta_namespace_key_func
from informers.tombstones import LastKnown, last_known_object
from kube.objects import Object

RefersTo = Callable[[Object], Collection[str]]
"""Returns the keys, `namespace/name`, of the objects to which an object refers."""


class References:
    """The references from objects of one kind, the sources, to objects of one resource, the targets. Thread-safe."""

    def __init__(self, refers_to: RefersTo) -> None:
        self._refers_to = refers_to
        self._lock = threading.Lock()
        self._targets: dict[str, frozenset[str]] = {}
        self._sources: dict[str, set[str]] = {}

    def sources_of(self, target: str) -> list[str]:
        """The keys of the objects that refer to `target`, sorted."""
        with self._lock:
            return sorted(self._sources.get(target, ()))

    def noting(self) -> ResourceEventHandlerDetailedFuncs:
        """The handler of the sources: it keeps the index up to date."""
        return ResourceEventHandlerDetailedFuncs(
            on_add=lambda source, _: self._note(source.key, self._refers_to(source)),
            on_update=lambda _, source: self._note(source.key, self._refers_to(source)),
            on_delete=lambda deleted: self._note(deletion_handling_meta_namespace_key_func(deleted), ()),
        )

    def enqueueing(
        self, enqueue: Enqueue, is_news: Callable[[Object, Object], bool] = lambda _old, _new: True
    ) -> ResourceEventHandlerDetailedFuncs:
        """The handler of the targets: an event of a target enqueues its sources.

        Updates for which `is_news` is False are ignored.
        """

        def tell(target: Object | None) -> None:
            for source in self.sources_of(target.key) if target else ():
                enqueue(source, NEWS)

        def on_update(old: Object, new: Object) -> None:
            if not is_resync(old, new) and is_news(old, new):
                tell(new)

        def on_delete(deleted: LastKnown) -> None:
            tell(last_known_object(deleted))

        return ResourceEventHandlerDetailedFuncs(lambda target, _: tell(target), on_update, on_delete)

    def _note(self, source: str, targets: Collection[str]) -> None:
        with self._lock:
            for target in self._targets.pop(source, ()):
                self._sources[target].discard(source)
                if not self._sources[target]:
                    del self._sources[target]
            if targets:
                self._targets[source] = frozenset(targets)
            for target in targets:
                self._sources.setdefault(target, set()).add(source)
