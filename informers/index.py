"""Indexes over cached objects (informers-workqueue.md ST-3, ST-9, LST-6)."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from kube.objects import Object
from kube.reading import IndexFunc

Indexers: TypeAlias = Mapping[str, IndexFunc]

NAMESPACE = "namespace"
OWNER_UID = "owner-uid"
INSTANCE = "instance"

INSTANCE_LABEL = "app.kubernetes.io/instance"


def by_namespace(obj: Object) -> list[str]:
    """The namespace; empty for cluster-scoped objects."""
    return [obj.metadata.namespace]


def by_owner_uid(obj: Object) -> list[str]:
    """The UID of the controlling owner."""
    owner = obj.metadata.controller
    return [owner.uid] if owner else []


def by_instance(obj: Object) -> list[str]:
    """`namespace/` and the instance label."""
    instance = obj.metadata.labels.get(INSTANCE_LABEL)
    return [instance_value(obj.metadata.namespace, instance)] if instance else []


def instance_value(namespace: str, instance: str) -> str:
    """The value of the index `instance` for the objects of one cluster."""
    return f"{namespace}/{instance}"


DEFAULT_INDEXERS: Indexers = MappingProxyType({NAMESPACE: by_namespace, OWNER_UID: by_owner_uid, INSTANCE: by_instance})
"""The indexes that every informer of a factory has."""


class Index:
    """One index: from values to keys. Not thread-safe: the store guards it.

    Keys are in dicts instead of sets, so that their order is deterministic.
    """

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, None]] = {}
        self._values: dict[str, tuple[str, ...]] = {}

    def put(self, key: str, values: tuple[str, ...]) -> None:
        """File `key` under exactly `values`."""
        if self._values.get(key) == values:
            return
        self.remove(key)
        if not values:
            return
        self._values[key] = values
        for value in values:
            self._keys.setdefault(value, {})[key] = None

    def remove(self, key: str) -> None:
        """Remove `key`, and values that have no more keys (ST-4)."""
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]

    def keys(self, value: str) -> Iterable[str]:
        """The keys under `value`."""
        return self._keys.get(value, {})

    def values(self) -> list[str]:
        """All values that have keys."""
        return list(self._keys)
