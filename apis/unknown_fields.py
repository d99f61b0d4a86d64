"""Fields that a model does not have, each with the field that the user may have meant.

Kubernetes drops such fields of the trees that specs embed, in silence: an affinity with a misspelled field is no
affinity. A field that is newer than `apis.embedded` is unknown here and known there, so unknown fields are reported and
passed through, never refused.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import inspect

from apis.model import Json, Metadata, Model
from apis.model_types import below, is_free, shape_of, shaped, step, type_of

UNKNOWN_FIELDS = "UnknownFields"
"""The type of the condition that names unknown fields, and its reason."""

_DEEPEST = 3
"""So many levels below an object a misplaced field is searched for."""

_MOST_PLACES = 3
"""A field that would fit in more places than these is proposed in none."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that the model does not have: its JSON path, and the fields the user may have meant.

    These are names of the same object, or whole paths in others. `is_of_kubernetes`: it is in a tree of Kubernetes.
    """

    path: str
    nearest: tuple[str, ...]
    is_of_kubernetes: bool

    def __str__(self) -> str:
        if self.nearest:
            return f"{self.path}: unknown field; did you mean {_either(self.nearest)}?"
        return f"{self.path}: {'not known to this operator' if self.is_of_kubernetes else 'unknown field'}"


def unknown_fields(tree: Json, model: type[Model]) -> list[UnknownField]:
    """The fields of `tree` that the model does not have, in document order."""
    return list(_unknown(tree, type_of(model), "", (), is_of_kubernetes=False))


def _either(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of a tree that has a model, or could have one there: it need not exist."""

    path: str
    value: Json
    kind: inspect.StructType
    exists: bool = True

    @property
    def fields(self) -> Mapping[str, inspect.Type]:
        """The types of the fields that it may have."""
        return {field.encode_name: field.type for field in self.kind.fields}


def _unknown(
    value: object, kind: inspect.Type, path: str, above: tuple[_Object, ...], *, is_of_kubernetes: bool
) -> Iterator[UnknownField]:
    if is_free(kind):
        return
    is_of_kubernetes = is_of_kubernetes or shape_of(kind) is not None
    kind = shaped(kind)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        if kind.cls is Metadata:  # a Kubernetes sub-tree that is modelled in part
            return
        here = _Object(path, value, kind)
        fields = here.fields
        for key in value:
            if key not in fields:
                yield UnknownField(step(path, key), _nearest(key, here, above), is_of_kubernetes)
        above = (*above, here)
    for item, item_kind, item_path in below(value, kind, path):
        yield from _unknown(item, item_kind, item_path, above, is_of_kubernetes=is_of_kubernetes)


def _nearest(key: str, here: _Object, above: Sequence[_Object]) -> tuple[str, ...]:
    """The fields that a key may stand for: the name with one slip, the same name elsewhere, else a similar name."""
    absent = [name for name in here.fields if name not in here.value]
    if slips := [name for name in absent if _is_one_slip(key.lower(), name.lower())]:
        return (max(slips, key=lambda name: difflib.SequenceMatcher(None, key, name).ratio()),)
    if elsewhere := _elsewhere(_Misplaced(key, here.value[key]), here, above):
        return elsewhere
    by_lower = {name.lower(): name for name in absent}
    return tuple(by_lower[name] for name in difflib.get_close_matches(key.lower(), by_lower, n=1))


def _is_one_slip(wrong: str, right: str) -> bool:
    """True if one additional, missing or different letter, or two swapped ones, turn one name into the other."""
    start = _same_letters(wrong, right)
    wrong, right = wrong[start:], right[start:]
    end = _same_letters(wrong[::-1], right[::-1])
    wrong, right = wrong[: len(wrong) - end], right[: len(right) - end]
    return max(len(wrong), len(right)) <= 1 or (len(wrong) == 2 and wrong == right[::-1])


def _same_letters(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class _Misplaced:
    """A field that may belong to another object."""

    key: str
    value: object

    def fits(self, holder: _Object) -> bool:
        """True if an object has such a field, for a value such as this one, and no value there yet."""
        kind = holder.fields.get(self.key)
        if kind is None or self.key in holder.value:
            return False
        kind = shaped(kind)
        if isinstance(kind, inspect.StructType | inspect.DictType):
            return isinstance(self.value, dict)
        return isinstance(self.value, list) == isinstance(kind, inspect.ListType) and not isinstance(self.value, dict)


def _elsewhere(misplaced: _Misplaced, here: _Object, above: Sequence[_Object]) -> tuple[str, ...]:
    """The whole paths of the nearest places below or above an object where a field fits; objects that exist first."""
    found = [(False, distance, each.path) for distance, each in enumerate(reversed(above), 1) if misplaced.fits(each)]
    found = sorted([*found, *_inside(misplaced, here)])
    nearest = [step(path, misplaced.key) for is_absent, away, path in found if (is_absent, away) == found[0][:2]]
    return tuple(nearest) if len(nearest) <= _MOST_PLACES else ()


def _inside(misplaced: _Misplaced, holder: _Object, depth: int = 1) -> Iterator[tuple[bool, int, str]]:
    """The objects below one where a field fits: whether each is absent, how deep it is, its path."""
    for name, kind in holder.fields.items():
        inner = _first_inside(holder.value.get(name), shaped(kind), step(holder.path, name))
        if inner is None:
            continue
        if misplaced.fits(inner):
            yield not inner.exists, depth, inner.path
        if depth < _DEEPEST:
            yield from _inside(misplaced, inner, depth + 1)


def _first_inside(value: object, kind: inspect.Type, path: str) -> _Object | None:
    """An object, or the first item of a list of objects, empty where it does not exist; None for other values."""
    if isinstance(kind, inspect.ListType):
        value, kind, path = (
            value[0] if isinstance(value, list) and value else None,
            shaped(kind.item_type),
            f"{path}[0]",
        )
    if not isinstance(kind, inspect.StructType) or kind.cls is Metadata:
        return None
    exists = isinstance(value, dict)
    return _Object(path, value if isinstance(value, dict) else {}, kind, exists)
