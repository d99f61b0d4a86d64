"""Endpoints and EndpointSlices of Services with a selector."""

import operator
from collections.abc import Hashable

from kube.objects import Json
from kube.resources import ENDPOINTS, PODS, SERVICES, Resource
from sandbox.cluster import Cluster
from sandbox.conditions import holds
from sandbox.directory import target_port
from sandbox.owners import controller_reference, is_deleted

ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")


class EndpointControllers:
    """Writes the Endpoints and EndpointSlices of each Service."""

    name = "endpoints"
    watches: tuple[Hashable, ...] = (SERVICES, PODS, ENDPOINTS, ENDPOINT_SLICES)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rests: dict[str, list[Json | None]] = {}
        """What each Service rests on, by its UID: its Endpoints, its slice, itself and its pods."""

    def step(self) -> float | None:
        """Bring Endpoints and slices of every Service up to date."""
        services = self._cluster.list(SERVICES)
        uids = {service["metadata"]["uid"] for service in services}
        self._rests = {uid: rest for uid, rest in self._rests.items() if uid in uids}
        for service in services:
            if service["spec"].get("selector") and not is_deleted(service):
                self._sync(service)
        named = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in services}
        for endpoints in self._cluster.list(ENDPOINTS):
            meta = endpoints["metadata"]
            if (meta["namespace"], meta["name"]) not in named:
                self._cluster.delete(ENDPOINTS, endpoints)
        return None

    def _sync(self, service: Json) -> None:
        meta = service["metadata"]
        pods = self._cluster.selected(PODS, meta["namespace"], service["spec"]["selector"])
        written = (self._cluster.get(each, meta["namespace"], meta["name"]) for each in (ENDPOINTS, ENDPOINT_SLICES))
        read, before = [*written, service, *pods], self._rests.get(meta["uid"], [])
        if len(read) == len(before) and all(map(operator.is_, read, before)):
            # an object that changes is another tree
            return
        addressed = [pod for pod in pods if pod.get("status", {}).get("podIP")]
        everybody = bool(service["spec"].get("publishNotReadyAddresses"))
        ready = [pod for pod in addressed if everybody or (holds(pod, "Ready") and not is_deleted(pod))]
        unready = [pod for pod in addressed if pod not in ready and not is_deleted(pod)]
        writes = self._write_endpoints(service, ready, unready), self._write_slice(service, addressed, everybody)
        if not any(writes):
            self._rests[meta["uid"]] = read

    def _write_endpoints(self, service: Json, ready: list[Json], unready: list[Json]) -> bool:
        """Return True if there was something to write."""
        subset: Json = {}
        if ready:
            subset["addresses"] = [_address(service, pod) for pod in ready]
        if unready:
            subset["notReadyAddresses"] = [_address(service, pod) for pod in unready]
        if subset:
            subset["ports"] = _ports(service, (ready or unready)[0])
        wanted: Json = {"subsets": [subset] if subset else []}
        meta = service["metadata"]
        current = self._cluster.get(ENDPOINTS, meta["namespace"], meta["name"])
        if current is None:
            head = {"name": meta["name"], "namespace": meta["namespace"], "labels": meta.get("labels") or {}}
            self._cluster.create(ENDPOINTS, {"apiVersion": "v1", "kind": "Endpoints", "metadata": head} | wanted)
        elif (current.get("subsets") or []) != wanted["subsets"]:
            self._cluster.patch(ENDPOINTS, current, wanted)
        else:
            return False
        return True

    def _write_slice(self, service: Json, pods: list[Json], everybody: bool) -> bool:
        """Return True if there was something to write."""
        meta = service["metadata"]
        wanted: Json = {
            "endpoints": [_endpoint(service, pod, everybody) for pod in pods],
            "ports": _ports(service, pods[0] if pods else None),
        }
        current = self._cluster.get(ENDPOINT_SLICES, meta["namespace"], meta["name"])
        if current is None:
            labels = (meta.get("labels") or {}) | {"kubernetes.io/service-name": meta["name"]}
            head = {
                "name": meta["name"],
                "namespace": meta["namespace"],
                "labels": labels,
                "ownerReferences": [controller_reference(service)],
            }
            shape = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
            self._cluster.create(ENDPOINT_SLICES, shape | {"metadata": head} | wanted)
        elif any((current.get(key) or []) != value for key, value in wanted.items()):
            self._cluster.patch(ENDPOINT_SLICES, current, wanted)
        else:
            return False
        return True


def _address(service: Json, pod: Json) -> Json:
    meta = pod["metadata"]
    address: Json = {
        "ip": pod["status"]["podIP"],
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    }
    if pod["spec"].get("subdomain") == service["metadata"]["name"] and pod["spec"].get("hostname"):
        address["hostname"] = pod["spec"]["hostname"]
    return address


def _endpoint(service: Json, pod: Json, everybody: bool) -> Json:
    address = _address(service, pod)
    serving, terminating = holds(pod, "Ready"), is_deleted(pod)
    endpoint = {
        "addresses": [address["ip"]],
        "conditions": {
            "ready": everybody or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "nodeName": address["nodeName"],
        "targetRef": address["targetRef"],
    }
    return endpoint | ({"hostname": address["hostname"]} if "hostname" in address else {})


def _ports(service: Json, pod: Json | None) -> list[Json]:
    ports = []
    for entry in service["spec"].get("ports") or ():
        number = target_port(entry, pod) if pod is not None else entry["port"]
        if number is not None:
            port = {"port": number, "protocol": entry.get("protocol", "TCP")}
            ports.append(({"name": entry["name"]} if entry.get("name") else {}) | port)
    return ports
