"""Changes of one field of an object that the API server accepts, as merge patches.

    change   another value of the same type       lower    a smaller number
    remove   the field, or the item of a list     add      a key to a map of free keys

A dry run shows which values the API server accepts; a value that it normalises to the old one is not a change.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from kube.objects import Json
from kube.resources import Resource
from simulate.engine.hands import namespace_of

Path: TypeAlias = tuple[str | int, ...]

_FREE = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector", "data"})
"""Maps with user-defined keys."""

_SHALLOW = 2
"""Maps and lists of at most this depth are also removed as a whole."""

_WORDS = (
    "NodePort",
    "ClientIP",
    "Local",
    "Always",
    "Never",
    "Default",
    "UDP",
    "OnDelete",
    "OrderedReady",
    "RollingUpdate",
    "FallbackToLogsOnError",
    "PreferDualStack",
    "True",
    "1",
)
"""Words with a meaning in Kubernetes, tried if any other text is rejected."""

NEW = "foreign"
"""A foreign key."""

_NUMBER = re.compile(r"(\d+)([A-Za-z]*)")
"""A number or a quantity."""

_COUNTED = ("resourceVersion", "generation", "managedFields")


@dataclass(frozen=True, slots=True)
class Change:
    """`path` leads to the field; `patch` is merged into the object or its `subresource`."""

    verb: str
    path: Path
    patch: Json
    subresource: str = ""

    @property
    def name(self) -> str:
        """The path, joined with dots."""
        return ".".join(map(str, self.path))


class Changes:
    """The changes that one API server accepts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def of(self, resource: Resource, tree: Json, *parts: str, subresource: str = "") -> Iterator[Change]:
        """The changes below some fields of an object."""
        for part in filter(tree.__contains__, parts):
            for path, value in _nodes(tree[part], (part,)):
                for verb, options in _options(path, value):
                    tried = (Change(verb, path, _patch(tree, path, option), subresource) for option in options)
                    if taken := next((change for change in tried if self._takes(resource, tree, change)), None):
                        yield taken

    def _takes(self, resource: Resource, tree: Json, change: Change) -> bool:
        meta = tree["metadata"]
        path = resource.path(namespace_of(resource), meta["name"], change.subresource)
        try:
            answer = self._client.request("PATCH", f"{path}?dryRun=All", body=change.patch, content_type=MERGE_PATCH)
        except ApiError:
            return False
        return _without_counts(msgspec.json.decode(answer.body)) != _without_counts(tree)


def _nodes(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every field and every item, from the outside in."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _nodes(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _nodes(inner, (*path, index))


def _options(path: Path, value: Any) -> Iterator[tuple[str, list[Any]]]:
    """The possible changes of a field, by verb, with the values to try; None removes it."""
    if isinstance(value, bool):
        yield "change", [not value]
    elif isinstance(value, int):
        yield "change", [value + 1]
        yield "lower", [1, 0] if value > 1 else [0]
    elif isinstance(value, str):
        number = _NUMBER.fullmatch(value)
        own = f"{int(number[1]) + 1}{number[2]}" if number else f"{value}-{NEW}"
        yield "change", [own, *(each for each in _WORDS if each != value)]
    elif isinstance(value, dict) and path[-1] in _FREE:
        # a patch replaces a list with all its content
        yield "add", [{NEW: "on"} if all(isinstance(step, str) for step in path) else value | {NEW: "on"}]
    if isinstance(path[-1], int) or not value or not isinstance(value, dict | list) or len(path) <= _SHALLOW:
        yield "remove", [None]


def _patch(tree: Json, path: Path, value: Any) -> Json:
    """The merge patch that sets a value at a path; lists are replaced as a whole."""
    key, rest = str(path[0]), path[1:]
    if not rest:
        return {key: value}
    inner = tree[key]
    return {key: _replaced(inner, rest, value) if isinstance(inner, list) else _patch(inner, rest, value)}


def _replaced(tree: Any, path: Path, value: Any) -> Any:
    """A list with another value at a path, or without it."""
    result = msgspec.json.decode(msgspec.json.encode(tree))
    *way, last = path
    place = result
    for step in way:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return result


def _without_counts(tree: Json) -> Json:
    meta = {key: value for key, value in tree["metadata"].items() if key not in _COUNTED}
    return tree | {"metadata": meta}
