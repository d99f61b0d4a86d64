"""The cache: objects by key, and indexes over them (informers-workqueue.md 13).

Every read sees one consistent state and returns a new list of the stored, immutable objects.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable

import structlog

from informers.index import Index, Indexers
from kube.objects import Object
from kube.reading import IndexFunc
from ports.failures import ANY_FAILURE

log = structlog.get_logger(__name__)


class IndexNotFoundError(LookupError):
    """Raised for the name of an index that the store does not have (ST-5)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Index with name {name} does not exist")


class IndexConflictError(ValueError):
    """Raised for indexers whose names are taken; the store adds none of them (ST-7)."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(f"indexer conflict: {', '.join(sorted(names))}")


class Store:
    """Objects by key, with indexes. Thread-safe.

    Writers take turns. Index functions run under the writers' lock, never under the readers' lock (TH-1).
    """

    def __init__(self, indexers: Indexers | None = None, on_index_failure: Callable[[str], None] | None = None) -> None:
        """`on_index_failure` gets the name of an index whose function raised (ST-8)."""
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._objects: dict[str, Object] = {}
        self._indexers: dict[str, IndexFunc] = dict(indexers or {})
        self._indexes: dict[str, Index] = {name: Index() for name in self._indexers}
        self._last_resource_version = ""
        self._changes = 0
        self._on_index_failure = on_index_failure or (lambda _: None)

    def add(self, obj: Object) -> None:
        """Store an object under its key, replacing what was there."""
        self.update(obj)

    def update(self, obj: Object) -> None:
        """Store an object under its key, replacing what was there."""
        self.change([(obj, False)])

    def delete(self, obj: Object) -> None:
        """Remove the object with the key of `obj`, whose version is the version of the deletion (ST-10)."""
        self.change([(obj, True)])

    def change(self, changes: Iterable[tuple[Object, bool]]) -> None:
        """Store each object, or remove it if its flag is True, all of them atomically (FIFO-11)."""
        with self._turn:
            prepared = [(obj.key, obj, None if gone else self._all_values(obj)) for obj, gone in changes]
            with self._lock:
                for key, obj, values in prepared:
                    self._change(key, obj, values)

    def replace(self, objects: Iterable[Object], resource_version: str) -> None:
        """Replace the content with `objects`, as of `resource_version`, atomically (ST-11, FIFO-22)."""
        by_key = {obj.key: obj for obj in objects}
        with self._turn:
            indexes = {name: self._build(name, function, by_key) for name, function in self._indexers.items()}
            with self._lock:
                self._objects = by_key
                self._indexes = indexes
                self._last_resource_version = resource_version
                self._changes += 1

    def bookmark(self, resource_version: str) -> None:
        """Record that the store is as new as `resource_version`."""
        with self._lock:
            self._last_resource_version = resource_version

    def get(self, obj: Object) -> Object | None:
        """The stored object with the key of `obj`."""
        return self.get_by_key(obj.key)

    def get_by_key(self, key: str) -> Object | None:
        """The stored object, or None."""
        with self._lock:
            return self._objects.get(key)

    def list_keys(self) -> list[str]:
        """All keys, in any order."""
        with self._lock:
            return list(self._objects)

    def index(self, name: str, obj: Object) -> list[Object]:
        """Objects that share a value of index `name` with `obj` (ST-5). Raises IndexNotFoundError."""
        function = self.get_indexers().get(name)
        if function is None:
            raise IndexNotFoundError(name)
        values = self._values(name, function, obj)
        with self._lock:
            index = self._index(name)
            keys = {key: None for value in values for key in index.keys(value)}
            return [self._objects[key] for key in keys]

    def index_keys(self, name: str, value: str) -> list[str]:
        """Sorted keys of the objects under `value` (ST-6). Raises IndexNotFoundError."""
        with self._lock:
            return sorted(self._index(name).keys(value))

    def by_index(self, name: str, value: str) -> list[Object]:
        """Objects under `value`, in any order. Raises IndexNotFoundError."""
        with self._lock:
            return [self._objects[key] for key in self._index(name).keys(value)]

    def list_index_values(self, name: str) -> list[str]:
        """All values of an index that have objects. Raises IndexNotFoundError."""
        with self._lock:
            return self._index(name).values()

    def get_indexers(self) -> dict[str, IndexFunc]:
        """The index functions by name."""
        with self._lock:
            return dict(self._indexers)

    def add_indexers(self, indexers: Indexers) -> None:
        """Add indexes over all present and future objects (ST-7). Raises IndexConflictError and then adds none."""
        with self._turn:
            if taken := self._indexers.keys() & indexers.keys():
                raise IndexConflictError(taken)
            indexes = {name: self._build(name, function, self._objects) for name, function in indexers.items()}
            with self._lock:
                self._indexers |= indexers
                self._indexes |= indexes

    def ensure_indexer(self, name: str, function: IndexFunc) -> None:
        """Add an index over all present and future objects, unless one has this name."""
        with self._lock:
            if name in self._indexes:
                return
        # a concurrent call has added it
        with contextlib.suppress(IndexConflictError):
            self.add_indexers({name: function})

    @property
    def last_resource_version(self) -> str:
        """The version of the last write, which may be newer than every object (ST-10)."""
        with self._lock:
            return self._last_resource_version

    @property
    def changes(self) -> int:
        """The number of changes so far."""
        return self._changes

    def snapshot(self) -> tuple[str, list[Object]]:
        """The version of the last write, and all objects at that version."""
        with self._lock:
            return self._last_resource_version, list(self._objects.values())

    def __len__(self) -> int:
        """The number of objects."""
        with self._lock:
            return len(self._objects)

    def list(self) -> list[Object]:
        """All objects, in any order."""
        with self._lock:
            return list(self._objects.values())

    def _change(self, key: str, obj: Object, values: dict[str, tuple[str, ...]] | None) -> None:
        """Store `obj` under its index values, or remove it if `values` is None."""
        if values is None:
            self._objects.pop(key, None)
            for index in self._indexes.values():
                index.remove(key)
        else:
            self._objects[key] = obj
            for name, index in self._indexes.items():
                index.put(key, values[name])
        self._changes += 1
        self._note_version(obj)

    def _all_values(self, obj: Object) -> dict[str, tuple[str, ...]]:
        return {name: self._values(name, function, obj) for name, function in self._indexers.items()}

    def _index(self, name: str) -> Index:
        index = self._indexes.get(name)
        if index is None:
            raise IndexNotFoundError(name)
        return index

    def _build(self, name: str, function: IndexFunc, objects: dict[str, Object]) -> Index:
        index = Index()
        for key, obj in objects.items():
            index.put(key, self._values(name, function, obj))
        return index

    def _values(self, name: str, function: IndexFunc, obj: Object) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(function(obj)))
        except ANY_FAILURE:
            # an index function that fails for an object costs neither the object nor the process
            log.exception("index function failed", index=name, object=repr(obj))
            self._on_index_failure(name)
            return ()

    def _note_version(self, obj: Object) -> None:
        if obj.metadata.resource_version:
            self._last_resource_version = obj.metadata.resource_version
