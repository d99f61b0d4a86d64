"""Volumes, mounts and containers that no pod can have together (the API server refuses the whole StatefulSet)."""

import re
from collections.abc import Iterator, Sequence

from apis.accessor import Component
from apis.component_specs import TiDBSpec
from apis.problem import Problem
from apis.shared import Json
from apis.validation.volumes import WITH_STORAGE_VOLUMES

_GENERATED = re.compile(r"annotations|config|startup-script|slowlog|tidb-bootstrap-sql|.*-tls|data\d+")
"""Volumes that the operator adds to pods (objects.md 4)."""


def check(component: Component) -> Iterator[Problem]:
    """Volumes have one source, mounts a volume and a path of their own, containers a name of their own."""
    spec, field = component.spec, component.field
    for index, volume in enumerate(spec.additional_volumes):
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(sources) > 1:
            message = f"has {len(sources)} sources ({', '.join(sources)}); keep one"
            yield Problem(f"{field}.additionalVolumes[{index}]", volume.get("name"), message)
    yield from _check_mounts(component)
    yield from _check_twins(spec.additional_containers, f"{field}.additionalContainers")
    yield from _check_twins(spec.init_containers, f"{field}.initContainers")


def _check_mounts(component: Component) -> Iterator[Problem]:
    mounts, paths = component.spec.additional_volume_mounts, set()
    known = {each.get("name") for each in component.spec.additional_volumes} | _claimed(component)
    for index, entry in enumerate(mounts):
        field, name, path = (
            f"{component.field}.additionalVolumeMounts[{index}]",
            entry.get("name"),
            entry.get("mountPath"),
        )
        if isinstance(name, str) and name and name not in known and not _GENERATED.fullmatch(name):
            yield Problem(f"{field}.name", name, "is no volume of this component; add it to additionalVolumes")
        if not isinstance(path, str) or not path:
            yield Problem(f"{field}.mountPath", path, "is required; specify an absolute path, such as /var/lib/more")
        elif ":" in path:
            yield Problem(f"{field}.mountPath", path, "must not contain `:`")
        elif path in paths:
            yield Problem(f"{field}.mountPath", path, "is a duplicate; keep one mount of each path")
        else:
            paths.add(path)


def _claimed(component: Component) -> set[str]:
    """The volumes that other fields of the component make."""
    spec, name = component.spec, component.name
    volumes = spec.storage_volumes if isinstance(spec, WITH_STORAGE_VOLUMES) else ()
    probe = spec.customized_startup_probe if isinstance(spec, TiDBSpec) else None
    return {name, *(f"{name}-{each.name}" for each in volumes), *([probe.binary_name] if probe else ())}


def _check_twins(containers: Sequence[Json], field: str) -> Iterator[Problem]:
    seen = set()
    for index, container in enumerate(containers):
        name = container.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(f"{field}[{index}].name", name, "is a duplicate; keep one container of each name")
        seen.add(str(name))
