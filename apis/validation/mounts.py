"""Volumes, mounts and containers that no pod can have together (the API server refuses the whole StatefulSet).

A mount of no volume is for the component's own stage, which knows all volumes of the pod.
"""

from collections.abc import Iterator, Sequence

from apis.accessor import Component
from apis.embedded import known_fields
from apis.problem import Problem
from apis.shared import Json


def check(component: Component) -> Iterator[Problem]:
    """Volumes have one source, mounts a path of their own, containers a name of their own."""
    spec, field = component.spec, component.field
    for index, volume in enumerate(spec.additional_volumes):
        given = (key for key, value in volume.items() if key != "name" and value is not None)
        sources = [key for key in given if key in known_fields("Volume")]
        if len(sources) > 1:
            message = f"has {len(sources)} sources ({', '.join(sources)}); keep one"
            yield Problem(f"{field}.additionalVolumes[{index}]", volume.get("name"), message)
    yield from _check_mounts(component)
    yield from _check_twins(spec.additional_containers, f"{field}.additionalContainers")
    yield from _check_twins(spec.init_containers, f"{field}.initContainers")


def _check_mounts(component: Component) -> Iterator[Problem]:
    paths = set()
    for index, entry in enumerate(component.spec.additional_volume_mounts):
        field, path = f"{component.field}.additionalVolumeMounts[{index}]", entry.get("mountPath")
        if not isinstance(path, str) or not path:
            yield Problem(f"{field}.mountPath", path, "is required; specify an absolute path, such as /var/lib/more")
        elif ":" in path:
            yield Problem(f"{field}.mountPath", path, "must not contain `:`")
        elif path in paths:
            yield Problem(f"{field}.mountPath", path, "is a duplicate; keep one mount of each path")
        else:
            paths.add(path)


def _check_twins(containers: Sequence[Json], field: str) -> Iterator[Problem]:
    seen = set()
    for index, container in enumerate(containers):
        name = container.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(f"{field}[{index}].name", name, "is a duplicate; keep one container of each name")
        seen.add(str(name))
