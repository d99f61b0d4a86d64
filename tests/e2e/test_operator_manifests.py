"""The manifests of the operator on a real control plane, its PodSecurity admission included; clusters run on."""

import contextlib
from collections.abc import Iterator

import pytest
import yaml

from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.objects import Json
from kube.resources import DEPLOYMENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS, TIDB_CLUSTERS, Resource
from tests.e2e.in_force import await_refusal, would_accept
from tests.e2e.waiting import eventually
from tests.e2e.worlds import (
    MANIFESTS,
    OPERATOR_NAMESPACE,
    SERVICE_ACCOUNT,
    Place,
    create_cluster,
    is_ready,
    sample,
)

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

_DIRECTORIES = ("operator", "scheduler")
_NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")


def _documents(kind: str, directory: str = "operator") -> Iterator[Json]:
    for file in sorted((MANIFESTS / directory).glob("*.yaml")):
        yield from (each for each in yaml.safe_load_all(file.read_text()) if each and each["kind"] == kind)


@pytest.mark.parametrize(
    ("resource", "directory"),
    [(DEPLOYMENTS, "operator"), (_NETWORK_POLICIES, "operator"), (DEPLOYMENTS, "scheduler")],
    ids=str,
)
def test_the_manifest_is_accepted_field_by_field(real: Place, resource: Resource, directory: str) -> None:
    (document,) = _documents(resource.kind, directory)
    accepted = would_accept(real.client, resource, document, OPERATOR_NAMESPACE)
    assert document["spec"].keys() <= accepted["spec"].keys()


@pytest.fixture
def restricted(real: Place) -> Iterator[str]:
    """A namespace where PodSecurity enforces what ours only warns of: TiDB pods of v1.6's kind are not that careful."""
    with real.namespace() as name:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        real.client.patch(NAMESPACES, name, "", {"metadata": {"labels": labels}})
        for directory in _DIRECTORIES:
            account = {"metadata": {"name": _pod(directory)["spec"]["serviceAccountName"]}}
            real.client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount"} | account, name)
        await_refusal(real.client, PODS, _careless("operator"), name, "PodSecurity")
        yield name


def _pod(directory: str) -> Json:
    (deployment,) = _documents("Deployment", directory)
    template: Json = deployment["spec"]["template"]
    return {"apiVersion": "v1", "kind": "Pod"} | template | {"metadata": {"name": directory}}


def _careless(directory: str) -> Json:
    pod = _pod(directory)
    pod["spec"]["hostNetwork"] = True
    return pod


@pytest.mark.parametrize("directory", _DIRECTORIES)
def test_the_pods_are_allowed_where_pod_security_is_restricted(real: Place, restricted: str, directory: str) -> None:
    made = would_accept(real.client, PODS, _pod(directory), restricted)
    assert [{"memory"}] * len(made["spec"]["containers"]) == [
        set(each["resources"]["limits"]) for each in made["spec"]["containers"]
    ]
    with pytest.raises(Forbidden, match="violates PodSecurity"):
        would_accept(real.client, PODS, _careless(directory), restricted)


@pytest.fixture
def enforced(real: Place) -> Iterator[Client]:
    """The operator's own namespace, with pods of its Deployment alone and PodSecurity enforced (docs/security.md)."""
    label = "pod-security.kubernetes.io/enforce"
    real.client.patch(NAMESPACES, OPERATOR_NAMESPACE, "", {"metadata": {"labels": {label: "restricted"}}})
    await_refusal(real.client, PODS, _careless("operator"), OPERATOR_NAMESPACE, "PodSecurity")
    yield real.client
    real.client.patch(NAMESPACES, OPERATOR_NAMESPACE, "", {"metadata": {"labels": {label: None}}})
    _remove_deployment(real.client)


def _remove_deployment(client: Client) -> None:
    with contextlib.suppress(NotFound):
        client.delete(DEPLOYMENTS, SERVICE_ACCOUNT, OPERATOR_NAMESPACE, propagation="Background")
    eventually(lambda: not client.list_page(PODS, OPERATOR_NAMESPACE).items)


def _await_rollout(client: Client, replicas: int) -> None:
    """Wait as `kubectl rollout status` does."""

    def is_through() -> bool:
        tree = client.get(DEPLOYMENTS, SERVICE_ACCOUNT, OPERATOR_NAMESPACE).decode()
        status, generation = tree["status"], tree["metadata"]["generation"]
        counts = {status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")}
        return (generation, {replicas}) == (status.get("observedGeneration"), counts)

    eventually(is_through, 60.0)


@pytest.fixture
def place(real: Place) -> Place:
    """Only a real API server has PodSecurity."""
    return real


@pytest.mark.rule("12.1")
def test_a_cluster_runs_on_while_the_deployment_is_replaced_and_deleted(enforced: Client, namespace: str) -> None:
    (deployment,) = _documents("Deployment")
    enforced.create(DEPLOYMENTS, deployment, OPERATOR_NAMESPACE)
    _await_rollout(enforced, 1)
    create_cluster(enforced, sample("basic"), namespace)
    eventually(lambda: is_ready(enforced, "basic", namespace), 60.0)
    before = _uids(enforced, namespace)

    (newer,) = _documents("Deployment")
    newer["spec"]["replicas"] = 2
    newer["spec"]["template"]["spec"]["containers"][0]["image"] = "tidb-operator-py:next"
    enforced.replace(DEPLOYMENTS, SERVICE_ACCOUNT, OPERATOR_NAMESPACE, newer)
    _await_rollout(enforced, 2)
    enforced.patch(TIDB_CLUSTERS, "basic", namespace, {"spec": {"tidb": {"replicas": 2}}})
    eventually(lambda: _ready_replicas(enforced, namespace) == 2 and is_ready(enforced, "basic", namespace), 60.0)

    _remove_deployment(enforced)
    assert is_ready(enforced, "basic", namespace)
    assert before.items() <= _uids(enforced, namespace).items()


def _ready_replicas(client: Client, namespace: str) -> int:
    """The number of TiDBs that the status counts as ready."""
    status = client.get(TIDB_CLUSTERS, "basic", namespace).decode()["status"]
    count: int = status["tidb"]["statefulSet"].get("readyReplicas", 0)
    return count


def _uids(client: Client, namespace: str) -> dict[str, str]:
    """The UID of each pod of the cluster."""
    return {each.metadata.name: each.metadata.uid for each in client.list_page(PODS, namespace).items}


def test_the_service_reaches_the_pods(real: Place) -> None:
    (service,) = _documents("Service")
    (deployment,) = _documents("Deployment")
    template = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in [each["name"] for each in template["spec"]["containers"][0]["ports"]]
    (policy,) = _documents("NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
