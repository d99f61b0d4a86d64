"""What the server refuses in containers: names, images, ports, environment, resources, probes, mounts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kube.objects import Json
from sandbox.apiserver.refusals import FieldError, duplicate, forbidden_field, invalid_value, required
from sandbox.apiserver.rules import (
    NOT_NEGATIVE,
    Table,
    at_least,
    check,
    distinct,
    each,
    label,
    needed,
    one_of,
    port_name,
    port_or_name,
    record,
    relative_path,
    subdomain,
    within,
)
from sandbox.quantities import quantity

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FIELD_OF_MAP = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")
_ENVIRONMENT_NAME = re.compile(r"[ -<>-~]+")
_ENVIRONMENT_HELP = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def containers(spec: Json, path: str, volumes: set[str]) -> Iterator[FieldError]:
    """The init containers and containers of a pod that has these volumes."""
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    places = [
        (container, f"{path}.{field}[{index}]")
        for field in ("containers", "initContainers")
        for index, container in enumerate(spec.get(field) or ())
    ]
    yield from distinct((container.get("name"), f"{place}.name") for container, place in places)
    yield from _host_ports(spec, path)
    for container, place in places:
        yield from _container(container, place, volumes, initial=".initContainers[" in place)


def _container(container: Json, path: str, volumes: set[str], *, initial: bool) -> Iterator[FieldError]:
    yield from needed(container, path, "name", "image")
    image = container.get("image") or ""
    if image != image.strip():
        yield invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from check(container, path, _CONTAINER)
    yield from _mounts(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    for name in _PROBES:
        if container.get(name) is None:
            continue
        if initial and container.get("restartPolicy") != "Always":
            yield forbidden_field(f"{path}.{name}", "may not be set for init containers without restartPolicy=Always")
        else:
            yield from _probe(container[name], f"{path}.{name}", once=name != "readinessProbe")


def _ports(ports: Any, path: str) -> Iterator[FieldError]:
    yield from distinct((port.get("name"), f"{path}[{index}].name") for index, port in enumerate(ports))
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        yield from needed(port, place, "containerPort")
        if port.get("containerPort"):
            yield from within(1, 65535)(port["containerPort"], f"{place}.containerPort")
        yield from check(port, place, _PORT)


def _host_ports(spec: Json, path: str) -> Iterator[FieldError]:
    taken = set()
    for number, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            place, wanted = f"{path}.containers[{number}].ports[{index}].hostPort", port.get("hostPort")
            if not wanted:
                continue
            if spec.get("hostNetwork") and wanted != port.get("containerPort"):
                yield invalid_value(place, wanted, "must match `containerPort` when `hostNetwork` is true")
            key = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{wanted}"
            if key in taken:
                yield duplicate(place, key)
            taken.add(key)


def _variable(variable: Json, path: str) -> Iterator[FieldError]:
    name = variable.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif not _ENVIRONMENT_NAME.fullmatch(name):
        yield invalid_value(f"{path}.name", name, _ENVIRONMENT_HELP)
    source = variable.get("valueFrom")
    if source is None:
        return
    given = [each for each in _SOURCES if source.get(each) is not None]
    place = f"{path}.valueFrom"
    if variable.get("value"):
        yield invalid_value(place, "", "may not be specified when `value` is not empty")
    elif not given:
        listed = ", ".join(f"`{each}`" for each in _SOURCES[:-1])
        yield invalid_value(place, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")
    elif len(given) > 1:
        yield invalid_value(place, "", "may not have more than one field specified at a time")
    else:
        yield from check(source, place, _VALUE_FROM)


def _field(field: str, path: str) -> Iterator[FieldError]:
    if not field:
        yield required(path)
    elif field not in _FIELDS and not _FIELD_OF_MAP.fullmatch(field):
        yield invalid_value(path, field, f"error converting fieldPath: field label not supported: {field}")


def _environments(sources: Any, path: str) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        given = [each for each in ("configMapRef", "secretRef") if source.get(each) is not None]
        if not given:
            yield invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
        for name in given:
            yield from needed(source[name], f"{path}[{index}].{name}", "name")


def _resources(resources: Json, path: str) -> Iterator[FieldError]:
    limits: Mapping[str, Any] = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for name, amount in (resources.get(kind) or {}).items():
            place = f"{path}.{kind}[{name}]"
            if "/" not in name and name not in ("storage", *_RESOURCES) and not name.startswith("hugepages-"):
                yield invalid_value(place, name, "must be a standard resource type or fully qualified")
            if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
                yield invalid_value(place, name, "must be a standard resource for containers")
            elif quantity(amount) < 0:
                yield invalid_value(place, str(amount), NOT_NEGATIVE)
    for name, amount in (resources.get("requests") or {}).items():
        if name in limits and quantity(amount) > quantity(limits[name]):
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", str(amount), detail)


def handler(action: Json, path: str) -> Iterator[FieldError]:
    """What a probe or a hook does: one thing."""
    given = [name for name in _HANDLER if action.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
    for name in given[1:]:
        yield forbidden_field(f"{path}.{name}", "may not specify more than 1 handler type")
    if len(given) == 1:
        yield from check(action, path, _HANDLER)


def _probe(probe: Json, path: str, *, once: bool) -> Iterator[FieldError]:
    yield from handler(probe, path)
    yield from check(probe, path, dict.fromkeys(_SECONDS, at_least(0)))
    if once and probe.get("successThreshold", 1) > 1:
        yield invalid_value(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _mounts(mounts: Any, path: str, volumes: set[str]) -> Iterator[FieldError]:
    places = set()
    for index, mount in enumerate(mounts):
        place, where = f"{path}[{index}]", mount.get("mountPath")
        yield from needed(mount, place, "name")
        if mount.get("name", "") not in volumes:
            yield FieldError("FieldValueNotFound", f"{place}.name", f'Not found: "{mount.get("name", "")}"')
        yield from needed(mount, place, "mountPath")
        if where and where in places:
            yield invalid_value(f"{place}.mountPath", where, "must be unique")
        places.add(where)
        if mount.get("subPath"):
            # the real server leaves out the index
            yield from relative_path(mount["subPath"], f"{path}.subPath")


_PORT: Table = {
    "name": port_name,
    "hostPort": within(1, 65535),
    "protocol": one_of("SCTP", "TCP", "UDP"),
}
_REFERENCE = record({"name": subdomain}, "key")
_VALUE_FROM: Table = {
    "fieldRef": lambda value, path: _field(value.get("fieldPath", ""), f"{path}.fieldPath"),
    "configMapKeyRef": lambda value, path: _REFERENCE({"name": ""} | value, path),
    "secretKeyRef": lambda value, path: _REFERENCE({"name": ""} | value, path),
}
_HANDLER: Table = {
    "exec": record({}, "command"),
    "httpGet": record({"port": port_or_name}),
    "tcpSocket": record({"port": port_or_name}),
    "grpc": record({"port": within(1, 65535)}),
    "sleep": record({}),
}
_SECONDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_CONTAINER: Table = {
    "name": label,
    "ports": _ports,
    "env": each(_variable),
    "envFrom": _environments,
    "lifecycle": record({"postStart": handler, "preStop": handler}),
    "imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
    "resources": _resources,
    "securityContext": record({"runAsUser": within(0, 2**31 - 1), "runAsGroup": within(0, 2**31 - 1)}),
}
