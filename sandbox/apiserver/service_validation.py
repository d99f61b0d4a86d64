"""Validation of Services and Ingresses."""

from collections.abc import Iterator, Sequence

from kube.objects import Json
from sandbox.apiserver.refusals import FieldError, forbidden_field, invalid_value, required, shown
from sandbox.apiserver.rules import (
    Table,
    address,
    check,
    distinct,
    each,
    label,
    labels,
    network,
    one_of,
    outside_address,
    port,
    port_name,
    port_or_name,
    qualified,
    record,
    subdomain,
    unless_empty,
)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_SERVICE: Table = {
    "type": one_of(*_TYPES),
    "sessionAffinity": one_of("ClientIP", "None"),
    "ipFamilyPolicy": one_of("PreferDualStack", "RequireDualStack", "SingleStack"),
    "ipFamilies": each(one_of("IPv4", "IPv6")),
    "selector": labels,
    "externalIPs": each(outside_address),
    "internalTrafficPolicy": one_of("Cluster", "Local"),
    "trafficDistribution": one_of("PreferClose", "PreferSameZone", "PreferSameNode"),
}
_PORT: Table = {
    "port": port,
    "name": unless_empty(label),
    "appProtocol": qualified,
    "protocol": one_of("SCTP", "TCP", "UDP"),
    "targetPort": port_or_name,
}
_PATH_TYPES = one_of("Exact", "ImplementationSpecific", "Prefix")


def service(tree: Json) -> Iterator[FieldError]:
    """Validate a Service with defaults."""
    spec = tree["spec"]
    ports, type_ = spec.get("ports") or (), spec["type"]
    if not ports and spec.get("clusterIP") != "None" and type_ != "ExternalName":
        yield required("spec.ports")
    if type_ == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    for index, entry in enumerate(ports):
        place = f"spec.ports[{index}]"
        if len(ports) > 1 and not entry.get("name"):
            yield required(f"{place}.name")
        given = {name: value for name, value in entry.items() if value is not None}
        yield from check({"port": 0, "targetPort": entry.get("port", 0)} | given, place, _PORT)
        if entry.get("nodePort") and type_ == "ClusterIP":
            yield forbidden_field(f"{place}.nodePort", "may not be used when `type` is 'ClusterIP'")
    yield from distinct((entry.get("name"), f"spec.ports[{index}].name") for index, entry in enumerate(ports))
    yield from _twice(ports)
    yield from check(spec, "spec", _SERVICE)
    yield from _address(spec)
    yield from _outside(spec, type_)


def _twice(ports: Sequence[Json]) -> Iterator[FieldError]:
    seen = set()
    for index, entry in enumerate(ports):
        key = entry.get("protocol"), entry.get("port")
        if key in seen:
            value = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield FieldError("FieldValueDuplicate", f"spec.ports[{index}]", f"Duplicate value: {shown(value)}")
        seen.add(key)


def _address(spec: Json) -> Iterator[FieldError]:
    given = spec.get("clusterIP")
    if given == "None" and spec["type"] in ("NodePort", "LoadBalancer"):
        yield invalid_value("spec.clusterIPs[0]", given, f"may not be set to 'None' for {spec['type']} services")
    if given and given != "None":
        yield from address(given, "spec.clusterIPs[0]")


def _outside(spec: Json, type_: str) -> Iterator[FieldError]:
    """Fields that only externally reachable Services have."""
    policy = spec.get("externalTrafficPolicy")
    if policy and type_ not in ("NodePort", "LoadBalancer") and not spec.get("externalIPs"):
        detail = "may only be set for externally-accessible services"
        yield invalid_value("spec.externalTrafficPolicy", policy, detail)
    elif policy:
        yield from one_of("Cluster", "Local")(policy, "spec.externalTrafficPolicy")
    balanced, only = type_ == "LoadBalancer", "may only be used when `type` is 'LoadBalancer'"
    if spec.get("loadBalancerSourceRanges"):
        if not balanced:
            yield forbidden_field("spec.LoadBalancerSourceRanges", only)
        yield from each(network)(spec["loadBalancerSourceRanges"], "spec.LoadBalancerSourceRanges")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        yield forbidden_field("spec.allocateLoadBalancerNodePorts", only)
    if spec.get("loadBalancerClass") is not None:
        wrong = qualified(spec["loadBalancerClass"], "spec.loadBalancerClass")
        yield from wrong if balanced else [forbidden_field("spec.loadBalancerClass", only)]
    if spec.get("healthCheckNodePort") and not (balanced and policy == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid_value("spec.healthCheckNodePort", spec["healthCheckNodePort"], detail)


def ingress(tree: Json) -> Iterator[FieldError]:
    """Validate an Ingress."""
    spec = tree.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid_value("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for number, rule in enumerate(spec.get("rules") or ()):
        if rule.get("host"):
            yield from subdomain(rule["host"].removeprefix("*."), f"spec.rules[{number}].host")
        for index, each_path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _path(each_path, f"spec.rules[{number}].http.paths[{index}]")


def _path(entry: Json, place: str) -> Iterator[FieldError]:
    kind = entry.get("pathType")
    if kind is None:
        yield required(f"{place}.pathType", "pathType must be specified")
    else:
        yield from _PATH_TYPES(kind, f"{place}.pathType")
    if kind in ("Exact", "Prefix") and not entry.get("path", "").startswith("/"):
        yield invalid_value(f"{place}.path", entry.get("path", ""), "must be an absolute path")
    yield from _backend(entry.get("backend") or {}, f"{place}.backend")


def _backend(backend: Json, place: str) -> Iterator[FieldError]:
    target = backend.get("service")
    if target is None and backend.get("resource") is None:
        yield invalid_value(place, "", "resource or service backend is required")
    if target is None:
        return
    chosen = target.get("port") or {}
    yield from record({"name": label}, "name")(target, f"{place}.service")
    if chosen.get("number") and chosen.get("name"):
        yield invalid_value(place, "", "cannot set both port name & port number")
    elif not chosen.get("number") and not chosen.get("name"):
        yield required(place, "port name or number is required")
    elif chosen.get("number"):
        yield from port(chosen["number"], f"{place}.service.port.number")
    else:
        yield from port_name(chosen["name"], f"{place}.service.port.name")
