"""From a JSON tree to a model, strictly; what does not fit is reported in the terms of the manifest.

Null means absent: v1.6 writes null for lists, maps and references that are unset (api/shared-types.fields, `always`).
Trees of Kubernetes must have the types of `apis.embedded`; which of their fields there are, and what configurations
say, the API server and the components know better.
"""

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from apis.embedded import FREE, SHAPE
from apis.problem import InvalidField, Problem
from apis.shared import Json, Metadata, Model
from ports.structs import convert

__all__ = ["InvalidField", "UnknownField", "decode", "decode_json", "encode", "unknown_fields", "without_nulls"]

_M = TypeVar("_M", bound=Model)

_DEEPEST = 64
"""Levels of a tree of Kubernetes or a configuration: far more than any has, far fewer than a stack of Python."""


_MOST_MISFITS = 10
"""So many fields that do not fit are reported at once."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that the model does not have: its JSON path, and the name the user may have meant, empty if none."""

    path: str
    nearest: str


def decode(tree: Json, model: type[_M]) -> _M:
    """The model that `tree` describes; unknown fields are ignored.

    Raises InvalidField for the fields that do not fit.
    """
    return _decoded(without_nulls(tree), model)


def decode_json(raw: bytes, model: type[_M]) -> _M:
    """As `decode`, of the text of a tree, which mostly has no null to look for."""
    try:
        tree: Json = msgspec.json.decode(raw)
        return _decoded(without_nulls(tree) if b"null" in raw else tree, model)
    except RecursionError as error:
        raise InvalidField("spec", None, "is nested too deeply to be read") from error


def _decoded(present: Json, model: type[_M]) -> _M:
    try:
        decoded = convert(present, model)
        _check_embedded(present, _embedded_in(model), "")
        return decoded
    except msgspec.ValidationError as error:
        misfits = list(islice(_misfits(present, _type_of(model), ""), _MOST_MISFITS))
        if not misfits:
            raise
        first, *others = misfits
        raise InvalidField(first.field, first.value, first.message, others=others) from error


def encode(model: Model) -> Json:
    """The JSON tree of a model, without what equals its default."""
    tree: Json = msgspec.to_builtins(model)
    return tree


def unknown_fields(tree: Json, model: type[Model]) -> list[UnknownField]:
    """The fields of `tree` that the model does not have, in document order."""
    return list(_unknown(tree, _type_of(model), ""))


def without_nulls(tree: Json) -> Json:
    """A copy without the keys whose value is null, at any depth."""
    return {key: _value_without_nulls(value) for key, value in tree.items() if value is not None}


def _value_without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return without_nulls(value)
    if isinstance(value, list):
        return [_value_without_nulls(item) for item in value]
    return value


@functools.cache
def _type_of(model: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(model)


def _plain(kind: inspect.Type) -> inspect.Type:
    """The type without annotations and without the choice to be absent."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        choices = [choice for choice in kind.types if not _is_none(choice)]
        if len(choices) == 1:
            return _plain(choices[0])
    return kind


def _annotation(kind: inspect.Type, key: str) -> Any:
    """What an annotation of a type says under a key (`apis.embedded`); None where there is none."""
    if isinstance(kind, inspect.Metadata):
        return (kind.extra or {}).get(key) or _annotation(kind.type, key)
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, (_annotation(choice, key) for choice in kind.types)), None)
    return None


@dataclass(frozen=True, slots=True)
class _Embedded:
    """Where trees of Kubernetes and configurations are in a value: the value itself, below keys, in every item."""

    is_tree: bool = False
    shape: type[msgspec.Struct] | None = None
    keys: Mapping[str, "_Embedded"] = field(default_factory=dict)
    items: "_Embedded | None" = None


@functools.cache
def _embedded_in(model: type[Model]) -> _Embedded:
    return _embedded(_type_of(model)) or _Embedded()


def _embedded(kind: inspect.Type) -> _Embedded | None:
    if (shape := _annotation(kind, SHAPE)) or _annotation(kind, FREE):
        return _Embedded(True, shape)
    match _plain(kind):
        case inspect.StructType() as struct:
            below = {each.encode_name: _embedded(each.type) for each in struct.fields}
            keys = {name: found for name, found in below.items() if found}
            return _Embedded(keys=keys) if keys else None
        case inspect.DictType(value_type=item) | inspect.ListType(item_type=item):
            found = _embedded(item)
            return _Embedded(items=found) if found else None
    return None


def _check_embedded(value: Any, where: _Embedded, path: str) -> None:
    """Hold the trees in a value that fits so far against their models.

    Raises msgspec.ValidationError, and InvalidField for a tree that is nested too deeply.
    """
    if where.is_tree and _is_deeper(value, _DEEPEST):
        raise InvalidField(path, None, f"must not be nested deeper than {_DEEPEST} levels")
    if where.shape is not None:
        convert(value, where.shape)
    for key, below in where.keys.items():
        if key in value:
            _check_embedded(value[key], below, _step(path, key))
    if where.items is not None:
        for item, item_path in _items(value, path):
            _check_embedded(item, where.items, item_path)


def _items(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The items of a list or map, and their paths."""
    if isinstance(value, dict):
        return ((item, _step(path, key)) for key, item in value.items())
    return ((item, f"{path}[{index}]") for index, item in enumerate(value))


def _is_deeper(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(each, levels - 1) for each in inner if isinstance(each, dict | list))


def _step(path: str, key: str) -> str:
    """The path of a key below `path`."""
    if not key.replace("-", "_").isidentifier():
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _below(value: object, kind: inspect.Type, path: str) -> Iterator[tuple[object, inspect.Type, str]]:
    """The known parts of a value that fits its type so far: value, type, path."""
    match kind, value:
        case inspect.StructType(), dict():
            for each in kind.fields:
                if each.encode_name in value:
                    yield value[each.encode_name], each.type, _step(path, each.encode_name)
        case inspect.DictType(), dict():
            yield from ((item, kind.value_type, item_path) for item, item_path in _items(value, path))
        case inspect.ListType(), list():
            yield from ((item, kind.item_type, item_path) for item, item_path in _items(value, path))


def _unknown(value: object, kind: inspect.Type, path: str) -> Iterator[UnknownField]:
    kind = _plain(kind)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        if kind.cls is Metadata:  # a Kubernetes sub-tree that is modelled in part
            return
        names = [each.encode_name for each in kind.fields]
        for key in value:
            if key not in names:
                yield UnknownField(_step(path, key), _nearest(key, names))
    for item, item_kind, item_path in _below(value, kind, path):
        yield from _unknown(item, item_kind, item_path)


def _nearest(key: str, names: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(key.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else ""


def _misfits(value: object, kind: inspect.Type, path: str) -> Iterator[Problem]:
    shape = _annotation(kind, SHAPE)
    kind = _type_of(shape) if shape else _plain(kind)
    if not _fits(value, kind):
        yield Problem(path, value, f"must be {_described(kind)}")
        return
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        for each in kind.fields:
            if each.required and each.encode_name not in value:
                message = f"is required; specify {_described(_plain(each.type))}"
                yield Problem(_step(path, each.encode_name), None, message)
    for item, item_kind, item_path in _below(value, kind, path):
        yield from _misfits(item, item_kind, item_path)


_JSON_TYPES: Mapping[type[inspect.Type], tuple[type, str]] = {
    inspect.StructType: (dict, "an object"),
    inspect.DictType: (dict, "an object"),
    inspect.ListType: (list, "a list"),
    inspect.StrType: (str, "a string"),
    inspect.BoolType: (bool, "true or false"),
    inspect.IntType: (int, "an integer"),
    inspect.FloatType: (float, "a number"),
}
"""How a type looks in a JSON tree, and what a user calls it."""


def _fits(value: object, kind: inspect.Type) -> bool:
    """Whether a value is of a type, what is below it left aside."""
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, _plain(choice)) for choice in kind.types if not _is_none(choice))
    if isinstance(kind, inspect.LiteralType):
        return value in kind.values
    expected, _ = _JSON_TYPES.get(type(kind), (type(value), ""))
    if type(value) is not expected:
        return expected is float and type(value) is int
    return not isinstance(kind, inspect.IntType) or _is_within(value, kind)


def _is_within(value: object, kind: inspect.IntType) -> bool:
    assert isinstance(value, int)
    return (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)


def _described(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_described(_plain(choice)) for choice in kind.types if not _is_none(choice))
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(f'"{choice}"' for choice in kind.values)
    _, words = _JSON_TYPES[type(kind)]
    if isinstance(kind, inspect.IntType) and kind.ge is not None:
        return f"{words} of at least {kind.ge}" if kind.le is None else f"{words} from {kind.ge} to {kind.le}"
    return words


def _is_none(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.NoneType)
