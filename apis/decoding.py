"""From a JSON tree to a model, strictly; what does not fit is reported in the terms of the manifest.

Null means absent: v1.6 writes null for lists, maps and references that are unset (api/shared-types.fields, `always`).
Trees of Kubernetes must have the types of `apis.embedded`; fields that these lack pass (`apis.unknown_fields`). What
configurations say, the components know better.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from apis.model import Json, Model
from apis.model_types import below, is_free, is_none, plain, shape_of, shaped, step, type_of
from apis.problem import InvalidField, Problem
from ports.structs import convert

__all__ = ["InvalidField", "decode", "decode_json", "encode", "without_nulls"]

_M = TypeVar("_M", bound=Model)

_DEEPEST = 64
"""The maximum depth of a Kubernetes tree or configuration: far more than any has, far less than Python's stack."""


_MOST_MISFITS = 10
"""The maximum number of wrong fields in one report."""


def decode(tree: Json, model: type[_M]) -> _M:
    """The model that `tree` describes; unknown fields are ignored.

    Raises InvalidField for the fields that do not fit.
    """
    return _decoded(without_nulls(tree), model)


def decode_json(raw: bytes, model: type[_M], *, is_checked: bool = False) -> _M:
    """Like `decode`, from JSON text, which mostly contains no null.

    `is_checked`: the same text was decoded before, so that its Kubernetes trees are known to fit.
    """
    try:
        tree: Json = msgspec.json.decode(raw)
        present = without_nulls(tree) if b"null" in raw else tree
        return convert(present, model) if is_checked else _decoded(present, model)
    except RecursionError as error:
        raise InvalidField("spec", None, "is nested too deeply to be read") from error


def _decoded(present: Json, model: type[_M]) -> _M:
    try:
        decoded = convert(present, model)
        _check_embedded(present, _embedded_in(model), ())
        return decoded
    except msgspec.ValidationError as error:
        misfits = list(islice(_misfits(present, type_of(model), ""), _MOST_MISFITS))
        if not misfits:
            raise
        first, *others = misfits
        raise InvalidField(first.field, first.value, first.message, others=others) from error


def encode(model: Model) -> Json:
    """The JSON tree of a model, without default values."""
    tree: Json = msgspec.to_builtins(model)
    return tree


def without_nulls(tree: Json) -> Json:
    """A copy without the keys whose value is null, at any depth."""
    return {key: _value_without_nulls(value) for key, value in tree.items() if value is not None}


def _value_without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return without_nulls(value)
    if isinstance(value, list):
        return [_value_without_nulls(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class _Embedded:
    """The places of Kubernetes trees and configurations in a value: the value itself, below keys, in every item."""

    is_tree: bool = False
    shape: type[msgspec.Struct] | None = None
    keys: Mapping[str, "_Embedded"] = field(default_factory=dict)
    items: "_Embedded | None" = None


@functools.cache
def _embedded_in(model: type[Model]) -> _Embedded:
    return _embedded(type_of(model)) or _Embedded()


def _embedded(kind: inspect.Type) -> _Embedded | None:
    shape = shape_of(kind)
    if shape or is_free(kind):
        return _Embedded(True, shape)
    match plain(kind):
        case inspect.StructType() as struct:
            fields = {each.encode_name: _embedded(each.type) for each in struct.fields}
            keys = {name: found for name, found in fields.items() if found}
            return _Embedded(keys=keys) if keys else None
        case inspect.DictType(value_type=item) | inspect.ListType(item_type=item):
            found = _embedded(item)
            return _Embedded(items=found) if found else None
    return None


def _check_embedded(value: Any, where: _Embedded, path: tuple[str | int, ...]) -> None:
    """Hold the trees in a value that fits so far against their models.

    Raises msgspec.ValidationError, and InvalidField for a tree that is nested too deeply.
    """
    if where.is_tree and _is_deeper(value, _DEEPEST):
        raise InvalidField(_path(path), None, f"must not be nested deeper than {_DEEPEST} levels")
    if where.shape is not None:
        convert(value, where.shape)
    for key, inner in where.keys.items():
        if key in value:
            _check_embedded(value[key], inner, (*path, key))
    if where.items is not None:
        parts: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for part, item in parts:
            _check_embedded(item, where.items, (*path, part))


def _path(parts: Iterable[str | int]) -> str:
    """The path of a value in a tree, below these keys and indices."""
    path = ""
    for part in parts:
        path = step(path, part) if isinstance(part, str) else f"{path}[{part}]"
    return path


def _is_deeper(value: object, levels: int) -> bool:
    """True if containers are nested in a value on more than so many levels."""
    layer = [value]
    for _ in range(levels + 1):
        inner: list[object] = []
        for each in layer:
            inner += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        if not inner:
            return False
        layer = inner
    return any(isinstance(each, dict | list) for each in layer)


def _misfits(value: object, kind: inspect.Type, path: str) -> Iterator[Problem]:
    kind = shaped(kind)
    if not _fits(value, kind):
        yield Problem(path, value, f"must be {_described(kind)}")
        return
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        for each in kind.fields:
            if each.required and each.encode_name not in value:
                message = f"is required; specify {_described(plain(each.type))}"
                yield Problem(step(path, each.encode_name), None, message)
    for item, item_kind, item_path in below(value, kind, path):
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
"""JSON's types, and users' names for them."""


def _fits(value: object, kind: inspect.Type) -> bool:
    """True if a value has a type, regardless of nested values."""
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, plain(choice)) for choice in kind.types if not is_none(choice))
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
        return " or ".join(_described(plain(choice)) for choice in kind.types if not is_none(choice))
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(f'"{choice}"' for choice in kind.values)
    _, words = _JSON_TYPES[type(kind)]
    if isinstance(kind, inspect.IntType) and kind.ge is not None:
        return f"{words} of at least {kind.ge}" if kind.le is None else f"{words} from {kind.ge} to {kind.le}"
    return words
