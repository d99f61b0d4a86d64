"""Environment, additional containers, volumes and mounts of a component (defaults-and-validation.md 3.2)."""

import re
from collections.abc import Iterator, Sequence

from apis.accessor import Component
from apis.embedded import known_fields
from apis.problem import Problem
from apis.shared import Json, WorkloadSpec
from apis.validation import names

_ENV_NAME = re.compile(r"(?!\.{1,2}$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")
_DATA_KEY = re.compile(r"(?!\.{1,2}$|\.\.)[-._a-zA-Z0-9]{1,253}")
_KEY_REFERENCES = ("configMapKeyRef", "secretKeyRef")


def check(component: Component) -> Iterator[Problem]:
    """Variables have a name and one source; containers that are not merged into a generated one have an image."""
    yield from check_variables(component.spec.env, f"{component.field}.env")
    generated = generated_containers(component)
    for index, container in enumerate(component.spec.additional_containers):
        if not container.get("image") and container.get("name") not in generated:
            message = (
                f"is required, because the operator generates no container of this name here ({', '.join(generated)})"
            )
            yield Problem(f"{component.field}.additionalContainers[{index}].image", None, message)


def check_variables(env: Sequence[Json], field: str) -> Iterator[Problem]:
    """Variables have a name, and one source."""
    for index, entry in enumerate(env):
        yield from _check_variable(entry, f"{field}[{index}]")


def generated_containers(component: Component) -> list[str]:
    """The names of the generated containers in a component's pod (objects.md 4)."""
    sidecars = component.spec.sidecars if isinstance(component.spec, WorkloadSpec) else ()
    return [component.name, *sidecars]


def _check_variable(entry: Json, field: str) -> Iterator[Problem]:
    name = entry.get("name")
    if not name:
        yield Problem(f"{field}.name", None, "is required")
    elif not isinstance(name, str) or not _ENV_NAME.fullmatch(name):
        message = "must consist of letters, digits, `-`, `_` and `.`, and must begin neither with a digit nor with `..`"
        yield Problem(f"{field}.name", name, message)
    source = entry.get("valueFrom")
    if source is None:
        return
    if entry.get("value"):
        yield Problem(f"{field}.valueFrom", source, "cannot be combined with value; keep one of the two")
    yield from _check_source(source, f"{field}.valueFrom")


def _check_source(source: object, field: str) -> Iterator[Problem]:
    known = [kind for kind in source if kind in known_fields("EnvVarSource")] if isinstance(source, dict) else []
    if not isinstance(source, dict) or not source or len(known) > 1:
        yield Problem(field, source, "must have exactly one source, such as configMapKeyRef, secretKeyRef or fieldRef")
        return
    if not known or known[0] not in _KEY_REFERENCES:
        return
    kind, reference = known[0], source[known[0]]
    reference = reference if isinstance(reference, dict) else {}
    name, key = str(reference.get("name") or ""), str(reference.get("key") or "")
    if not names.OBJECT.fullmatch(name):
        yield Problem(
            f"{field}.{kind}.name", name, "must be the name of an object: lower-case letters, digits, `-`, `.`"
        )
    if not _DATA_KEY.fullmatch(key):
        yield Problem(
            f"{field}.{kind}.key", key, "must be a key: letters, digits, `-`, `_`, `.`, and must not begin with `..`"
        )


def check_pod(component: Component) -> Iterator[Problem]:
    """Volumes have one source; paths of mounts and names of containers are unique.

    The API server refuses the whole StatefulSet otherwise. A mount without a volume is for the component's own stage,
    which knows all volumes of the pod.
    """
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
