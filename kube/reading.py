"""Reading objects from a cache, as a port: decisions do not know where the cache comes from."""

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from kube.objects import Object

IndexFunc: TypeAlias = Callable[[Object], Iterable[str]]
"""The values an object is found under; duplicates and several are allowed."""


class Lister(Protocol):
    """Reads one resource from a cache. Objects are shared and immutable; what is absent may only be unseen (F1)."""

    @property
    def changes(self) -> int:
        """How often the cache has changed: as long as that is the same, so is each answer."""

    def get(self, namespace: str, name: str) -> Object | None:
        """The cached object, or None when the cache does not hold it."""

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        """Objects that `function`, which stands in a module and knows nothing but the object, finds under `value`."""

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a namespace (empty: all) whose labels contain all of `labels`."""


_Answer: TypeAlias = Object | tuple[Object, ...] | None
_A = TypeVar("_A", Object | None, list[Object])


class Readings:
    """What caches have answered to one reader. For one thread at a time."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, tuple[Callable[[], Object | list[Object] | None], _Answer]] = {}
        self._changed = False
        self._seen: dict[Lister, int] = {}

    def through(self, lister: Lister) -> Lister:
        """The same lister, whose answers are noted here."""
        return _NotedLister(lister, self)

    def still_hold(self) -> bool:
        """Whether the caches would answer everything with the very same objects."""
        if self._changed:
            return False
        now = {lister: lister.changes for lister in self._seen}
        if now != self._seen and not all(_same(_kept(ask()), answer) for ask, answer in self._answers.values()):
            return False
        self._seen = now
        return True

    def noted(self, lister: Lister, question: Hashable, ask: Callable[[], _A]) -> _A:
        """The answer; if a question is asked again, and answered in another way, nothing holds any more."""
        self._seen.setdefault(lister, lister.changes)
        answer = ask()
        kept = _kept(answer)
        _, first = self._answers.setdefault((lister, question), (ask, kept))
        self._changed = self._changed or not _same(first, kept)
        return answer


class _NotedLister:
    """A lister whose answers are noted."""

    def __init__(self, lister: Lister, readings: Readings) -> None:
        self._lister = lister
        self._readings = readings

    @property
    def changes(self) -> int:
        """See `Lister`."""
        return self._lister.changes

    def get(self, namespace: str, name: str) -> Object | None:
        """See `Lister`."""
        return self._readings.noted(self._lister, (namespace, name), partial(self._lister.get, namespace, name))

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        """See `Lister`."""
        return self._readings.noted(self._lister, (function, value), partial(self._lister.by_index, function, value))

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """See `Lister`."""
        question = namespace, frozenset((labels or {}).items())
        return self._readings.noted(self._lister, question, partial(self._lister.list, namespace, labels))


def _kept(answer: Object | list[Object] | None) -> _Answer:
    """An answer that its reader cannot change."""
    return tuple(answer) if isinstance(answer, list) else answer


def _same(one: _Answer, other: _Answer) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(operator.is_, one, other))
    return one is other
