"""Substitutes for the informers: caches that follow the API server's history on request.

live      delivers every change, in order, as a watch does
blind     delivers nothing, because the watch lags (FP2); afterwards it delivers the missed changes one by one
cut       as blind, but afterwards it lists: objects created and deleted meanwhile are never seen (FP3, FP12)
emptied   as cut, after a list without items, as from an API server that has only begun to read its storage (R15)
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from controllers.informing import NO_RESYNC
from informers.handlers import ResourceEventHandler
from informers.tombstones import DeletedFinalStateUnknown
from kube.objects import Object
from kube.reading import IndexFunc
from kube.resources import Resource
from ports.transport import Request
from sandbox.apiserver import ApiServer
from sandbox.apiserver.audit import Call
from sandbox.apiserver.selectors import Predicate
from sandbox.apiserver.storage import Change, Stored, TooOld

USER = "system:cache"
"""The user name of the caches, for faults of the API server."""


class Cache:
    """One resource as of the last `look`; a `Lister` with event handlers."""

    def __init__(self, server: ApiServer, resource: Resource, selects: Predicate, at: int | None) -> None:
        """`selects` are the selected objects; `at` is the version of the first list, None for the newest (FP2)."""
        self._server = server
        self._storage = server.storage
        self._resource = resource
        self._name = str(resource)
        self._watch = Call(USER, "watch", self._name, "", "", "", Request("GET", resource.path()))
        self._selects = selects
        self._handlers: list[ResourceEventHandler] = []
        self._resynced: list[ResourceEventHandler] = []
        self._objects: dict[str, Object] = {}
        self._selected: dict[tuple[str, frozenset[tuple[str, str]]], list[Object]] = {}
        """The lists since the last change: a reconcile asks for the same ones again. Informers have indexes instead."""
        self._first = at
        self._seen: int | None = None
        self._must_list = True
        self._changes = 0
        self.blind = False
        """While True, looking shows nothing new."""

    def add_event_handler(self, handler: ResourceEventHandler, resync_period: float | None = None) -> None:
        """Deliver later changes to `handler`, and resyncs unless their period is 0; call it before the first look."""
        self._handlers.append(handler)
        if resync_period != NO_RESYNC:
            self._resynced.append(handler)

    def has_synced(self) -> bool:
        return self._seen is not None

    def look(self) -> None:
        """Deliver new, changed and deleted objects to the handlers."""
        if self.blind or not (self._must_list or self._is_behind()) or not self._reaches_the_server():
            return
        if self._must_list:
            self._list()
            return
        assert self._seen is not None
        try:
            changes = self._storage.changes_after(self._name, self._seen)
        except TooOld:
            self._list()
            return
        for change in changes:
            self._seen = change.version
            self._follow(change)

    def cut(self) -> None:
        """Lose the watch: the next look lists, which shows only the last state of each object."""
        self._must_list = True

    def empty(self) -> None:
        """Deliver a list without items; the next look lists again."""
        self._replace((), is_initial=False)
        self._must_list = True

    def resync(self) -> None:
        """Deliver every object again to the handlers with resyncs."""
        for item in list(self._objects.values()):
            for handler in self._resynced:
                handler.on_update(item, item)

    @property
    def changes(self) -> int:
        return self._changes

    def get(self, namespace: str, name: str) -> Object | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        return [item for item in self._objects.values() if value in function(item)]

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        wanted = frozenset((labels or {}).items())
        found = self._selected.get((namespace, wanted))
        if found is None:
            found = self._selected[namespace, wanted] = [
                item
                for item in self._objects.values()
                if namespace in ("", item.metadata.namespace) and wanted <= item.metadata.labels.items()
            ]
        return list(found)

    def _is_behind(self) -> bool:
        """True if the API server has later changes of the resource, or has forgotten what the cache has seen."""
        return self._seen is None or self._storage.version_of(self._name) > self._seen

    def _reaches_the_server(self) -> bool:
        return self._server.faults(self._watch) is None

    def _list(self) -> None:
        self._replace(self._listed(), is_initial=self._seen is None)
        self._must_list = False
        self._seen, self._first = self._listed_at(), None

    def _replace(self, found: Iterable[Object], *, is_initial: bool) -> None:
        before, self._objects = self._objects, {item.key: item for item in found}
        self._selected.clear()
        self._changes += 1
        for key, new in self._objects.items():
            old = before.get(key)
            if old is None:
                self._notify_add(new, is_initial)
            elif old.metadata.resource_version != new.metadata.resource_version:
                self._notify_update(old, new)
        for key, gone in before.items():
            if key not in self._objects:
                for handler in self._handlers:
                    handler.on_delete(DeletedFinalStateUnknown(key, gone))

    def _listed(self) -> Iterable[Object]:
        stored = self._storage.list_at(self._name, "", self._listed_at())
        return [self._object(each) for each in stored if self._selects(each)]

    def _listed_at(self) -> int:
        return self._storage.version if self._first is None else self._first

    def _follow(self, change: Change) -> None:
        key, stored = change.stored.key, change.stored
        old = self._objects.get(key)
        self._selected.clear()
        self._changes += 1
        if change.type == "DELETED" or not self._selects(stored):
            if old is not None:
                del self._objects[key]
                for handler in self._handlers:
                    handler.on_delete(self._object(stored))
            return
        new = self._objects[key] = self._object(stored)
        if old is None:
            self._notify_add(new, False)
        else:
            self._notify_update(old, new)

    def _notify_add(self, new: Object, is_initial: bool) -> None:
        for handler in self._handlers:
            handler.on_add(new, is_initial)

    def _notify_update(self, old: Object, new: Object) -> None:
        for handler in self._handlers:
            handler.on_update(old, new)

    def _object(self, stored: Stored) -> Object:
        return Object(stored.raw, self._resource.api_version, self._resource.kind)


class Caches:
    """The caches of one selection, created on first use; has the interface of `SharedInformerFactory`."""

    def __init__(
        self,
        server: ApiServer,
        selects: Predicate,
        at: int | None = None,
        instead: Mapping[Resource, Resource] = MappingProxyType({}),
    ) -> None:
        """`instead`: as of the operator's clients, see `kube.client.Client`."""
        self._server = server
        self._selects = selects
        self._at = at
        self._instead = instead
        self._caches: dict[Resource, Cache] = {}

    def informer_for(self, resource: Resource) -> Cache:
        """The cache of a resource, always the same."""
        cache = self._caches.get(resource)
        if cache is None:
            followed = self._instead.get(resource, resource)
            cache = self._caches[resource] = Cache(self._server, followed, self._selects, self._at)
        return cache

    def lister_for(self, resource: Resource) -> Cache:
        """The cache of a resource as a lister."""
        return self.informer_for(resource)

    def all(self) -> dict[Resource, Cache]:
        """The caches created so far."""
        return dict(self._caches)
