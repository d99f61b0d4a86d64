"""Comparison of a StatefulSet's claim templates, which are immutable, with the desired ones (objects.md 5).

`member.volumes.changes` handles larger volumes, and a roll brings those that the spec adds or removes
(`member.lifecycle.creation`), unless a removed one may hold data.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from apis import toml
from kube.objects import Json
from member.apply.last_applied import missing_volumes, read_record
from ports.quantity import parse

_CHANGED_ELSEWHERE = ("resources", "storageClassName", "volumeAttributesClassName")
"""Fields that are changed in the claims; the StatefulSet is then recreated with them."""


def names(stateful_set: Json) -> list[str]:
    """The names of the claim templates, in order."""
    return [template["metadata"]["name"] for template in stateful_set["spec"].get("volumeClaimTemplates") or ()]


def sizes_differ(live: Json, desired: Json) -> bool:
    """True if a volume that both have differs in size or class.

    If admission changes the size or class, the record holds the requested one; it counts as equal, since a new request
    would be changed in the same way. The attributes class is compared with the record alone: a Kubernetes without that
    field drops it.
    """
    there, wanted, record = _by_name(live), _by_name(desired), read_record(live)
    asked_for = there | (_by_name({"spec": record.spec}) if record else {})
    return any(
        not (_same(there[name], template) or _same(asked_for[name], template))
        or _attributes_class(asked_for[name]) != _attributes_class(template)
        for name, template in wanted.items()
        if name in there
    )


def with_sizes_of(live: Json, desired: Json) -> Json:
    """`desired` with the sizes and classes of the volumes of the same name in `live`."""
    if "volumeClaimTemplates" not in desired["spec"]:
        return desired
    there = _by_name(live)
    templates = [
        _sized_as(there.get(each["metadata"]["name"]), each) for each in desired["spec"]["volumeClaimTemplates"]
    ]
    return desired | {"spec": desired["spec"] | {"volumeClaimTemplates": templates}}


def unwanted_mounts(live: Json, desired: Json) -> list[str]:
    """The volumes of `live` that its pods mount and `desired` lacks."""
    record = read_record(live)
    pod = (record.spec if record else live["spec"])["template"]["spec"]
    mounted = {mount.get("name") for container in pod["containers"] for mount in container.get("volumeMounts") or ()}
    return [name for name in names(live) if name in mounted and name not in names(desired)]


def mounts_differ(live: Json, desired: Json) -> bool:
    """True if the pods of `live` mount a volume that `desired` lacks, or `desired` mounts one that `live` lacks."""
    return bool(missing_volumes(live, desired) or unwanted_mounts(live, desired))


_LOGS = frozenset({"slow-log-file", "rocksdb.info-log-dir", "raftdb.info-log-dir"})
"""Settings of TiKV for files with logs, like all below `log`."""


def data_on(live: Json, volumes: Sequence[str], data_volume: str, configuration: Iterable[str]) -> str:
    """Why volumes that the pods of `live` mount may hold data, as the end of a sentence; empty if they hold none.

    `configuration` are the texts of the ConfigMap in use: a path in a setting, except of logs, is a place for data.
    """
    paths = _mount_paths(live, volumes)
    for each in _mount_paths(live, [data_volume]):
        if any(_is_on(path, each) for path in paths):
            return f"it is part of the data directory {each}"
    for key, value in (setting for text in configuration for setting in _settings(text)):
        if not (key in _LOGS or key.startswith("log.")) and any(_is_on(value, path) for path in paths):
            return f"{key} = {value} in the configuration is there"
    return ""


def _mount_paths(live: Json, volumes: Sequence[str]) -> list[str]:
    record = read_record(live)
    pod = (record.spec if record else live["spec"])["template"]["spec"]
    mounts = (mount for container in pod["containers"] for mount in container.get("volumeMounts") or ())
    return list(dict.fromkeys(str(mount.get("mountPath")) for mount in mounts if mount.get("name") in volumes))


def _is_on(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """The texts in a TOML document, by the paths of their settings; none of another document."""
    with contextlib.suppress(ValueError):
        yield from _texts(toml.loads(text), "")


def _texts(tree: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _texts(value, f"{path}.{key}" if path else str(key))
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value, path)
    elif isinstance(tree, str):
        yield path, tree


def _by_name(stateful_set: Json) -> dict[str, Json]:
    templates = stateful_set["spec"].get("volumeClaimTemplates") or ()
    return {template["metadata"]["name"]: template["spec"] for template in templates}


def _same(one: Json, other: Json) -> bool:
    return parse(_size(one)) == parse(_size(other)) and one.get("storageClassName") == other.get("storageClassName")


def _attributes_class(claim: Json) -> str:
    return claim.get("volumeAttributesClassName") or ""


def _size(claim: Json) -> str:
    return str((claim["resources"].get("requests") or {}).get("storage", "0"))


def _sized_as(there: Json | None, template: Json) -> Json:
    if there is None:
        return template
    spec = {key: value for key, value in template["spec"].items() if key not in _CHANGED_ELSEWHERE}
    kept = {key: there[key] for key in _CHANGED_ELSEWHERE if key in there}
    return template | {"spec": spec | kept}
