"""The fields in which two trees differ, for messages and logs. Pure functions."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kube.objects import Json
from kube.semantic import covers

_ALWAYS_HIDDEN = re.compile(r"\.env\[\d+\]\.value$|^(data|stringData|binaryData)\.")
"""Fields that may contain passwords: the values of environment variables, and configuration by users."""

_LONGEST_SHOWN = 120
"""The longest text that is shown; longer ones, e.g. start scripts, are better read in the object."""

_Same: TypeAlias = Callable[[Json, Json], bool]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs: its path, and its value before and after (None: absent)."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """`path: old → new`, with JSON values; without values if they are long, trees, or may contain passwords."""
        if not self.is_shown:
            return f"{self.path} changed"
        return f"{self.path}: {json.dumps(self.old)} → {json.dumps(self.new)}"

    @property
    def is_shown(self) -> bool:
        """False if the values are long, trees, or may contain passwords."""
        return not _ALWAYS_HIDDEN.search(self.path) and _is_shown(self.old) and _is_shown(self.new)


def all_differences(old: Any, new: Any, path: str = "") -> Iterator[FieldChange]:
    """The leaves below `path` that differ; of a tree that only one side has, all its leaves."""
    trees = [each for each in (old, new) if isinstance(each, dict)]
    if trees and all(each is None or isinstance(each, dict) for each in (old, new)):
        for key in dict.fromkeys(name for tree in trees for name in tree):
            before, after = ((tree or {}).get(key) for tree in (old, new))
            yield from all_differences(before, after, f"{path}.{key}".removeprefix("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from all_differences(before, after, f"{path}[{index}]")
    elif old != new:
        yield FieldChange(path, old, new)


def first_difference(old: Json, new: Json, path: str, same: _Same) -> FieldChange | None:
    """The first leaf below `path` that differs; None if the trees agree."""
    return None if same(old, new) else _descend(old, new, path, same, lambda tree: tree)


def first_patched(live: Json, patch: Json) -> FieldChange | None:
    """The first field that a merge patch changes, metadata last; None if the patch has only preconditions."""
    rest = {key: wanted for key, wanted in patch.items() if key != "metadata"}
    return _patched(live, rest, "") or _patched_metadata(live.get("metadata") or {}, patch.get("metadata") or {})


def _patched(live: Json, patch: Json, path: str) -> FieldChange | None:
    for key, wanted in patch.items():
        below, there = f"{path}.{key}".removeprefix("."), live.get(key)
        if wanted is None:
            change = FieldChange(below, there, None) if key in live else None
        elif isinstance(wanted, dict) and isinstance(there, dict):
            change = _patched(there, wanted, below)
        else:
            # a patch replaces a list whole, but the server's defaults in it are not a change
            change = first_difference({key: there}, {key: wanted}, path, covers)
        if change:
            return replace(change, path=change.path.removeprefix("."))
    return None


def _patched_metadata(live: Json, patch: Json) -> FieldChange | None:
    for field, wanted in patch.items():
        there = live.get(field)
        if isinstance(wanted, dict) and wanted:
            key = next(iter(wanted))
            return FieldChange(f"metadata.{field}[{key}]", (there or {}).get(key), wanted[key])
        if isinstance(wanted, list) and wanted != there:
            return FieldChange(f"metadata.{field}", there, wanted)
    return None


def _descend(old: Any, new: Any, path: str, same: _Same, wrap: Callable[[Any], Any]) -> FieldChange:
    """The first leaf below `path` that differs. `wrap` restores a value's parents, whose names matter."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*new, *old]):
            below = _wrapping_key(wrap, key)
            if not same(below(old.get(key)), below(new.get(key))):
                return _descend(old.get(key), new.get(key), f"{path}.{key}", same, below)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            if not same(wrap([before]), wrap([after])):
                return _descend(before, after, f"{path}[{index}]", same, lambda value: wrap([value]))
    return FieldChange(path, old, new)


def _wrapping_key(wrap: Callable[[Any], Any], key: str) -> Callable[[Any], Any]:
    return lambda value: wrap({key: value})


def _is_shown(value: Any) -> bool:
    if isinstance(value, str):
        # some annotations contain a whole tree
        return len(value) <= _LONGEST_SHOWN and "\n" not in value and not value.startswith("{")
    return not isinstance(value, dict | list)
