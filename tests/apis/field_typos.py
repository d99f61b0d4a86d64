"""Specs with one misspelled or misplaced field inside a tree of Kubernetes, for each field of each such tree."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

from apis import crd
from apis.model_types import is_free, shape_of, shaped, step, type_of
from apis.shared import Json, Metadata, Model

Way = tuple[str | int, ...]
"""The keys and indices from the root of a tree to a value."""


@dataclass(frozen=True, slots=True)
class Typo:
    """An object of a kind with one unknown field, and the path of the field that was meant."""

    model: type[Model]
    tree: Json
    path: str
    meant: str


@dataclass(frozen=True, slots=True)
class Holder:
    """An object inside a tree of Kubernetes: where it is, and the type of each of its fields."""

    model: type[Model]
    way: Way
    fields: dict[str, inspect.Type]


def holders(kinds: Sequence[crd.Kind] = crd.KINDS) -> Iterator[Holder]:
    """Every object inside a tree of Kubernetes that the spec of a kind may have."""
    for kind in kinds:
        spec = next(each for each in _struct(kind.model).fields if each.encode_name == "spec")
        yield from _holders(kind.model, spec.type, ("spec",), is_inside=False)


def slips(holder: Holder) -> Iterator[Typo]:
    """Each field of an object with one letter dropped, doubled, swapped with the next or in the wrong case."""
    for name, kind in holder.fields.items():
        for wrong in _slips(name):
            if wrong not in holder.fields:
                yield _typo(holder, {wrong: _value(kind)}, (wrong,), (name,))


def misplaced(holder: Holder) -> Iterator[Typo]:
    """Each field of the objects inside an object written beside them, and each field beside them written inside.

    Without those that are one letter away from a field where they are written, for which they are taken.
    """
    for name, kind in holder.fields.items():
        inside = _inside(kind)
        if inside is None:
            continue
        fields, way = inside
        for inner, inner_kind in fields.items():
            if not _is_nearly_known(inner, holder.fields):
                tree = {name: _wrapped({}, way), inner: _value(inner_kind)}
                yield _typo(holder, tree, (inner,), (name, *way, inner))
        for outer, outer_kind in holder.fields.items():
            if outer != name and not _is_nearly_known(outer, fields):
                tree = {name: _wrapped({outer: _value(outer_kind)}, way)}
                yield _typo(holder, tree, (name, *way, outer), (outer,))


def _typo(holder: Holder, value: Json, wrong: Way, meant: Way) -> Typo:
    tree = _wrapped(value, holder.way)
    return Typo(holder.model, tree, _path((*holder.way, *wrong)), _path((*holder.way, *meant)))


def _holders(model: type[Model], kind: inspect.Type, way: Way, *, is_inside: bool) -> Iterator[Holder]:
    if is_free(kind):
        return
    is_inside = is_inside or shape_of(kind) is not None
    match shaped(kind):
        case inspect.StructType(cls=cls) as struct if cls is not Metadata:
            fields = {each.encode_name: each.type for each in struct.fields}
            if is_inside:
                yield Holder(model, way, fields)
            for name, inner in fields.items():
                yield from _holders(model, inner, (*way, name), is_inside=is_inside)
        case inspect.ListType(item_type=item):
            yield from _holders(model, item, (*way, 0), is_inside=is_inside)
        case inspect.DictType(value_type=item):
            yield from _holders(model, item, (*way, "any"), is_inside=is_inside)


def _inside(kind: inspect.Type) -> tuple[dict[str, inspect.Type], Way] | None:
    """The fields of an object, or of the first item of a list of objects, and the way to it."""
    match shaped(kind):
        case inspect.StructType() as struct:
            return {each.encode_name: each.type for each in struct.fields}, ()
        case inspect.ListType(item_type=item) if isinstance(shaped(item), inspect.StructType):
            found = _inside(item)
            return (found[0], (0, *found[1])) if found else None
    return None


def _is_nearly_known(name: str, fields: Collection[str]) -> bool:
    return name in fields or f"{name}s" in fields or name.removesuffix("s") in fields


def _slips(name: str) -> Iterator[str]:
    for index, letter in enumerate(name):
        yield name[:index] + name[index + 1 :]
        yield name[:index] + letter + name[index:]
        yield name[:index] + name[index + 1 : index + 2] + letter + name[index + 2 :]
        yield name[:index] + letter.swapcase() + name[index + 1 :]


def _value(kind: inspect.Type) -> Any:
    """A value of a type, as far as its form goes."""
    match shaped(kind):
        case inspect.StructType() | inspect.DictType():
            return {}
        case inspect.ListType():
            return []
    return "x"


def _wrapped(value: Any, way: Way) -> Any:
    for key in reversed(way):
        value = [value] if isinstance(key, int) else {key: value}
    return value


def _path(way: Way) -> str:
    path = ""
    for key in way:
        path = f"{path}[{key}]" if isinstance(key, int) else step(path, key)
    return path


def _struct(model: type[msgspec.Struct]) -> inspect.StructType:
    kind = type_of(model)
    assert isinstance(kind, inspect.StructType)
    return kind
