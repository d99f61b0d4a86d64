"""The column STATUS shows why pods do not start, in the words of the API server itself."""

from collections.abc import Callable
from functools import partial

import pytest

from kube.client import Client
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from tests.e2e import operators
from tests.e2e.in_force import await_refusal
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, conditions, create_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.controlplane]

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


def _quota(client: Client, namespace: str) -> None:
    body: Json = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    client.create(QUOTAS, body | {"spec": {"hard": {"count/persistentvolumeclaims": "0"}}}, namespace)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "any"}, "spec": spec}
    await_refusal(client, PERSISTENT_VOLUME_CLAIMS, claim, namespace, "exceeded quota")


def _policy(client: Client, namespace: str) -> None:
    """Refuses pods as a webhook would: the API server words both alike."""
    group, name = "admissionregistration.k8s.io/v1", f"no-pods-{namespace}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    matched = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    spec: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": matched | {"resourceRules": [rule]},
        "validations": [{"expression": "!object.metadata.name.startsWith('basic-pd')", "message": "no PD here"}],
    }
    metadata = {"name": name}
    policy = {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}
    client.create(POLICIES, policy)
    bound = {"policyName": name, "validationActions": ["Deny"]}
    binding = {"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": bound}
    client.create(BINDINGS, binding)
    pod = {"metadata": {"name": "basic-pd-0"}, "spec": {"containers": [{"name": "pd", "image": "pd"}]}}
    await_refusal(client, PODS, pod, namespace, "no PD here")


def _secret(tree: Json) -> None:
    tree["spec"]["pd"]["additionalVolumes"] = [{"name": "extra", "secret": {"secretName": "nope"}}]
    tree["spec"]["pd"]["additionalVolumeMounts"] = [{"name": "extra", "mountPath": "/extra"}]


@pytest.mark.parametrize(
    ("prepare", "cause"),
    [(_quota, "exceeded quota: small"), (_policy, "denied request: no PD here")],
    ids=["quota", "admission"],
)
def test_names_what_refuses_a_pod(real: Place, prepare: Callable[[Client, str], None], cause: str) -> None:
    with real.namespace() as namespace:
        prepare(real.client, namespace)
        said = _ready_says(real, sample("basic"), namespace, cause)
    assert "waiting for basic-pd-0 (FailedCreate: " in said


@IN_ONE_WORLD
def test_a_secret_that_is_missing_is_named(place: Place, namespace: str) -> None:
    tree = sample("basic")
    _secret(tree)
    said = _ready_says(place, tree, namespace, 'secret "nope" not found')
    assert "waiting for basic-pd-0 (FailedMount: " in said


def _ready_says(place: Place, tree: Json, namespace: str, cause: str) -> str:
    """The message of Ready that names a cause."""
    client = place.client
    with place.gate() as gate, operators.running(place.new_log(), place.environment(gate)):
        create_cluster(client, tree, namespace)
        told = partial(conditions, client, "basic", namespace)
        (found,) = eventually(
            lambda: [each for each in told() if each.startswith("Ready=") and cause in each], 60.0, told
        )
        return found
