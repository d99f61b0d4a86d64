"""From a JSON tree to a model, strictly; what does not fit is reported in the terms of the manifest.

Null means absent: v1.6 writes null for lists, maps and references that are unset (api/shared-types.fields, `always`).
Kubernetes sub-trees and configurations are not looked into; the API server and the components know them better.
"""

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import inspect

from apis.problem import InvalidField, Problem
from apis.shared import Json, Metadata, Model
from ports.structs import convert

__all__ = ["InvalidField", "UnknownField", "decode", "decode_json", "encode", "unknown_fields", "without_nulls"]

_M = TypeVar("_M", bound=Model)


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that the model does not have: its JSON path, and the name the user may have meant, empty if none."""

    path: str
    nearest: str


def decode(tree: Json, model: type[_M]) -> _M:
    """The model that `tree` describes; unknown fields are ignored.

    Raises InvalidField for the first field that does not fit.
    """
    return _decoded(without_nulls(tree), model)


def decode_json(raw: bytes, model: type[_M]) -> _M:
    """As `decode`, of the text of a tree, which mostly has no null to look for."""
    tree: Json = msgspec.json.decode(raw)
    return _decoded(without_nulls(tree) if b"null" in raw else tree, model)


def _decoded(present: Json, model: type[_M]) -> _M:
    try:
        return convert(present, model)
    except msgspec.ValidationError as error:
        misfit = next(_misfits(present, _type_of(model), ""), None)
        if misfit is None:
            raise
        raise InvalidField(misfit.field, misfit.value, misfit.message) from error


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
def _type_of(model: type[Model]) -> inspect.Type:
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


def _step(path: str, key: str) -> str:
    """The path of a key below `path`."""
    if not key.replace("-", "_").isidentifier():
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _below(value: object, kind: inspect.Type, path: str) -> Iterator[tuple[object, inspect.Type, str]]:
    """The known parts of a value that fits its type so far: value, type, path."""
    match kind, value:
        case inspect.StructType(), dict():
            for field in kind.fields:
                if field.encode_name in value:
                    yield value[field.encode_name], field.type, _step(path, field.encode_name)
        case inspect.DictType(), dict():
            for key, item in value.items():
                yield item, kind.value_type, _step(path, key)
        case inspect.ListType(), list():
            for index, item in enumerate(value):
                yield item, kind.item_type, f"{path}[{index}]"


def _unknown(value: object, kind: inspect.Type, path: str) -> Iterator[UnknownField]:
    kind = _plain(kind)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        if kind.cls is Metadata:  # a Kubernetes sub-tree that is modelled in part
            return
        names = [field.encode_name for field in kind.fields]
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
    kind = _plain(kind)
    if not _fits(value, kind):
        yield Problem(path, value, f"must be {_described(kind)}")
        return
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        for field in kind.fields:
            if field.required and field.encode_name not in value:
                message = f"is required; specify {_described(_plain(field.type))}"
                yield Problem(_step(path, field.encode_name), None, message)
    for item, item_kind, item_path in _below(value, kind, path):
        yield from _misfits(item, item_kind, item_path)


_JSON_TYPES: Mapping[type[inspect.Type], tuple[type, str]] = {
    inspect.StructType: (dict, "an object"),
    inspect.DictType: (dict, "an object"),
    inspect.ListType: (list, "a list"),
    inspect.StrType: (str, "a string"),
    inspect.BoolType: (bool, "true or false"),
    inspect.IntType: (int, "an integer"),
}
"""How a type looks in a JSON tree, and what a user calls it."""


def _fits(value: object, kind: inspect.Type) -> bool:
    """Whether a value is of a type, what is below it left aside."""
    if isinstance(kind, inspect.UnionType):
        return any(_fits(value, _plain(choice)) for choice in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return value in kind.values
    expected, _ = _JSON_TYPES.get(type(kind), (type(value), ""))
    if type(value) is not expected:
        return False
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
