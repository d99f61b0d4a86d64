"""The manifests of the operator are what a real API server accepts, its PodSecurity admission included."""

from collections.abc import Iterator

import pytest
import yaml

from kube.client import Client
from kube.errors import Forbidden
from kube.objects import Json
from kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from tests.e2e.worlds import MANIFESTS, OPERATOR_NAMESPACE, Place

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

_DIRECTORIES = ("operator", "scheduler")
_PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Pod": "/api/v1/namespaces/{}/pods",
}


def _documents(kind: str, directory: str = "operator") -> Iterator[Json]:
    for file in sorted((MANIFESTS / directory).glob("*.yaml")):
        yield from (each for each in yaml.safe_load_all(file.read_text()) if each and each["kind"] == kind)


def _would_accept(client: Client, kind: str, body: Json, namespace: str = OPERATOR_NAMESPACE) -> Json:
    """What the server would make of an object. Raises ApiError."""
    body["metadata"].pop("namespace", None)
    path = f"{_PATHS[kind].format(namespace)}?dryRun=All&fieldValidation=Strict"
    tree: Json = yaml.safe_load(client.request("POST", path, body=body).body)
    return tree


@pytest.mark.parametrize(
    ("kind", "directory"), [("Deployment", "operator"), ("NetworkPolicy", "operator"), ("Deployment", "scheduler")]
)
def test_it_is_accepted_field_by_field(real: Place, kind: str, directory: str) -> None:
    (document,) = _documents(kind, directory)
    assert document["spec"].keys() <= _would_accept(real.client, kind, document)["spec"].keys()


@pytest.fixture
def restricted(real: Place) -> Iterator[str]:
    """A namespace where PodSecurity enforces what ours only warns of: TiDB pods of v1.6's kind are not that careful."""
    with real.namespace() as name:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        real.client.patch(NAMESPACES, name, "", {"metadata": {"labels": labels}})
        for directory in _DIRECTORIES:
            account = {"metadata": {"name": _pod(directory)["spec"]["serviceAccountName"]}}
            real.client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount"} | account, name)
        yield name


def _pod(directory: str) -> Json:
    (deployment,) = _documents("Deployment", directory)
    template: Json = deployment["spec"]["template"]
    return {"apiVersion": "v1", "kind": "Pod"} | template | {"metadata": {"name": directory}}


@pytest.mark.parametrize("directory", _DIRECTORIES)
def test_the_pods_are_allowed_where_pod_security_is_restricted(real: Place, restricted: str, directory: str) -> None:
    made = _would_accept(real.client, "Pod", _pod(directory), restricted)
    assert [{"memory"}] * len(made["spec"]["containers"]) == [
        set(each["resources"]["limits"]) for each in made["spec"]["containers"]
    ]
    careless = _pod(directory)
    careless["spec"]["hostNetwork"] = True
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        _would_accept(real.client, "Pod", careless, restricted)


def test_the_service_reaches_the_pods(real: Place) -> None:
    (service,) = _documents("Service")
    (deployment,) = _documents("Deployment")
    template = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in [each["name"] for each in template["spec"]["containers"][0]["ports"]]
    (policy,) = _documents("NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
