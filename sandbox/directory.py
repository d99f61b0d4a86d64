"""The cluster's DNS and service proxies, from the mirrored Services and Pods (dataplane-apis.md 1, 14.1)."""

from collections.abc import Iterable

from kube.objects import Json
from kube.resources import PODS, SERVICES
from sandbox.cluster import Cluster
from sandbox.conditions import holds
from sandbox.dataplane.network import Target
from sandbox.owners import is_deleted

CLUSTER_DOMAIN = "cluster.local"


class ClusterDirectory:
    """Resolves pod names under headless services, service names and addresses, in short and full form.

    `domain` is the cluster's only domain: names under another do not exist.
    """

    def __init__(self, cluster: Cluster, domain: str = CLUSTER_DOMAIN) -> None:
        self._cluster = cluster
        self._domain = domain.split(".")
        self._resolved: dict[tuple[str, int, str], list[Target]] = {}
        self._resolved_at = -1

    def resolve(self, host: str, port: int, namespace: str) -> list[Target]:
        """The targets of `host:port` for a pod of `namespace` (empty: from outside). Not thread-safe."""
        changes = self._cluster.changes
        if changes != self._resolved_at:
            self._resolved, self._resolved_at = {}, changes
        asked = (host, port, namespace)
        targets = self._resolved.get(asked)
        if targets is None:
            targets = self._resolved[asked] = self._resolve(host, port, namespace)
        return targets

    def pods(self, host: str, port: int) -> list[Target]:
        """The targets of a name for another Kubernetes: single pods, because a Service's address is local."""
        found = self._named(host, "")
        if found is None or (found[1] is None and found[0]["spec"].get("clusterIP") != "None"):
            return []
        return self.resolve(host, port, "")

    def addresses(self, host: str, namespace: str) -> list[str]:
        """DNS addresses of a name for a pod of `namespace`: pods' addresses, or a Service's."""
        found = self._named(host, namespace)
        if found is None:
            return []
        service, pod = found
        if pod is None and service["spec"].get("clusterIP") != "None":
            return [service["spec"]["clusterIP"]] if service["spec"].get("clusterIP") else []
        pods = [pod] if pod is not None else self._pods(service)
        return [each["status"]["podIP"] for each in pods]

    def _resolve(self, host: str, port: int, namespace: str) -> list[Target]:
        if host.replace(".", "").isdecimal():
            return self._by_address(host, port)
        found = self._named(host, namespace)
        if found is None:
            return []
        service, pod = found
        return self._behind(service, port) if pod is None else [Target(pod["metadata"]["uid"], port)]

    def _named(self, host: str, namespace: str) -> tuple[Json, Json | None] | None:
        """The Service with this name, and the pod under it if the name is a pod's."""
        labels = host.lower().rstrip(".").split(".")
        if "svc" in labels:
            labels, domain = labels[: labels.index("svc")], labels[labels.index("svc") + 1 :]
            if domain not in ([], self._domain):
                return None
        match labels:
            case [service]:
                return self._service(namespace, service)
            case [first, second]:
                return self._service(second, first) or self._pod(namespace, second, first)
            case [pod, service, other]:
                return self._pod(other, service, pod)
        return None

    def _by_address(self, address: str, port: int) -> list[Target]:
        for pod in self._cluster.list(PODS):
            if pod.get("status", {}).get("podIP") == address:
                return [Target(pod["metadata"]["uid"], port)]
        for service in self._cluster.list(SERVICES):
            if service["spec"].get("clusterIP") == address:
                return self._behind(service, port)
        return []

    def _service(self, namespace: str, name: str) -> tuple[Json, None] | None:
        service = self._cluster.get(SERVICES, namespace, name)
        return None if service is None else (service, None)

    def _pod(self, namespace: str, service_name: str, name: str) -> tuple[Json, Json] | None:
        service = self._cluster.get(SERVICES, namespace, service_name)
        pod = self._cluster.get(PODS, namespace, name)
        if service is None or pod is None or not reached_through(service, pod):
            return None
        spec = pod["spec"]
        if (spec.get("hostname"), spec.get("subdomain")) != (name, service_name):
            return None
        return service, pod

    def _pods(self, service: Json) -> list[Json]:
        namespace = service["metadata"]["namespace"]
        pods = self._cluster.selected(PODS, namespace, service["spec"].get("selector") or {})
        return [pod for pod in pods if reached_through(service, pod)]

    def _behind(self, service: Json, port: int) -> list[Target]:
        reached = self._pods(service)
        if service["spec"].get("clusterIP") == "None":
            return [Target(pod["metadata"]["uid"], port) for pod in reached]
        entry = next((each for each in service["spec"].get("ports", ()) if each["port"] == port), None)
        if entry is None:
            return []
        targets = [(pod, target_port(entry, pod)) for pod in reached]
        return [Target(pod["metadata"]["uid"], number) for pod, number in targets if number is not None]


def reached_through(service: Json, pod: Json) -> bool:
    """True if a pod is among a Service's addresses: it has one and is Ready, unless the Service ignores readiness."""
    if not pod.get("status", {}).get("podIP") or pod["status"].get("phase") in ("Succeeded", "Failed"):
        return False
    if service["spec"].get("publishNotReadyAddresses"):
        return True
    return holds(pod, "Ready") and not is_deleted(pod)


def target_port(entry: Json, pod: Json) -> int | None:
    """The pod's port behind a port of a Service; None if the pod lacks a port with that name."""
    target = entry.get("targetPort") or entry["port"]
    if isinstance(target, int):
        return target
    return next((port["containerPort"] for port in _ports(pod) if port.get("name") == target), None)


def _ports(pod: Json) -> Iterable[Json]:
    for container in pod["spec"]["containers"]:
        yield from container.get("ports") or ()
