"""A handwritten cluster of PD, TiKV and TiDB, without the operator."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from kube.client import Client
from kube.objects import Json
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, SERVICES, STATEFUL_SETS
from ports.clock import Clock
from ports.transport import Request, Response, Transport, TransportError
from sandbox.dataplane.program import Handler, Network
from tests.sandbox.scripts import script

NAMESPACE = "default"
CLUSTER = "basic"
PD = "http://basic-pd.default:2379"

_PORTS = {"pd": [2380, 2379], "tikv": [20160, 20180], "tidb": [4000, 10080]}
_SERVES_ON = {"pd": 2379, "tikv": 20160, "tidb": 4000}
_CLAIMED = ("pd", "tikv")


def labels(component: str) -> dict[str, str]:
    """Base labels."""
    return {"app.kubernetes.io/instance": CLUSTER, "app.kubernetes.io/component": component}


def service(name: str, component: str, ports: list[int], headless: bool) -> Json:
    spec: Json = {"selector": labels(component), "ports": [{"name": f"p{port}", "port": port} for port in ports]}
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def stateful_set(component: str, replicas: int, version: str = "v8.5.0") -> Json:
    name = f"{CLUSTER}-{component}"
    environment = {
        "NAMESPACE": NAMESPACE,
        "PEER_SERVICE_NAME": f"{name}-peer",
        "HEADLESS_SERVICE_NAME": f"{name}-peer",
        "CLUSTER_NAME": CLUSTER,
    }
    environment["CAPACITY"] = "0"
    mounts = [
        {"name": "startup-script", "mountPath": "/usr/local/bin"},
        {"name": "config", "mountPath": f"/etc/{component}"},
        {"name": "annotations", "mountPath": "/etc/podinfo"},
    ]
    start = {"name": name, "items": [{"key": "startup-script", "path": f"{component}_start_script.sh"}]}
    config = {"name": name, "items": [{"key": "config-file", "path": f"{component}.toml"}]}
    info = {"items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]}
    volumes: list[Json] = [
        {"name": "startup-script", "configMap": start},
        {"name": "config", "configMap": config},
        {"name": "annotations", "downwardAPI": info},
    ]
    claims = []
    if component in _CLAIMED:
        mounts.append({"name": component, "mountPath": f"/var/lib/{component}"})
        size = {"requests": {"storage": "1Gi"}}
        claims = [{"metadata": {"name": component}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": size}}]
    container = {
        "name": component,
        "image": f"pingcap/{component}:{version}",
        "command": ["/bin/sh", f"/usr/local/bin/{component}_start_script.sh"],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "ports": [{"containerPort": port} for port in _PORTS[component]],
        "volumeMounts": mounts,
        "readinessProbe": {"tcpSocket": {"port": _SERVES_ON[component]}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels(component)},
        "spec": {
            "replicas": replicas,
            "serviceName": f"{name}-peer",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels(component)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": replicas}},
            "template": {
                "metadata": {"labels": labels(component)},
                "spec": {"containers": [container], "volumes": volumes},
            },
            "volumeClaimTemplates": claims,
        },
    }


def create(client: Client, component: str, replicas: int, generation: str = "v1", version: str = "v8.5.0") -> None:
    """Create script, Services and StatefulSet of a component."""
    name = f"{CLUSTER}-{component}"
    meta = {"name": name, "namespace": NAMESPACE}
    data = {"startup-script": script(component, generation), "config-file": ""}
    client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, NAMESPACE)
    client.create(SERVICES, service(f"{name}-peer", component, _PORTS[component], True), NAMESPACE)
    client.create(SERVICES, service(name, component, _PORTS[component], False), NAMESPACE)
    client.create(STATEFUL_SETS, stateful_set(component, replicas, version), NAMESPACE)


def create_discovery(client: Client) -> None:
    """Create a discovery pod behind its Service, as a StatefulSet for brevity."""
    own = labels("discovery")
    container = {
        "name": "discovery",
        "image": "pingcap/tidb-operator:v1.6.0",
        "command": ["/usr/local/bin/tidb-discovery"],
        "ports": [{"containerPort": 10261}],
    }
    meta = {"name": "basic-discovery", "namespace": NAMESPACE}
    client.create(SERVICES, service("basic-discovery", "discovery", [10261], False), NAMESPACE)
    template = {"metadata": {"labels": own}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": own}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    client.create(DEPLOYMENTS, deployment, NAMESPACE)


def discovery(env: Mapping[str, str], kubernetes: Transport, network: Network, clock: Clock) -> Handler:
    """A minimal discovery: pod 0 begins the cluster, the others join it."""

    def handle(request: Request) -> Response:
        address = base64.b64decode(request.url.rpartition("/new/")[2]).decode().strip()
        name = address.partition(".")[0]
        if name == "basic-pd-0":
            return Response(200, {}, f"--initial-cluster={name}=http://{address}".encode())
        try:
            members = get(network(None), "http://basic-pd-0.basic-pd-peer:2379/pd/api/v1/members")["members"]
        except (TransportError, KeyError, TypeError, ValueError) as error:
            return Response(500, {}, str(error).encode())
        urls = [member["client_urls"][0] for member in members if member["name"] not in ("", name)]
        return Response(200, {}, f"--join={','.join(urls)}".encode())

    return handle


def get(transport: Transport, url: str) -> Any:
    """The JSON of a GET."""
    return json.loads(transport.request(Request("GET", url)).body)
