"""`doctor` in front of a real control plane: the words of its scheduler, its controllers and its admission (13).

The pods are run by the sandbox's kubelet; the same plants are in the sandbox in `tests/cli/doctor/test_planted.py`.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from cli.doctor.diagnosis import diagnose
from cli.doctor.facts import Facts
from cli.doctor.finding import Finding
from cli.doctor.reading import read
from kube.client import Client
from kube.objects import Json
from kube.resources import EVENTS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, SECRETS, Resource
from tests.cli.doctor.looking import reasons, shows
from tests.cli.doctor.planting import IN_BOTH, Plant, cluster
from tests.e2e import operators
from tests.e2e.in_force import await_refusal
from tests.e2e.operators import Operator
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import Place, create_cluster

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
LIMITS = Resource("", "v1", "limitranges", "LimitRange")

_POD: Json = {
    "metadata": {"name": "any"},
    "spec": {"containers": [{"name": "pd", "image": "pd", "resources": {"limits": {"cpu": "1"}}}]},
}

_LATER = timedelta(minutes=4)
"""The time for schedulers and provisioners."""

_PATIENCE = 60.0
_OF_LATER = frozenset({"OperatorNotRunning", "NotNoticed", "TwoOperators", "DataPlaneUnreachable"})
"""Findings that appear because the test looks from the future: no Lease was renewed, and PD was not asked again."""


@pytest.mark.rule("13")
def test_finds_planted_causes_on_a_real_control_plane(real: Place) -> None:
    with (
        real.namespace() as namespace,
        real.gate() as gate,
        operators.running(real.new_log(), real.environment(gate)) as operator,
    ):
        for name, plant in IN_BOTH.items():
            plant.before(real.client, namespace, name)
            create_cluster(real.client, cluster(name, plant), namespace)
        for name, plant in IN_BOTH.items():
            found = _await(real, operator, namespace, name, plant)
            shows([each for each in found if each.reason not in _OF_LATER], name, plant)


def _quota(client: Client, namespace: str) -> None:
    body: Json = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    client.create(QUOTAS, body | {"spec": {"hard": {"pods": "1", "count/secrets": "0"}}}, namespace)
    # this quota allows one pod, whose refusal shows when the quota is in force
    await_refusal(client, SECRETS, {"metadata": {"name": "any"}}, namespace, "exceeded quota")


def _limits(client: Client, namespace: str) -> None:
    body: Json = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
    client.create(LIMITS, body | {"spec": {"limits": [{"type": "Container", "max": {"cpu": "500m"}}]}}, namespace)
    await_refusal(client, PODS, _POD, namespace, "maximum cpu usage")


def _standard(client: Client, namespace: str) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.patch(NAMESPACES, namespace, "", {"metadata": {"labels": label}})
    await_refusal(client, PODS, _POD, namespace, "PodSecurity")


def _dead_webhook(client: Client, namespace: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    webhook: Json = {
        "name": "policy.example.com",
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    metadata = {"name": namespace}
    body: Json = {"apiVersion": WEBHOOKS.api_version, "kind": WEBHOOKS.kind, "metadata": metadata}
    client.create(WEBHOOKS, body | {"webhooks": [webhook]})
    await_refusal(client, PODS, _POD, namespace, "failed calling webhook")


_OF_NAMESPACE: Sequence[tuple[str, Callable[[Client, str], None], Plant]] = (
    ("quota", _quota, Plant("QuotaExceeded", object="StatefulSet {name}-pd", field_="ResourceQuota", value="small")),
    ("limits", _limits, Plant("LimitRangeRefuses", object="StatefulSet {name}-pd", field_="spec.pd.limits")),
    (
        "standard",
        _standard,
        Plant("PodSecurityRefuses", object="StatefulSet {name}-pd", field_="spec.pd.podSecurityContext"),
    ),
    (
        "webhook",
        _dead_webhook,
        Plant("WebhookUnreachable", object="StatefulSet {name}-pd", value="policy.example.com"),
    ),
)


@pytest.mark.rule("13")
def test_finds_what_a_real_namespace_forbids(real: Place) -> None:
    with real.gate() as gate, operators.running(real.new_log(), real.environment(gate)) as operator:
        for name, prepare, plant in _OF_NAMESPACE:
            with real.namespace() as namespace:
                prepare(real.client, namespace)
                create_cluster(real.client, cluster(name, plant), namespace)
                found = _await(real, operator, namespace, name, plant)
                shows([each for each in found if each.reason not in _OF_LATER], name, plant)


@pytest.mark.rule("13")
def test_finds_a_volume_that_the_user_deleted(real: Place) -> None:
    lost = Plant("ClaimLost", object="PersistentVolumeClaim pd-{name}-pd-0", field_="spec.volumeName")
    with (
        real.namespace() as namespace,
        real.gate() as gate,
        operators.running(real.new_log(), real.environment(gate)) as operator,
    ):
        create_cluster(real.client, cluster("lost", lost), namespace)
        eventually(lambda: real.client.find(PERSISTENT_VOLUME_CLAIMS, "pd-lost-pd-0", namespace) is not None)
        bound = eventually(lambda: _volume_of(real.client, namespace))
        real.client.delete(PERSISTENT_VOLUMES, bound)
        real.client.patch(PERSISTENT_VOLUMES, bound, "", {"metadata": {"finalizers": None}})
        (finding,) = [each for each in _await(real, operator, namespace, "lost", lost) if each.reason == lost.reason]
        assert (("PersistentVolumeClaim pd-lost-pd-0",), bound) == (finding.objects, finding.value)


def _volume_of(client: Client, namespace: str) -> str:
    """The volume of PD's claim once it is bound; else empty."""
    tree = client.get(PERSISTENT_VOLUME_CLAIMS, "pd-lost-pd-0", namespace).decode()
    bound = (tree.get("status") or {}).get("phase") == "Bound"
    return str(tree["spec"].get("volumeName", "")) if bound else ""


def _await(real: Place, operator: Operator, namespace: str, name: str, plant: Plant) -> Sequence[Finding]:
    """The findings once the cause is among them. Raises AssertionError if it never is."""
    seen: list[Finding] = []
    last: list[Facts] = []

    def is_found() -> bool:
        last[:] = read(real.client, namespace, [name], CLOCK.wall() + _LATER)
        (facts,) = last
        assert {} == facts.unread
        seen[:] = diagnose(facts)
        return plant.reason in reasons(seen)

    def what_was_seen() -> str:
        (facts,) = last
        objects = [facts.status, *(each.get("status") for each in (*facts.stateful_sets, *facts.pods))]
        wanted = f"{plant.reason} of {name} is missing from {seen}"
        return f"{wanted}; statuses {objects}; events {facts.all(EVENTS)}; the operator: {operator.said[-3000:]}"

    eventually(is_found, _PATIENCE, what_was_seen)
    return seen
