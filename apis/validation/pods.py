"""The lists in a component's pod spec, and its labels (defaults-and-validation.md 3.2). The API server accepts a
StatefulSet with labels that it then refuses for each pod, and only the StatefulSet controller learns of it."""

import re
from collections.abc import Iterator, Mapping, Sequence

from apis.accessor import Component
from apis.problem import Problem
from apis.shared import Json, PodSettings
from apis.validation.annotations import is_qualified

_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_VOLUME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY_HELP = "must be a name of at most 63 letters, digits, `-`, `_` and `.`, after an optional `domain/`"
_VALUE_HELP = "must be at most 63 letters, digits, `-`, `_` and `.`, and must begin and end with a letter or digit"


def check(component: Component) -> Iterator[Problem]:
    """Check the settings of a component, like `check_settings`."""
    return check_settings(component.spec, component.field)


def check_settings(spec: PodSettings, field: str) -> Iterator[Problem]:
    """Volumes, mounts, containers and sysctls have names, volumes each its own; labels and annotations are valid."""
    for name, entries in (
        ("initContainers", spec.init_containers),
        ("additionalContainers", spec.additional_containers),
        ("additionalVolumes", spec.additional_volumes),
        ("additionalVolumeMounts", spec.additional_volume_mounts),
    ):
        yield from check_named(entries, f"{field}.{name}")
    yield from check_sysctls(spec.pod_security_context, field)
    yield from _check_volumes(spec.additional_volumes, f"{field}.additionalVolumes")
    yield from check_labels(spec.labels, f"{field}.labels")
    yield from _check_keys(spec.annotations, f"{field}.annotations")


def check_labels(labels: Mapping[str, str], field: str) -> Iterator[Problem]:
    """Keys are qualified names, values short."""
    yield from _check_keys(labels, field)
    for key, value in labels.items():
        if not _VALUE.fullmatch(value):
            yield Problem(f'{field}["{key}"]', value, _VALUE_HELP)


def _check_keys(entries: Mapping[str, str], field: str) -> Iterator[Problem]:
    for key in entries:
        if not is_qualified(key.lower()):
            yield Problem(field, key, _KEY_HELP)


def check_sysctls(context: Json | None, field: str) -> Iterator[Problem]:
    """Each sysctl has a name; `field` is the parent of `podSecurityContext`."""
    return check_named((context or {}).get("sysctls") or (), f"{field}.podSecurityContext.sysctls")


def check_named(entries: Sequence[Json], field: str) -> Iterator[Problem]:
    """Each entry has a name."""
    for index, entry in enumerate(entries):
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            yield Problem(f"{field}[{index}].name", entry.get("name"), "is required")


def _check_volumes(volumes: Sequence[Json], field: str) -> Iterator[Problem]:
    seen = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name")
        if not isinstance(name, str) or not name:
            continue
        if name in seen:
            yield Problem(f"{field}[{index}].name", name, "is a duplicate; keep one volume of each name")
        elif not _VOLUME.fullmatch(name):
            yield Problem(f"{field}[{index}].name", name, "must be at most 63 lower-case letters, digits and `-`")
        seen.add(name)
