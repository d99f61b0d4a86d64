"""Reads from a cache, as a port: decisions do not depend on the kind of cache."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from kube.objects import Object

IndexFunc: TypeAlias = Callable[[Object], Iterable[str]]
"""The index values of an object; there may be several, and duplicates."""


class Lister(Protocol):
    """Reads one resource from a cache. Objects are shared and immutable; an absent one may not have arrived
    yet (F1).
    """

    @property
    def changes(self) -> int:
        """The number of changes of the cache: while it is unchanged, every answer is."""

    def get(self, namespace: str, name: str, /) -> Object | None:
        """The cached object, or None if it is not cached."""

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        """Objects for which `function` returns `value`; it must be a module-level function that depends only on the
        object.
        """

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a namespace (empty: all) whose labels contain all of `labels`."""


_Answer: TypeAlias = Object | list[Object] | None
_A = TypeVar("_A", Object | None, list[Object])


def without_status(obj: Object) -> object:
    """The part of an object that a reader of everything but its status sees, comparable.

    The API server counts the changes of a spec in `metadata.generation`, where a resource has that.
    """
    meta = obj.metadata
    if not meta.generation:
        return obj
    shown = meta.labels, meta.annotations, meta.owner_references, meta.deletion_timestamp
    return meta.uid, meta.generation, shown


class Readings:
    """The answers of caches to one reader. Not thread-safe."""

    def __init__(self, seen_of: Callable[[Object], object] | None = None) -> None:
        """`seen_of`: the part of an object that the reader reads, comparable; without it, the whole object."""
        self._seen_of = seen_of
        self._answers: dict[tuple[Callable[..., _Answer], tuple[Hashable, ...]], object] = {}
        self._changed = False
        self._seen: dict[Lister, int] = {}

    def still_hold(self) -> bool:
        """True if the caches would still answer every read with the same objects."""
        if self._changed:
            return False
        now = {lister: lister.changes for lister in self._seen}
        if now != self._seen and not all(self._kept(ask(*what)) == kept for (ask, what), kept in self._answers.items()):
            return False
        self._seen = now
        return True

    def noted(self, lister: Lister, ask: Callable[..., _A], *what: Hashable) -> _A:
        """The answer of `ask(*what)`, which reads `lister`. If it differs from an earlier one, the record becomes
        invalid.
        """
        if lister not in self._seen:
            self._seen[lister] = lister.changes
        answer = ask(*what)
        is_shared = not self._seen_of and not isinstance(answer, list)
        kept = answer if is_shared else self._kept(answer)
        first = self._answers.setdefault((ask, what), kept)
        if first is not kept and first != kept:
            self._changed = True
        return answer

    def _kept(self, answer: _Answer) -> object:
        """An answer for comparisons. Objects have no equality of their own, so each equals only itself."""
        part = self._seen_of
        if isinstance(answer, list):
            return [*map(part, answer)] if part else list(answer)
        return part(answer) if part and answer is not None else answer


class NotedLister:
    """A lister that records its answers in `readings`."""

    def __init__(self, lister: Lister, readings: Readings) -> None:
        self._lister = lister
        self._readings = readings
        self.get: Callable[[str, str], Object | None] = partial(readings.noted, lister, lister.get)

    @property
    def changes(self) -> int:
        return self._lister.changes

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        return self._readings.noted(self._lister, self._lister.by_index, function, value)

    def _labelled(self, namespace: str, labels: frozenset[tuple[str, str]]) -> list[Object]:
        return self._lister.list(namespace, dict(labels))

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        return self._readings.noted(self._lister, self._labelled, namespace, frozenset((labels or {}).items()))
