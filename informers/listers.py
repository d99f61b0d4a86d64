"""Reads from one cache (informers-workqueue.md 16). Implements `kube.reading.Lister`.

Objects are shared and immutable; `decode` returns a tree that the caller may change. Until the informer has synced, an
object that is absent may not have arrived yet.
"""

from collections.abc import Callable, Mapping

import structlog

from informers.index import INSTANCE, INSTANCE_LABEL, NAMESPACE, OWNER_UID, instance_value
from informers.selectors import EVERYTHING, Selector
from informers.store import IndexNotFoundError, Store
from kube.objects import Object
from kube.reading import IndexFunc
from kube.resources import Resource

log = structlog.get_logger(__name__)


class StoreLister:
    """Reads the objects of one resource from its store."""

    def __init__(self, store: Store, resource: Resource, before_reading: Callable[[], None] | None = None) -> None:
        """Every read first calls `before_reading`, which may raise."""
        self._all = store
        self._resource = resource
        self._before_reading = before_reading

    @property
    def _store(self) -> Store:
        if self._before_reading is not None:
            self._before_reading()
        return self._all

    @property
    def changes(self) -> int:
        """The number of changes of the cache so far."""
        return self._store.changes

    def get(self, namespace: str, name: str) -> Object | None:
        """The cached object, or None (LST-2). `namespace` empty for cluster-scoped resources."""
        return self._store.get_by_key(f"{namespace}/{name}" if namespace else name)

    def owned_by(self, uid: str) -> list[Object]:
        """Objects whose controlling owner has this UID. Raises IndexNotFoundError."""
        return self._store.by_index(OWNER_UID, uid)

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        """Objects for which `function` returns `value`; the first call adds the index (ST-7)."""
        name = f"{function.__module__}.{function.__qualname__}"
        store = self._store
        store.ensure_indexer(name, function)
        return store.by_index(name, value)

    def select(self, selector: Selector, namespace: str = "") -> list[Object]:
        """Objects of a namespace (empty: all) whose labels match, in no promised order (LST-1)."""
        if selector.selects_nothing:
            return []
        objects = _in_namespace(self._store, namespace) if namespace else self._store.list()
        return objects if selector == EVERYTHING else [obj for obj in objects if selector.matches(obj.metadata.labels)]

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a namespace (empty: all) whose labels contain all of `labels`, in no promised order.

        With a namespace and the instance label, the lister reads only the objects of that instance (LST-6).
        """
        wanted = dict(labels or {})
        instance = wanted.get(INSTANCE_LABEL)
        if namespace and instance and INSTANCE in self._store.get_indexers():
            objects = self._store.by_index(INSTANCE, instance_value(namespace, instance))
        else:
            objects = self.select(EVERYTHING, namespace)
        if not wanted:
            return objects
        return [obj for obj in objects if wanted.items() <= obj.metadata.labels.items()]


def _in_namespace(store: Store, namespace: str) -> list[Object]:
    try:
        return store.by_index(NAMESPACE, namespace)
    except IndexNotFoundError:
        log.warning("no namespace index, scanning all objects", namespace=namespace)
        return [obj for obj in store.list() if obj.metadata.namespace == namespace]
