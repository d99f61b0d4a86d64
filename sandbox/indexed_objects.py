"""The objects of one resource, by key or by labels. Not thread-safe: its owner has a lock."""

from bisect import bisect_left, insort
from collections.abc import Mapping

from kube.objects import Json

_Label = tuple[str, str, str]
"""Namespace, key and value."""


class IndexedObjects:
    """Trees by `namespace/name`. A selector reads only the objects with the rarest of its labels."""

    def __init__(self) -> None:
        self._by_key: dict[str, Json] = {}
        self._keys: list[str] = []
        """Sorted."""
        self._by_label: dict[_Label, dict[str, Json]] = {}

    def get(self, key: str) -> Json | None:
        """The object with this key, or None."""
        return self._by_key.get(key)

    def all(self) -> Mapping[str, Json]:
        """All of them, by key."""
        return self._by_key

    def within(self, namespace: str = "") -> list[Json]:
        """The objects of a namespace (empty: all), by key."""
        keys = self._keys
        if namespace:
            # in the order of keys, the character after "/" comes right after all keys of the namespace
            keys = keys[bisect_left(keys, f"{namespace}/") : bisect_left(keys, f"{namespace}0")]
        return [self._by_key[key] for key in keys]

    def selected(self, namespace: str, labels: Mapping[str, str]) -> list[Json]:
        """The objects of a namespace with all of `labels` (at least one), by key."""
        found = [self._by_label.get((namespace, key, value), {}) for key, value in labels.items()]
        rarest = min(found, key=len)
        return [rarest[key] for key in sorted(rarest) if all(key in each for each in found)]

    def put(self, key: str, tree: Json) -> None:
        """Store an object, replacing the one with its key."""
        before = self._by_key.get(key)
        if before is None:
            insort(self._keys, key)
        else:
            self._forget_labels(key, before)
        self._by_key[key] = tree
        for label in _labels(tree):
            self._by_label.setdefault(label, {})[key] = tree

    def remove(self, key: str) -> None:
        """Remove an object if it exists."""
        tree = self._by_key.pop(key, None)
        if tree is not None:
            del self._keys[bisect_left(self._keys, key)]
            self._forget_labels(key, tree)

    def _forget_labels(self, key: str, tree: Json) -> None:
        for label in _labels(tree):
            left = self._by_label[label]
            del left[key]
            if not left:
                del self._by_label[label]


def _labels(tree: Json) -> list[_Label]:
    meta = tree["metadata"]
    return [(meta.get("namespace", ""), key, value) for key, value in (meta.get("labels") or {}).items()]
