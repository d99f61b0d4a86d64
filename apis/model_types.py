"""Traversal of a tree along the types of its model, path by path."""

import functools
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from apis.embedded import FREE, SHAPE, shape
from ports.structs import type_info


@functools.cache
def type_of(model: type[msgspec.Struct]) -> inspect.Type:
    """The type of a whole tree."""
    return type_info(model)


def plain(kind: inspect.Type) -> inspect.Type:
    """The type without annotations and without None."""
    if isinstance(kind, inspect.Metadata):
        return plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        choices = [choice for choice in kind.types if not is_none(choice)]
        if len(choices) == 1:
            return plain(choices[0])
    return kind


def shape_of(kind: inspect.Type) -> type[msgspec.Struct] | None:
    """The model of a Kubernetes tree; None for any other type."""
    name = _annotation(kind, SHAPE)
    return shape(name) if name else None


def is_free(kind: inspect.Type) -> bool:
    """True if a value may be any tree, such as a configuration."""
    return bool(_annotation(kind, FREE))


def shaped(kind: inspect.Type) -> inspect.Type:
    """The plain type; for a Kubernetes tree, its model."""
    found = shape_of(kind)
    return type_of(found) if found else plain(kind)


def _annotation(kind: inspect.Type, key: str) -> Any:
    """The value of a type's annotation under a key (`apis.embedded`), or None."""
    if isinstance(kind, inspect.Metadata):
        return (kind.extra or {}).get(key) or _annotation(kind.type, key)
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, (_annotation(choice, key) for choice in kind.types)), None)
    return None


def is_none(kind: inspect.Type) -> bool:
    """True if it is the type of an absent value."""
    return isinstance(kind, inspect.NoneType)


def below(value: object, kind: inspect.Type, path: str) -> Iterator[tuple[object, inspect.Type, str]]:
    """The known parts of a value that fits its type so far: value, type, path."""
    match kind, value:
        case inspect.StructType(), dict():
            for field in kind.fields:
                if field.encode_name in value:
                    yield value[field.encode_name], field.type, step(path, field.encode_name)
        case inspect.DictType(), dict():
            yield from ((item, kind.value_type, item_path) for item, item_path in items(value, path))
        case inspect.ListType(), list():
            yield from ((item, kind.item_type, item_path) for item, item_path in items(value, path))


def items(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The items of a list or map, and their paths."""
    if isinstance(value, dict):
        return ((item, step(path, key)) for key, item in value.items())
    return ((item, f"{path}[{index}]") for index, item in enumerate(value))


def step(path: str, key: str) -> str:
    """The path of a key below `path`."""
    if not key.replace("-", "_").isidentifier():
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key
