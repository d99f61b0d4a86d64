"""Every place of a spec that holds a text, and specs with another text there.

Places come from the rich spec of a kind and from its definition, so that a field which the rich spec leaves out has one
as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from apis.crd import KINDS as DEFINED
from apis.crd import definition
from kube.objects import Json
from kube.resources import Resource
from member.fields.declared import ITEM, leaves
from simulate.manifests.rich_specs import rich_spec

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A text in a spec: its place, and whether the key is meant rather than the value. `way` has the steps; missing
    ones are created."""

    kind: Resource
    way: Path
    is_key: bool = False

    def __str__(self) -> str:
        """For messages and ids of tests."""
        key = "key of " if self.is_key else ""
        return f"{key}{self.kind.kind} {'.'.join(map(str, self.way))}"

    def spec_with(self, text: str, *, behind: bool) -> Json:
        """A fresh rich spec with the text here, in place of the text at this place or behind it."""
        spec = rich_spec(self.kind)
        _choose_storage(spec, self.way)
        if self.way[0] == _BELOW_A_LOG:
            spec["restoreMode"] = "pitr"
        *above, last = self.way
        holder: Any = spec
        for step, after in zip(above, self.way[1:], strict=True):
            holder = _inner(holder, step, after)
        if self.is_key:
            holder[f"{last}{text}" if behind else text] = holder.pop(last)
            return spec
        there = _item(holder, last)
        value = f"{there}{text}" if behind and isinstance(there, str) else text
        if isinstance(holder, list):
            holder[:] = [*holder[: int(last)], value, *holder[int(last) + 1 :]]
        else:
            holder[last] = value
        return spec

    def value_in(self, spec: Json) -> str:
        """The text here in a spec that `spec_with` has made; of a key the last one, which is the new one."""
        holder: Any = spec
        for step in self.way[:-1]:
            holder = holder[step]
        return str([*holder][-1] if self.is_key else holder[self.way[-1]])


@cache
def places(kind: Resource) -> tuple[Place, ...]:
    """All of them, each once."""
    found = dict.fromkeys(_in_tree(kind, rich_spec(kind)))
    defined = next(each for each in DEFINED if each.name == kind.kind)
    schema = definition(defined)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for path, node in leaves("", schema):
        way = _way(path)
        match node.get("type"):
            case "string" if "enum" not in node:
                found.setdefault(Place(kind, way))
            case "array" if node.get("items", {}).get("type") == "string":
                found.setdefault(Place(kind, (*way, 0)))
            case "object" if node.get("additionalProperties", {}).get("type") == "string":
                found.setdefault(Place(kind, (*way, "some")))
    return tuple(found)


_BELOW_A_LOG = "pitrFullBackupStorageProvider"
"""A storage that counts in one mode only."""

_STORAGES: Mapping[str, Json] = {
    "s3": {"provider": "aws", "bucket": "b", "secretName": "s3-keys"},
    "gcs": {"projectId": "p", "bucket": "b", "path": "b/x.tgz"},
    "azblob": {"container": "c", "storageAccount": "a", "sasToken": "sig=x"},
    "local": {"volume": {"name": "v", "emptyDir": {}}, "volumeMount": {"name": "v", "mountPath": "/mnt/v"}},
}


def _choose_storage(spec: Json, way: Path) -> None:
    """Leave the one storage that a way leads into, since a spec with two is refused."""
    holder: Any = spec
    for step in way:
        if step in _STORAGES and isinstance(holder, dict):
            there = holder.get(step) or msgspec.json.decode(msgspec.json.encode(_STORAGES[str(step)]))
            for name in _STORAGES:
                holder.pop(name, None)
            holder[step] = there
            return
        if isinstance(holder, dict) and step in holder:
            holder = holder[step]


def _way(path: str) -> Path:
    way: list[str | int] = []
    for step in path.split("."):
        way += [step.removesuffix(ITEM), 0] if step.endswith(ITEM) else [step]
    return tuple(way)


def _in_tree(kind: Resource, tree: object, way: Path = ()) -> Iterator[Place]:
    """The texts of a tree, and those keys that a user chooses: of tables whose values are all texts, and settings."""
    if isinstance(tree, str):
        yield Place(kind, way)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if "config" in way or all(isinstance(each, str) for each in tree.values()):
                yield Place(kind, (*way, key), is_key=True)
            yield from _in_tree(kind, value, (*way, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _in_tree(kind, value, (*way, index))


def _inner(holder: Any, step: str | int, after: str | int) -> Any:
    """The value below a step, created if absent."""
    there = _item(holder, step)
    if isinstance(there, dict | list):
        return there
    made: Json | list[Any] = [] if isinstance(after, int) else {}
    if isinstance(holder, list):
        holder.append(made)
    else:
        holder[step] = made
    return made


def _item(holder: Any, step: str | int) -> object:
    if isinstance(holder, list):
        return holder[int(step)] if int(step) < len(holder) else None
    return holder.get(step)
