"""The addresses and node ports of Services, computed from the existing Services, so that they cannot diverge."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from itertools import chain

from kube.objects import Json
from sandbox.apiserver.refusals import FieldError, invalid_value

ADDRESSES = IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_STATIC_NODE_PORTS = 86
"""The first ports of the range, which Kubernetes leaves to users while others are free."""
_FIRST_ADDRESS = 10
"""Lower addresses are reserved for the cluster's own services, e.g. the API server at 10.96.0.1."""


def keep_allocations(spec: Json, old: Json) -> None:
    """Copy allocations of the old spec that the new one leaves empty."""
    if spec.get("type") == "ExternalName" or old.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        for name in ("clusterIP", "clusterIPs"):
            if name in old:
                spec[name] = old[name]
    _drop_what_went_with_the_type(spec, old)
    if not _has_node_ports(spec):
        return
    given = {(port.get("protocol", "TCP"), port.get("port")): port.get("nodePort") for port in old.get("ports") or ()}
    for port in spec.get("ports") or ():
        number = given.get((port.get("protocol", "TCP"), port.get("port")))
        if not port.get("nodePort") and number:
            port["nodePort"] = number
    if _has_health_check(spec) and not spec.get("healthCheckNodePort") and old.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old["healthCheckNodePort"]


def allocate(spec: Json, others: Iterable[Json]) -> list[FieldError]:
    """Allocate the addresses and ports of a Service, avoiding the ones that the `others` (specs) have."""
    if spec.get("type") == "ExternalName":
        return []
    taken = list(others)
    errors = _allocate_address(spec, {other.get("clusterIP") for other in taken})
    if _has_node_ports(spec):
        errors += _allocate_ports(spec, {number for other in taken for number in _node_ports(other)})
    return errors


def _drop_what_went_with_the_type(spec: Json, old: Json) -> None:
    """Release allocations that the new type does not need, unless the user sets them again."""
    if not _has_node_ports(spec) and set(_node_ports(spec)) == set(_node_ports(old)):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    for name, needs in _OF_TYPES.items():
        if name in spec and needs(old) and not needs(spec) and spec[name] == old.get(name):
            del spec[name]


def _allocate_address(spec: Json, taken: set[str | None]) -> list[FieldError]:
    address = spec.get("clusterIP")
    if not address:
        free = (str(ADDRESSES[number]) for number in range(_FIRST_ADDRESS, ADDRESSES.num_addresses - 1))
        spec["clusterIP"] = next(candidate for candidate in free if candidate not in taken)
        spec["clusterIPs"] = [spec["clusterIP"]]
        return []
    spec.setdefault("clusterIPs", [address])
    if address == "None":
        return []
    if address in taken:
        detail = "failed to allocate IP " + address + ": provided IP is already allocated"
        return [invalid_value("spec.clusterIPs", [address], detail)]
    if not _is_cluster_address(address):
        detail = f"failed to allocate IP {address}: the provided network does not match the current range"
        return [invalid_value("spec.clusterIPs", [address], detail)]
    return []


def _is_cluster_address(address: str) -> bool:
    try:
        return IPv4Address(address) in ADDRESSES
    except ValueError:
        return False


def _allocate_ports(spec: Json, taken: set[int]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort")
        if not number:
            number = port["nodePort"] = _free_port(taken)
        elif number in taken:
            errors.append(invalid_value(f"spec.ports[{index}].nodePort", number, "provided port is already allocated"))
        elif number not in NODE_PORTS:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            errors.append(invalid_value(f"spec.ports[{index}].nodePort", number, detail))
        taken.add(number)
    if _has_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _free_port(taken)
    return errors


def _free_port(taken: set[int]) -> int:
    by_preference = chain(NODE_PORTS[_STATIC_NODE_PORTS:], NODE_PORTS[:_STATIC_NODE_PORTS])
    return next(number for number in by_preference if number not in taken)


def _node_ports(spec: Json) -> Iterator[int]:
    for port in spec.get("ports") or ():
        if number := port.get("nodePort"):
            yield number
    if number := spec.get("healthCheckNodePort"):
        yield number


def _has_node_ports(spec: Json) -> bool:
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _has_health_check(spec: Json) -> bool:
    return _is_balanced(spec) and spec.get("externalTrafficPolicy") == "Local"


def _is_balanced(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer"


def _is_external(spec: Json) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


_OF_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "healthCheckNodePort": _has_health_check,
    "allocateLoadBalancerNodePorts": _is_balanced,
    "loadBalancerClass": _is_balanced,
    "externalTrafficPolicy": _is_external,
}
"""Ordered: whether a health check port is needed depends on the policy."""
