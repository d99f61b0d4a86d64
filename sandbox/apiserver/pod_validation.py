"""Validation of the spec of a pod, or of a pod template."""

import re
from collections.abc import Iterable, Iterator

from kube.objects import Json
from sandbox.apiserver.container_validation import SECURITY, containers
from sandbox.apiserver.names import SUBDOMAIN_HELP, annotation_errors, is_subdomain
from sandbox.apiserver.refusals import FieldError, duplicate, invalid_value, required
from sandbox.apiserver.rules import (
    Table,
    address,
    check,
    each,
    label,
    labels,
    one_of,
    qualified,
    subdomain,
    unless_empty,
    within,
)
from sandbox.apiserver.scheduling_validation import affinity, spread, toleration
from sandbox.apiserver.volume_validation import volume_errors

_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"


def template(tree: Json, path: str, extra_volumes: Iterable[Json] = ()) -> Iterator[FieldError]:
    """Validate a pod template; `extra_volumes` are added by its owner."""
    meta = tree.get("metadata") or {}
    yield from annotation_errors(meta.get("annotations") or {}, f"{path}.annotations")
    yield from pod_spec(tree.get("spec") or {}, f"{path}.spec", extra_volumes)


def pod_spec(spec: Json, path: str, extra_volumes: Iterable[Json] = ()) -> Iterator[FieldError]:
    """Validate the spec of a pod; `extra_volumes` come first."""
    added = {volume["name"]: volume for volume in extra_volumes}
    own = [each for each in spec.get("volumes") or () if each.get("name") not in added]
    volumes = [*added.values(), *own]
    yield from volume_errors(volumes, f"{path}.volumes")
    yield from containers(spec, path, {each.get("name", "") for each in volumes})
    yield from check(spec, path, _POD)
    yield from _without_servers(spec, path)
    yield from _security(spec, f"{path}.securityContext")


def _security(spec: Json, path: str) -> Iterator[FieldError]:
    context = spec.get("securityContext") or {}
    yield from check(context, path, _POD_SECURITY)
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        place, name = f"{path}.sysctls[{index}].name", sysctl.get("name", "")
        if not name:
            yield required(place)
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            yield invalid_value(place, name, f"must have at most 253 characters and match regex {_SYSCTL}")
        elif name in {each.get("name") for each in context["sysctls"][:index]}:
            yield duplicate(place, name)
        elif spec.get("hostNetwork") and name.startswith("net."):
            yield invalid_value(place, name, "may not be specified when 'hostNetwork' is true")


def _dns_option(option: Json, path: str) -> Iterator[FieldError]:
    if not option.get("name"):
        yield required(path, "must not be empty")


def _search(domain: str, path: str) -> Iterator[FieldError]:
    if not is_subdomain(domain.removesuffix(".").replace("_", "-")):
        yield invalid_value(path, domain, SUBDOMAIN_HELP)


def _without_servers(spec: Json, path: str) -> Iterator[FieldError]:
    if spec.get("dnsPolicy") != "None":
        return
    if spec.get("dnsConfig") is None:
        yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif not spec["dnsConfig"].get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{path}.dnsConfig.nameservers", detail)


def _dns(config: Json, path: str) -> Iterator[FieldError]:
    for name, most in (("nameservers", 3), ("searches", 32)):
        if len(given := config.get(name) or ()) > most:
            yield invalid_value(f"{path}.{name}", given, f"must not have more than {most} {name}")
    yield from check(config, path, _DNS)


_POD_SECURITY: Table = {
    **SECURITY,
    "fsGroup": within(0, 2**31 - 1),
    "fsGroupChangePolicy": one_of("Always", "OnRootMismatch"),
    "seLinuxChangePolicy": one_of("MountOption", "Recursive"),
    "supplementalGroups": each(within(0, 2**31 - 1)),
    "supplementalGroupsPolicy": one_of("Merge", "Strict"),
}
_DNS: Table = {"nameservers": each(address), "searches": each(_search), "options": each(_dns_option)}
_ALIAS: Table = {"ip": address, "hostnames": each(subdomain)}
_POD: Table = {
    "restartPolicy": one_of("Always", "OnFailure", "Never"),
    "dnsPolicy": one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "activeDeadlineSeconds": within(1, 2**31 - 1),
    "nodeSelector": labels,
    "hostname": unless_empty(label),
    "subdomain": unless_empty(label),
    "serviceAccountName": subdomain,
    "tolerations": each(toleration),
    "affinity": affinity,
    "topologySpreadConstraints": spread,
    "dnsConfig": _dns,
    "hostAliases": each(lambda value, path: check({"ip": ""} | value, path, _ALIAS)),
    "readinessGates": each(
        lambda value, path: check({"conditionType": ""} | value, path, {"conditionType": qualified})
    ),
    "nodeName": subdomain,
}
