"""The merge of `additionalContainers` into generated containers (objects.md 3.5).

The rules are the same as in Kubernetes' strategic merge for containers: maps merge, a few lists merge by key,
everything else is replaced. The order of a merged list decides whether pods roll after a takeover from v1.6, so it is
part of the contract.
"""

from collections.abc import Sequence

from kube.objects import Json

_MERGE_KEYS = {
    "ports": "containerPort",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}

_ZERO_MATTERS_BELOW = frozenset({"securityContext"})
_ZERO_MATTERS = frozenset({"optional", "terminationGracePeriodSeconds"})
"""Fields in which an explicit zero differs from an absent value."""


def with_additional_containers(generated: Sequence[Json], additional: Sequence[Json]) -> list[Json]:
    """The generated containers, changed by entries with their names, followed by the other entries in order."""
    patches = {patch["name"]: patch for patch in additional}
    names = {container["name"] for container in generated}
    merged = [merge(container, patches.get(container["name"], {})) for container in generated]
    return merged + [entry for entry in additional if entry["name"] not in names]


def merge(container: Json, patch: Json) -> Json:
    """`container` with the changes of `patch`, as a new tree. Fields that the patch does not set stay."""
    merged = dict(container)
    for key, value in _without_unset(patch).items():
        if key in _MERGE_KEYS:
            merged[key] = _merge_list(container.get(key) or [], value, _MERGE_KEYS[key])
        else:
            merged[key] = _merge_value(container.get(key), value)
    return merged


def _merge_value(old: object, new: object) -> object:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _merge_value(old.get(key), value) for key, value in new.items()}}


def _merge_list(existing: list[Json], patch: list[Json], key: str) -> list[Json]:
    """The patched items in the patch's order; existing items not named in the patch keep their place before them."""
    position = {item.get(key): index for index, item in enumerate(existing)}
    named: dict[object, Json] = {}
    for item in patch:
        identity = item.get(key)
        base = named.get(identity) or (existing[position[identity]] if identity in position else {})
        merged = _merge_value(base, item)
        assert isinstance(merged, dict)
        named[identity] = merged

    unnamed = [item for item in existing if item.get(key) not in named]
    result: list[Json] = []
    for identity, item in named.items():
        while unnamed and identity in position and position[unnamed[0].get(key)] < position[identity]:
            result.append(unnamed.pop(0))
        result.append(item)
    return result + unnamed


def _without_unset(tree: Json, *, keep_zero: bool = False) -> Json:
    """The tree without unset values: null, empty, and zero if that equals absent."""
    kept: Json = {}
    for key, value in tree.items():
        zero_matters = keep_zero or key in _ZERO_MATTERS
        said = _said(value, keep_zero=keep_zero or key in _ZERO_MATTERS_BELOW)
        if said not in (None, {}, []) and (said or zero_matters):
            kept[key] = said
    return kept


def _said(value: object, *, keep_zero: bool) -> object:
    if isinstance(value, dict):
        return _without_unset(value, keep_zero=keep_zero)
    if isinstance(value, list):
        return [_said(item, keep_zero=keep_zero) for item in value]
    return value
