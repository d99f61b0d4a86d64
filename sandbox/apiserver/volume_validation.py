"""Validation of the volumes of pods."""

from collections.abc import Iterator
from typing import Any

from kube.objects import Json
from ports import quantity
from sandbox.apiserver.container_validation import field_of_pod, resource_of_container
from sandbox.apiserver.refusals import FieldError, forbidden_field, invalid_value, required
from sandbox.apiserver.rules import (
    Table,
    check,
    distinct,
    each,
    label,
    needed,
    no_way_up,
    one_of,
    record,
    relative_path,
    subdomain,
    within,
)

_FIELDS_OF_FILES = tuple(f"metadata.{name}" for name in ("annotations", "labels", "name", "namespace", "uid"))
_LONGEST_DRIVER = 63


def volume_errors(volumes: list[Json], path: str) -> Iterator[FieldError]:
    """Validate the volumes of a pod."""
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        given = [name for name in volume if name != "name" and volume[name] is not None]
        known = [name for name in _SOURCES if name in given]
        for name in known[1:]:
            yield forbidden_field(f"{place}.{name}", "may not specify more than 1 volume type")
        if not given:
            yield required(place, "must specify a volume type")
        elif len(known) == 1:
            yield from check(volume, place, _SOURCES)
        yield from needed(volume, place, "name")
        if volume.get("name"):
            yield from label(volume["name"], f"{place}.name")
    yield from distinct((volume.get("name"), f"{path}[{index}].name") for index, volume in enumerate(volumes))


def _size(value: Any, path: str) -> Iterator[FieldError]:
    if quantity.parse(value) < 0:
        yield forbidden_field(path, "SizeLimit field must be a valid resource quantity")


def _absolute(value: str, path: str) -> Iterator[FieldError]:
    if not value.startswith("/"):
        yield invalid_value(path, value, "must be an absolute path")


def _field_of_file(source: Json, path: str) -> Iterator[FieldError]:
    # all labels or annotations together are available only in files
    whole = source.get("fieldPath") in ("metadata.annotations", "metadata.labels")
    wrong = tuple(field_of_pod(source | {"fieldPath": "metadata.name"} if whole else source, path))
    yield from wrong
    if not wrong and "[" not in source["fieldPath"]:
        yield from one_of(*_FIELDS_OF_FILES)(source["fieldPath"], f"{path}.fieldPath")


def _field_files(files: Any, path: str) -> Iterator[FieldError]:
    # the real server omits the index and `items`
    place = path.rpartition(".")[0]
    for file in files:
        yield from record(_FILE, "path")(file, place)
        own, resource = file.get("fieldRef"), file.get("resourceFieldRef")
        if own is None and resource is None:
            yield required(place, "one of fieldRef and resourceFieldRef is required")
        if own is not None:
            yield from _field_of_file(own, f"{place}.fieldRef")
        if own is not None and resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(place, "resource", detail)
        elif resource is not None:
            yield from needed(resource, f"{place}.resourceFieldRef", "containerName")
            yield from resource_of_container(resource, f"{place}.resourceFieldRef")


def _driver(name: str, path: str) -> Iterator[FieldError]:
    if len(name) > _LONGEST_DRIVER:
        yield FieldError("FieldValueTooLong", path, f"Too long: may not be more than {_LONGEST_DRIVER} bytes")
    yield from subdomain(name.lower(), path)


def _projected(volume: Json, path: str) -> Iterator[FieldError]:
    yield from check(volume, path, _PROJECTION)
    seen = set()
    for source in volume.get("sources") or ():
        parts = [part for part in source.values() if part]
        for file in (*(item for part in parts for item in part.get("items") or ()), *parts):
            if (where := file.get("path")) and where in seen:
                yield invalid_value(path, where, "conflicting duplicate paths")
            seen.add(where)


def _token(source: Json, path: str) -> Iterator[FieldError]:
    if source.get("expirationSeconds", 3600) < 600:
        detail = "may not specify a duration less than 10 minutes"
        yield invalid_value(f"{path}.expirationSeconds", source["expirationSeconds"], detail)
    yield from needed(source, path, "path")
    # the real server omits which source it is
    yield from relative_path(source.get("path") or "", f"{path.rpartition('.sources[')[0]}.path")


_MODE = within(0, 0o777)
_FILE: Table = {"path": relative_path, "mode": _MODE}
_FILES: Table = {"items": each(record(_FILE, "key", "path")), "defaultMode": _MODE}
_PROJECTED: Table = {
    "secret": record(_FILES, "name"),
    "configMap": record(_FILES, "name"),
    "downwardAPI": record({"items": _field_files}),
    "serviceAccountToken": _token,
}
_PROJECTION: Table = {"defaultMode": _MODE, "sources": each(record(_PROJECTED))}
_HOST_PATHS = ("BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_SOURCES: Table = {
    "emptyDir": record({"sizeLimit": _size}),
    "hostPath": record({"type": one_of("", *_HOST_PATHS), "path": no_way_up}, "path"),
    "secret": record(_FILES, "secretName"),
    "configMap": record(_FILES, "name"),
    "persistentVolumeClaim": record({}, "claimName"),
    "downwardAPI": record({"items": _field_files, "defaultMode": _MODE}),
    "projected": _projected,
    "nfs": record({"path": _absolute}, "server", "path"),
    "csi": record({"driver": _driver}, "driver"),
    "image": record({"pullPolicy": one_of("Always", "IfNotPresent", "Never")}, "reference"),
    "ephemeral": record({}, "volumeClaimTemplate"),
}
"""The types of volume that the sandbox validates."""
