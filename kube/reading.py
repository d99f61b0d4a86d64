"""Reads from a cache, as a port: decisions do not depend on the kind of cache."""

import operator
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

    def get(self, namespace: str, name: str) -> Object | None:
        """The cached object, or None if it is not cached."""

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        """Objects for which `function` returns `value`; it must be a module-level function that depends only on the
        object.
        """

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a namespace (empty: all) whose labels contain all of `labels`."""


_Answer: TypeAlias = Object | tuple[Object, ...] | None
_A = TypeVar("_A", Object | None, list[Object])


class Readings:
    """The answers of caches to one reader. Not thread-safe."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, tuple[Callable[[], Object | list[Object] | None], _Answer]] = {}
        self._changed = False
        self._seen: dict[Lister, int] = {}

    def still_hold(self) -> bool:
        """True if the caches would still answer every read with the same objects."""
        if self._changed:
            return False
        now = {lister: lister.changes for lister in self._seen}
        if now != self._seen and not all(_same(ask(), answer) for ask, answer in self._answers.values()):
            return False
        self._seen = now
        return True

    def noted(self, lister: Lister, question: Hashable, ask: Callable[[], _A]) -> _A:
        """The answer to a read. If a repeated read has another answer, the record becomes invalid."""
        if lister not in self._seen:
            self._seen[lister] = lister.changes
        answer = ask()
        kept = tuple(answer) if isinstance(answer, list) else answer  # type: ignore[redundant-expr]  # of either type
        _, first = self._answers.setdefault((lister, question), (ask, kept))
        if first is not kept and not _same(first, kept):
            self._changed = True
        return answer


class NotedLister:
    """A lister that records its answers in `readings`."""

    def __init__(self, lister: Lister, readings: Readings) -> None:
        self._lister = lister
        self._readings = readings

    @property
    def changes(self) -> int:
        return self._lister.changes

    def get(self, namespace: str, name: str) -> Object | None:
        return self._readings.noted(self._lister, (namespace, name), partial(self._lister.get, namespace, name))

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        return self._readings.noted(self._lister, (function, value), partial(self._lister.by_index, function, value))

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        question = namespace, frozenset((labels or {}).items())
        return self._readings.noted(self._lister, question, partial(self._lister.list, namespace, labels))


def _same(one: _Answer | list[Object], other: _Answer) -> bool:
    if one is None or other is None or isinstance(one, Object) or isinstance(other, Object):
        return one is other
    return len(one) == len(other) and all(map(operator.is_, one, other))
