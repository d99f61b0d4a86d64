"""Who manages which fields of an object, for server-side apply (structured-merge-diff, in the form FieldsV1).

Only objects that were applied have records. As on a real server, fields from before the first apply belong to
`before-first-apply`.

A path is a tuple of FieldsV1's elements: `f:name` is a field, `k:{"name":"a"}` the item of a list with that key.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from kube.objects import Json
from sandbox.apiserver import schemas

Path: TypeAlias = tuple[str, ...]
Paths: TypeAlias = frozenset[Path]

BEFORE = "before-first-apply"
_ITEM = "."
_UNMANAGED = (
    *(("f:apiVersion",), ("f:kind",)),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
            *("deletionGracePeriodSeconds", "managedFields", "selfLink", "generateName"),
        )
    ),
)
"""Fields without a manager: the server's own, and the object's identity."""


@dataclass(frozen=True, slots=True)
class Record:
    """The fields that one manager has applied or updated, and the time."""

    manager: str
    operation: str
    api_version: str
    time: str
    paths: Paths
    subresource: str = ""

    def tree(self) -> Json:
        """An entry of `metadata.managedFields`."""
        entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _as_fields(self.paths),
        }
        return entry | ({"subresource": self.subresource} if self.subresource else {})

    def is_of(self, other: "Record") -> bool:
        """True if both records belong to one manager and operation."""
        mine, others = ((record.manager, record.operation, record.subresource) for record in (self, other))
        return mine == others


def read(tree: Json) -> list[Record]:
    """The records of an object."""
    return [
        Record(
            entry["manager"],
            entry["operation"],
            entry["apiVersion"],
            entry["time"],
            frozenset(_from_fields(entry["fieldsV1"])),
            entry.get("subresource", ""),
        )
        for entry in tree["metadata"].get("managedFields") or ()
    ]


def write(tree: Json, records: Iterable[Record]) -> None:
    """Store an object's records; empty ones are dropped."""
    tree["metadata"]["managedFields"] = [record.tree() for record in records if record.paths]


def leaves(tree: Json, schema: Json) -> dict[Path, Any]:
    """The values of an object that can be managed, by their paths."""
    found = dict(_leaves(tree, schema, ()))
    return {path: value for path, value in found.items() if not any(path[: len(each)] == each for each in _UNMANAGED)}


def merged(current: Any, applied: Any, schema: Json) -> Any:
    """The current value merged with an applied one: objects and keyed lists are merged, everything else is replaced."""
    node = schemas.resolve(schema)
    if isinstance(applied, dict) and isinstance(current, dict) and not _is_atomic(node):
        inner = {name: merged(current.get(name), value, _inner(node, name)) for name, value in applied.items()}
        return current | inner
    if (keys := _keys(node)) and isinstance(applied, list) and isinstance(current, list):
        items = {_key(item, keys): item for item in current}
        for item in applied:
            items[_key(item, keys)] = merged(items.get(_key(item, keys)), item, node.get("items") or {})
        return list(items.values())
    return applied


def without(tree: Json, paths: Iterable[Path]) -> Json:
    """A copy of an object without the values at some paths, and without parents that become empty."""
    copy: Json = msgspec.json.decode(msgspec.json.encode(tree))
    # whole items first: an item is found by the fields of its key
    for path in sorted(paths, key=lambda path: (path[-1] != _ITEM, -len(path))):
        _remove(copy, path)
    return copy


def shown(path: Path) -> str:
    """A path as messages name it: `.spec.ports[port=80].name`."""
    return "".join(_shown(element) for element in path)


def _shown(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    pairs = msgspec.json.decode(text).items()
    return f"[{','.join(f'{name}={msgspec.json.encode(value).decode()}' for name, value in pairs)}]"


def _leaves(value: Any, schema: Json, path: Path) -> Iterator[tuple[Path, Any]]:
    node = schemas.resolve(schema)
    if isinstance(value, dict) and value and not _is_atomic(node):
        for name, inner in value.items():
            yield from _leaves(inner, _inner(node, name), (*path, f"f:{name}"))
    elif (keys := _keys(node)) and isinstance(value, list):
        for item in value:
            place = (*path, _key(item, keys))
            yield (*place, _ITEM), None
            yield from _leaves(item, node.get("items") or {}, place)
    else:
        yield path, value


def _inner(node: Json, name: str) -> Json:
    return schemas.property_of(node, name) or {}


def _is_atomic(node: Json) -> bool:
    return node.get("x-kubernetes-map-type") == "atomic"


def _keys(node: Json) -> tuple[str, ...]:
    """The fields that identify the items of a list; empty for a list that is replaced as a whole."""
    return tuple(node["x-kubernetes-list-map-keys"]) if node.get("x-kubernetes-list-type") == "map" else ()


def _key(item: Json, keys: tuple[str, ...]) -> str:
    defaults = {"protocol": "TCP"}
    chosen = {name: item.get(name, defaults.get(name)) for name in sorted(keys)}
    return f"k:{msgspec.json.encode({name: value for name, value in chosen.items() if value is not None}).decode()}"


def _remove(value: Any, path: Path) -> None:
    """Remove the value at a path, and parents that become empty."""
    first, *rest = path
    place = _place(value, first)
    if place is None:
        return
    if rest and rest != [_ITEM]:
        _remove(value[place], tuple(rest))
        if value[place] not in ({}, []):
            return
    del value[place]


def _place(value: Any, element: str) -> Any:
    """The key or index of a path's element; None if it does not exist."""
    kind, _, text = element.partition(":")
    if kind == "f":
        return text if isinstance(value, dict) and text in value else None
    keys: Mapping[str, Any] = msgspec.json.decode(text)
    items = value if isinstance(value, list) else []
    return next((n for n, item in enumerate(items) if _key(item, tuple(keys)) == element), None)


def _as_fields(paths: Paths) -> Json:
    tree: Json = {}
    for path in sorted(paths):
        place = tree
        for element in path:
            place = place.setdefault(element, {})
    return tree


def _from_fields(tree: Json, path: Path = ()) -> Iterator[Path]:
    for element, inner in tree.items():
        if inner:
            yield from _from_fields(inner, (*path, element))
        else:
            yield (*path, element)
