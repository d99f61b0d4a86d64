"""The common parts of Services (objects.md 2)."""

from collections.abc import Mapping, Sequence

from apis.cluster import Cluster
from apis.shared import ServiceSpec
from dataplane.addresses import PD_CLIENT_PORT
from kube.objects import Json
from member import labels
from member.naming import member_name, peer_service
from member.objects.pod import without_unset


def port(name: str, number: int, *, target: int | None = None, node_port: int = 0) -> Json:
    """A TCP port; `target` is the container's port, by default the same. With `node_port` 0 Kubernetes chooses one."""
    entry: Json = {"name": name, "port": number, "targetPort": target or number, "protocol": "TCP"}
    return entry | {"nodePort": node_port} if node_port else entry


def service(
    tc: Cluster,
    name: str,
    spec: Json,
    own_labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A Service that the cluster owns; dual-stack if the cluster prefers IPv6."""
    if tc.spec.prefer_ipv6:
        spec = spec | {"ipFamilyPolicy": "PreferDualStack"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": labels.object_meta(tc, name, own_labels, annotations),
        "spec": spec,
    }


def peer(tc: Cluster, component: str, ports: Sequence[Json], used_by: str = labels.PEER) -> Json:
    """The headless Service through which members find each other before they are ready.

    `used_by` is empty if v1.6 sets no such label on the Service (objects.md 2).
    """
    selector = labels.base_labels(tc, component)
    spec: Json = {
        "clusterIP": "None",
        "ports": list(ports),
        "publishNotReadyAddresses": True,
        "selector": selector,
    }
    return service(tc, peer_service(tc, component), spec, selector | ({labels.USED_BY: used_by} if used_by else {}))


def end_user(
    tc: Cluster,
    component: str,
    spec: Json,
    user_labels: Mapping[str, str],
    user_annotations: Mapping[str, str],
) -> Json:
    """The Service for clients; the operator's labels override the user's."""
    selector = labels.base_labels(tc, component)
    own = {**user_labels, **selector, labels.USED_BY: labels.END_USER}
    return service(tc, member_name(tc, component), spec | {"selector": selector}, own, user_annotations)


def of_pd(tc: Cluster, component: str, chosen: ServiceSpec) -> Json:
    """The spec of the client Services of PD and its microservices (objects.md 2.1)."""
    asked = next((entry.type for entry in tc.spec.services if entry.name == component), "")
    deprecated = asked if asked in ("NodePort", "LoadBalancer") else "ClusterIP"
    return without_unset(
        {
            "type": chosen.type or deprecated,
            "ports": [port(chosen.port_name or "client", PD_CLIENT_PORT)],
            "clusterIP": chosen.cluster_ip,
            "loadBalancerIP": chosen.load_balancer_ip,
        }
    )


def keep_allocated(desired: Json, live: Json) -> Json:
    """The desired Service with the node ports that the API server has chosen, if the spec leaves them open (2.3)."""
    live_spec = live.get("spec") or {}
    spec = dict(desired["spec"])
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return desired
    chosen = {_identity(entry): entry.get("nodePort") for entry in live_spec.get("ports") or ()}
    spec["ports"] = [_with_node_port(entry, chosen.get(_identity(entry))) for entry in spec["ports"]]
    if live_spec.get("healthCheckNodePort") and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = live_spec["healthCheckNodePort"]
    return desired | {"spec": spec}


def without_allocated(spec: Json, live_spec: Json) -> Json:
    """A Service's spec without node ports that the live one also has: Kubernetes may have chosen them (2.3)."""
    chosen = {_identity(entry): entry.get("nodePort") for entry in live_spec.get("ports") or ()}
    result = dict(spec)
    result["ports"] = [
        {key: value for key, value in entry.items() if key != "nodePort" or value != chosen.get(_identity(entry))}
        for entry in spec.get("ports") or ()
    ]
    if result.get("healthCheckNodePort") == live_spec.get("healthCheckNodePort"):
        result.pop("healthCheckNodePort", None)
    return result


def _identity(entry: Json) -> tuple[object, object]:
    return entry.get("port"), entry.get("protocol", "TCP")


def _with_node_port(entry: Json, node_port: object) -> Json:
    return entry | {"nodePort": node_port} if node_port and not entry.get("nodePort") else entry
