"""The differences between two sets of objects in words: the component, the object, the field in it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from apis import toml
from kube.objects import Json
from member import labels
from member.objects.config_map import STARTUP_SCRIPT

Path = tuple[str, ...]


class Place(NamedTuple):
    """A place where a field shows: a part of a component's object, e.g. "container `env`"."""

    component: str
    what: str


def differences(before: Iterable[Json], after: Iterable[Json]) -> set[Place]:
    """The places that differ, without annotations that only the operator reads."""
    there, here = ({_identity(item): item for item in objects} for objects in (before, after))
    found = set()
    for identity in there.keys() | here.keys():
        component, kind, role = identity
        title = f"{role} {kind}".strip()
        if identity not in there or identity not in here:
            found.add(Place(component, title))
            continue
        for path in _changed((), there[identity], here[identity]):
            found |= {Place(component, what) for what in _words(title, component, path, (there, here), identity)}
    return found


_Identity = tuple[str, str, str]


def _identity(tree: Json) -> _Identity:
    component, kind, name = tree["metadata"]["labels"][labels.COMPONENT], tree["kind"], tree["metadata"]["name"]
    return component, kind, "peer" if kind == "Service" and name.endswith("-peer") else ""


def _changed(path: Path, old: object, new: object) -> Iterator[Path]:
    """The paths at which two trees differ; named items of lists are compared by name."""
    if old == new:
        return
    pairs = _pairs(old), _pairs(new)
    if pairs[0] is None or pairs[1] is None:
        yield path
        return
    for name in {**pairs[0], **pairs[1]}:
        if name in pairs[0] and name in pairs[1]:
            yield from _changed((*path, name), pairs[0][name], pairs[1][name])
        else:
            yield (*path, name)


def _pairs(tree: object) -> Mapping[str, object] | None:
    if isinstance(tree, dict):
        return tree
    if isinstance(tree, list):
        names = [_name(item) for item in tree]
        if all(names) and len(set(names)) == len(names):
            return dict(zip(names, tree, strict=True))
    return None


def _name(item: object) -> str:
    if not isinstance(item, dict):
        return ""
    return str(item.get("name") or (item.get("metadata") or {}).get("name") or "")


_POD = ("spec", "template", "spec")
_CONTAINERS = {"containers": "container", "initContainers": "init container"}
_OWN_NOTES = (labels.LAST_APPLIED_POD_TEMPLATE, labels.START_SCRIPT_OPTIONS)


def _words(
    title: str, component: str, path: Path, sides: tuple[Mapping[_Identity, Json], ...], identity: _Identity
) -> Iterator[str]:
    if path[-1] in _OWN_NOTES:
        return
    if path[:1] == ("data",):
        yield from _in_file(path[1], *(side[identity]["data"].get(path[1], "") for side in sides))
    elif path[:3] == _POD:
        yield _in_pod(component, path[3:])
    elif path[:2] == ("spec", "volumeClaimTemplates"):
        yield f"claim template `{path[4]}`" if len(path) > 4 else "claim templates"
    elif path[:3] == ("spec", "template", "metadata"):
        yield f"pod `{path[3]}`"
    else:
        yield f"{title} `{path[min(1, len(path) - 1)]}`"


def _in_pod(component: str, path: Path) -> str:
    kind = _CONTAINERS.get(path[0])
    if kind is None or len(path) < 3:
        return f"pod `{path[0]}`"
    if path[1] == component:
        return "start script" if path[2] == "command" else f"{kind} `{path[2]}`"
    return f"{kind} `{path[1]}`: `{path[2]}`"


def _in_file(key: str, old: str, new: str) -> Iterator[str]:
    if key == STARTUP_SCRIPT:
        yield "start script"
        return
    for path in _changed((), toml.loads(old), toml.loads(new)):
        yield f"configuration `{'.'.join(path)}`"
