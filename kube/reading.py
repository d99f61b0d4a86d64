"""Reading objects from a cache, as a port: decisions do not know where the cache comes from."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from kube.objects import Object

IndexFunc: TypeAlias = Callable[[Object], Iterable[str]]
"""The values an object is found under; duplicates and several are allowed."""


class Lister(Protocol):
    """Reads one resource from a cache. Objects are shared and immutable; what is absent may only be unseen (F1)."""

    def get(self, namespace: str, name: str) -> Object | None:
        """The cached object, or None when the cache does not hold it."""

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        """Objects that `function`, which stands in a module and knows nothing but the object, finds under `value`."""

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a namespace (empty: all) whose labels contain all of `labels`."""
