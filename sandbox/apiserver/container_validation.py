"""Validation of containers: names, images, ports, environment, resources, probes, mounts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kube.objects import Json
from ports import quantity
from sandbox.apiserver.names import config_key_errors
from sandbox.apiserver.refusals import FieldError, duplicate, forbidden_field, invalid_value, required, unsupported
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
    unless_empty,
    within,
)

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
_ASKED = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))
_FIELD_OF_MAP = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")
_HEADER = re.compile("[-A-Za-z0-9]+")
_HEADER_HELP = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)
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
        yield from _sleeps(container, place, spec.get("terminationGracePeriodSeconds", 30))


def _container(container: Json, path: str, volumes: set[str], *, initial: bool) -> Iterator[FieldError]:
    yield from needed(container, path, "name", "image")
    image = container.get("image") or ""
    if image != image.strip():
        yield invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from check(container, path, _CONTAINER)
    yield from _mounts(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    ends = initial and container.get("restartPolicy") != "Always"
    for name in ("lifecycle", *_PROBES):
        if ends and container.get(name) is not None:
            yield forbidden_field(f"{path}.{name}", "may not be set for init containers without restartPolicy=Always")
    for name in () if ends else _PROBES:
        if container.get(name) is not None:
            yield from _probe(container[name], f"{path}.{name}", once=name != "readinessProbe")


def _sleeps(container: Json, path: str, grace: int) -> Iterator[FieldError]:
    for name, hook in (container.get("lifecycle") or {}).items():
        seconds = (hook.get("sleep") or {}).get("seconds", 0) if name in ("postStart", "preStop") else 0
        if not 0 <= seconds <= grace:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            yield invalid_value(f"{path}.lifecycle.{name}.sleep", seconds, detail)


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


def field_of_pod(source: Json, path: str) -> Iterator[FieldError]:
    """A field of its own pod in a container's environment or file."""
    field, version, place = source.get("fieldPath") or "", source.get("apiVersion") or "v1", f"{path}.fieldPath"
    if not field:
        yield required(place)
    elif version != "v1":
        yield invalid_value(place, field, f"error converting fieldPath: unsupported pod version: {version}")
    elif field not in _FIELDS and not _FIELD_OF_MAP.fullmatch(field):
        yield invalid_value(place, field, f"error converting fieldPath: field label not supported: {field}")


def resource_of_container(source: Json, path: str) -> Iterator[FieldError]:
    """A resource of a container in its environment or a file."""
    asked, place = source.get("resource") or "", f"{path}.resource"
    if not asked:
        yield required(place)
    elif not asked.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield from one_of(*_ASKED)(asked, place)


def _key(key: str, path: str) -> Iterator[FieldError]:
    # an empty key counts as missing
    for error in config_key_errors([key] if key else [], ""):
        yield FieldError(error.reason, path, error.message)


def _environments(sources: Any, path: str) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        given = [each for each in ("configMapRef", "secretRef") if source.get(each) is not None]
        if not given:
            yield invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
        if len(given) > 1:
            yield invalid_value(path, "", "may not have more than one field specified at a time")
        for name in given:
            yield from _NAMED(source[name], f"{path}[{index}].{name}")


def _resources(resources: Json, path: str) -> Iterator[FieldError]:
    limits: Mapping[str, Any] = resources.get("limits") or {}
    yield from _claims(resources.get("claims") or (), f"{path}.claims")
    for kind in ("limits", "requests"):
        for name, amount in (resources.get(kind) or {}).items():
            place = f"{path}.{kind}[{name}]"
            if "/" not in name and name not in ("storage", *_RESOURCES) and not name.startswith("hugepages-"):
                yield invalid_value(place, name, "must be a standard resource type or fully qualified")
            if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
                yield invalid_value(place, name, "must be a standard resource for containers")
            elif quantity.parse(amount) < 0:
                yield invalid_value(place, str(amount), NOT_NEGATIVE)
            elif "/" in name and quantity.parse(amount) % 1:
                yield invalid_value(place, str(amount), "must be an integer")
    for name, amount in (resources.get("requests") or {}).items():
        if "/" in name and name not in limits:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        if name in limits and quantity.parse(amount) > quantity.parse(limits[name]):
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", str(amount), detail)


def _claims(claims: Any, path: str) -> Iterator[FieldError]:
    """Claims of devices, which the pods of this server never have."""
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name")
        detail = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims which is empty'
        yield FieldError("FieldValueNotFound", place, detail) if name else required(place)


def _header(header: Json, path: str) -> Iterator[FieldError]:
    name = header.get("name") or ""
    if not _HEADER.fullmatch(name):
        # the real server leaves out the index
        yield invalid_value(path.rpartition("[")[0], name, _HEADER_HELP)


def _profile(profile: Json, path: str) -> Iterator[FieldError]:
    """A seccomp or AppArmor profile."""
    kind, known, file = profile.get("type"), ("Localhost", "RuntimeDefault", "Unconfined"), "localhostProfile"
    name = path.rpartition(".")[2]
    if not kind:
        yield required(f"{path}.type", f"type is required when {name} is set")
    elif kind not in known:
        yield unsupported(f"{path}.type", kind, known)
    is_seccomp, given = name.startswith("seccomp"), profile.get(file)
    if kind == "Localhost" and (given is None if is_seccomp else not given):
        word = "seccomp" if is_seccomp else "AppArmor"
        yield required(f"{path}.{file}", f"must be set when {word} type is Localhost")
    elif kind == "Localhost" and is_seccomp:
        yield from relative_path(given, f"{path}.{file}")
    elif kind != "Localhost" and given is not None:
        yield invalid_value(f"{path}.{file}", given, "can only be set when type is Localhost")


def handler(action: Json, path: str) -> Iterator[FieldError]:
    """The one action of a probe or hook."""
    given = [name for name in _HANDLER if action.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
    for name in given[1:]:
        yield forbidden_field(f"{path}.{name}", "may not specify more than 1 handler type")
    if len(given) == 1:
        (name,) = given
        # a missing port is 0
        asked = {"port": 0} | action[name] if name in ("httpGet", "tcpSocket", "grpc") else action[name]
        yield from check({name: asked}, path, _HANDLER)


def _probe(probe: Json, path: str, *, once: bool) -> Iterator[FieldError]:
    yield from handler(probe, path)
    yield from check(probe, path, dict.fromkeys(_SECONDS, at_least(0)))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if grace is not None and not once:
        yield invalid_value(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
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
        # the real server leaves out the index
        yield from check(mount, path, _MOUNT)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield invalid_value(
                f"{path}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"
            )


SECURITY: Table = {
    "runAsUser": within(0, 2**31 - 1),
    "runAsGroup": within(0, 2**31 - 1),
    "seccompProfile": _profile,
    "appArmorProfile": _profile,
}
"""Security fields that containers and pods share."""

_MOUNT: Table = {
    "subPath": relative_path,
    "subPathExpr": relative_path,
    "mountPropagation": one_of("Bidirectional", "HostToContainer", "None"),
}
_PORT: Table = {
    "name": unless_empty(port_name),
    "hostPort": unless_empty(within(1, 65535)),
    "protocol": one_of("SCTP", "TCP", "UDP"),
}
_NAMED = record({"name": subdomain}, "name")
_REFERENCE = record({"name": subdomain, "key": _key}, "key")
_VALUE_FROM: Table = {
    "fieldRef": field_of_pod,
    "resourceFieldRef": resource_of_container,
    "configMapKeyRef": lambda value, path: _REFERENCE({"name": ""} | value, path),
    "secretKeyRef": lambda value, path: _REFERENCE({"name": ""} | value, path),
}
_HANDLER: Table = {
    "exec": record({}, "command"),
    "httpGet": record({"port": port_or_name, "httpHeaders": each(_header), "scheme": one_of("HTTP", "HTTPS")}),
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
    "restartPolicy": one_of("Always", "Never", "OnFailure"),
    "imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
    "resources": _resources,
    "securityContext": record({**SECURITY, "procMount": one_of("Default", "Unmasked")}),
}
