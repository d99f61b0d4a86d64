"""JSON trees and merge patches (RFC 7386)."""

from collections.abc import Iterator

from kube.objects import Json

Path = tuple[str, ...]


def merged(tree: Json, patch: Json) -> Json:
    """The tree after a merge patch."""
    result = {key: value for key, value in tree.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            there = tree.get(key)
            result[key] = merged(there if isinstance(there, dict) else {}, value)
        elif value is not None:
            result[key] = value
    return result


def difference(old: Json, new: Json) -> Json:
    """The merge patch from one tree to another."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        there = old.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            if inner := difference(there, value):
                patch[key] = inner
        elif key not in old or there != value:
            patch[key] = value
    return patch


def leaves(tree: Json, path: Path = ()) -> Iterator[Path]:
    """The paths of all leaves."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)
