"""v1.6's objects for its examples run in the sandbox: recorded objects, with equivalent scripts (objects.md 7).

The recordings omit scripts and Secrets. PD gets three members, where the example has one.
"""

import base64
import json
from collections.abc import Mapping

import pytest

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from ports.clock import Clock, FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request, Response, Transport, TransportError
from sandbox.conditions import holds
from sandbox.dataplane.network import Origin
from sandbox.dataplane.program import Handler, Network
from sandbox.dataplane.tls import Certificate
from sandbox.world import World
from tests.certificates import Authority
from tests.member.recordings import GOLDEN
from tests.sandbox.clusters import get
from tests.sandbox.scripts import script

_RESOURCES: Mapping[str, Resource] = {
    "ConfigMap": CONFIG_MAPS,
    "ServiceAccount": SERVICE_ACCOUNTS,
    "Role": ROLES,
    "RoleBinding": ROLE_BINDINGS,
    "Service": SERVICES,
    "Deployment": DEPLOYMENTS,
    "StatefulSet": STATEFUL_SETS,
}
_ALLOCATED = ("clusterIP", "clusterIPs", "healthCheckNodePort")
_AUTHORITY = Authority()


def recorded(name: str) -> list[Json]:
    """The objects of one set; skips if the recordings are not beside the repository."""
    path = GOLDEN / f"{name}.json"
    if not path.exists():
        pytest.skip("the recordings of v1.6 are not beside the repository")
    items: list[Json] = json.loads(path.read_text())["items"]
    return [item for item in items if item["kind"] in _RESOURCES]


def as_new(item: Json, *, tls: bool) -> Json:
    """A recorded object as v1.6 creates it, with a script if the recording omits it."""
    meta = {
        key: item["metadata"][key] for key in ("name", "namespace", "labels", "annotations") if key in item["metadata"]
    }
    made = {key: value for key, value in item.items() if key != "status"} | {"metadata": meta}
    if item["kind"] == "Service" and item["spec"].get("clusterIP") != "None":
        made["spec"] = {key: value for key, value in item["spec"].items() if key not in _ALLOCATED}
        for port in made["spec"]["ports"]:
            port.pop("nodePort", None)
    component = item["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
    if item["kind"] == "ConfigMap":
        made["data"] = item["data"] | {"startup-script": script(component, tls=tls)}
    if item["kind"] == "StatefulSet" and component == "pd":
        made["spec"] = item["spec"] | {"replicas": 3}
    return made


def discovery(env: Mapping[str, str], kubernetes: Transport, network: Network, clock: Clock) -> Handler:
    """Pod 0 begins the cluster, the others join it."""

    def handle(request: Request) -> Response:
        address = base64.b64decode(request.url.rpartition("/new/")[2]).decode().strip()
        name, host = address.partition(".")[0], address.partition(":")[0]
        first = f"{env['TC_NAME']}-pd-0"
        scheme = "https" if env["TC_NAME"].endswith("-tls") else "http"
        tls = _AUTHORITY.pair() if scheme == "https" else None
        if name == first:
            return Response(200, {}, f"--initial-cluster={name}={scheme}://{address}".encode())
        try:
            members = get(network(tls), f"{scheme}://{host.replace(name, first)}:2379/pd/api/v1/members")["members"]
        except (TransportError, KeyError, ValueError) as error:
            return Response(500, {}, str(error).encode())
        urls = [member["client_urls"][0] for member in members if member["name"] not in ("", name)]
        return Response(200, {}, f"--join={','.join(urls)}".encode())

    return handle


def secrets(items: list[Json]) -> set[tuple[str, str]]:
    """Namespace and name of the Secrets that pods mount."""
    templates = [
        (item["metadata"]["namespace"], item["spec"]["template"]["spec"].get("volumes") or ())
        for item in items
        if item["kind"] in ("StatefulSet", "Deployment")
    ]
    return {
        (namespace, each["secret"]["secretName"])
        for namespace, volumes in templates
        for each in volumes
        if "secret" in each
    }


@pytest.mark.parametrize("name", ["basic", "basic-tls"])
@pytest.mark.rule("objects-7")
def test_the_objects_of_v16_become_ready(clock: FakeClock, name: str) -> None:
    items, tls = recorded(name), name.endswith("-tls")
    world = World(clock, SeededRandomness(1), programs={"/usr/local/bin/tidb-discovery": discovery})
    client, namespace = world.client(), items[0]["metadata"]["namespace"]
    client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for _, secret in secrets(items):
        component = secret.removeprefix(f"{name}-").partition("-")[0]
        client.create(SECRETS, _AUTHORITY.of(component, name, namespace).secret(secret), namespace)
    for item in sorted(items, key=lambda each: list(_RESOURCES).index(each["kind"])):
        client.create(_RESOURCES[item["kind"]], as_new(item, tls=tls), namespace)
    world.advance(60)

    pods = {each.metadata.name: each.decode() for each in client.list_page(PODS, namespace).items}
    assert {} == {pod: tree["status"] for pod, tree in pods.items() if not holds(tree, "Ready")}
    base = f"{'https' if tls else 'http'}://{name.partition('-storage')[0]}-pd.{namespace}:2379"
    operator = world.data_plane_transport(Origin(certificate=Certificate.of(_AUTHORITY.pair()) if tls else None))
    members = get(operator, f"{base}/pd/api/v1/members")
    assert 3 == len(members["members"])
    assert {"https" if tls else "http"} == {each["client_urls"][0].partition(":")[0] for each in members["members"]}
    stores = get(operator, f"{base}/pd/api/v1/stores")["stores"]
    assert ["Up"] == [each["store"]["state_name"] for each in stores]
