"""The identity of an object in caches and queues: `namespace/name` (informers-workqueue.md 2).

A key contains no UID: a watch may show a deletion and a re-creation as one update (KEY-6).
"""

from typing import cast

from informers.tombstones import DeletedFinalStateUnknown
from kube.objects import Object


class ObjectKeyError(ValueError):
    """Raised for a value that has no key; the message quotes it."""


class MalformedKeyError(ValueError):
    """Raised for a text that is not a key; the message quotes it."""


def meta_namespace_key_func(obj: object) -> str:
    """`namespace/name`, or `name` when the namespace is empty (KEY-1). Raises ObjectKeyError."""
    try:
        # only an Object has metadata; any other type is a mistake of the caller (KEY-5)
        meta = cast("Object", obj).metadata
    except AttributeError as error:
        raise ObjectKeyError(f"object has no metadata: {obj!r}") from error
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def deletion_handling_meta_namespace_key_func(obj: object) -> str:
    """The key of an object, or a tombstone's own key (KEY-3). Raises ObjectKeyError."""
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    return meta_namespace_key_func(obj)


def split_meta_namespace_key(key: str) -> tuple[str, str]:
    """Namespace and name of a key; the namespace is empty without a slash (KEY-4). Raises MalformedKeyError."""
    parts = key.split("/")
    if len(parts) == 1:
        return "", key
    if len(parts) == 2:
        return parts[0], parts[1]
    raise MalformedKeyError(f"unexpected key format: {key!r}")
