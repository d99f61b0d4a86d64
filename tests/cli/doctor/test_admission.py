"""The admission webhook: planted in a sandbox that serves its configuration, and found by what the user may read."""

import base64
from collections.abc import Iterator
from datetime import timedelta

import pytest

from cli.doctor.causes import admission
from cli.doctor.diagnosis import diagnose
from cli.doctor.facts import ENDPOINT_SLICES, Facts
from cli.doctor.finding import Finding
from cli.doctor.reading import read
from controller_manager.admission import new_pair
from kube.objects import Json
from kube.resources import VALIDATING_WEBHOOK_CONFIGURATIONS as CONFIGURATIONS
from kube.resources import Resource
from ports.clock import FakeClock
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from sandbox.world import World
from tests.cli.doctor.looking import reasons

NAME, NAMESPACE = "tidb-admission-default-db", "default"
_LATER = timedelta(minutes=5)
_LABELS = {"app.kubernetes.io/name": "tidb-operator", "app.kubernetes.io/component": "controller-manager"}
_NOT_READY, _UNKNOWN = {"ready": False}, dict[str, bool]()


def _definition() -> Json:
    """Built-in kinds of the sandbox do not include the configuration."""
    group, version, plural, kind = "admissionregistration.k8s.io", "v1", CONFIGURATIONS.plural, CONFIGURATIONS.kind
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": group, "scope": "Cluster", "names": names, "versions": versions}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return head | {"metadata": {"name": str(CONFIGURATIONS)}, "spec": spec}


@pytest.fixture(scope="module")
def shared() -> Iterator[World]:
    world = World(FakeClock(), crds=[_definition()])
    yield world
    world.stop()


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    """Tests leave no configuration and no EndpointSlice behind."""
    yield shared
    client = shared.client()
    for resource, namespace in ((CONFIGURATIONS, ""), (ENDPOINT_SLICES, NAMESPACE)):
        for item in client.list_page(resource, namespace).items:
            client.delete(resource, item.metadata.name, namespace)


def plant(
    world: World,
    conditions: Json | None = _UNKNOWN,
    bundle: str | None = None,
    policy: str = "Ignore",
    labels: Json = _LABELS,
) -> None:
    """A configuration, and an endpoint of its Service in these conditions, if any."""
    client = world.client()
    pair = new_pair([f"{NAME}.{NAMESPACE}.svc"], world.clock.wall())
    trusted = base64.b64encode(pair.authorities).decode() if bundle is None else bundle
    service = {"name": NAME, "namespace": NAMESPACE, "path": "/validate"}
    webhook = {"name": "specs", "failurePolicy": policy, "clientConfig": {"service": service, "caBundle": trusted}}
    head = {"apiVersion": CONFIGURATIONS.api_version, "kind": CONFIGURATIONS.kind}
    client.create(CONFIGURATIONS, head | {"metadata": {"name": NAME, "labels": labels}, "webhooks": [webhook]})
    if conditions is not None:
        metadata = {"name": f"{NAME}-x", "labels": {"kubernetes.io/service-name": NAME}}
        endpoint = {"addresses": ["10.0.0.1"], "conditions": conditions}
        slices = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
        client.create(ENDPOINT_SLICES, slices | {"metadata": metadata, "endpoints": [endpoint]}, NAMESPACE)


def known(world: World, later: timedelta = _LATER) -> Facts:
    (facts,) = read(world.client(), NAMESPACE, [], world.clock.wall() + later)
    return facts


def look(world: World, later: timedelta = _LATER) -> list[Finding]:
    return diagnose(known(world, later), admission.CAUSES)


@pytest.mark.parametrize("conditions", [None, _NOT_READY])
@pytest.mark.rule("13.2")
def test_names_a_webhook_without_a_ready_endpoint(world: World, conditions: Json | None) -> None:
    plant(world, conditions)
    (finding,) = look(world)
    assert ("AdmissionWebhookUnreachable", "Warning") == (finding.reason, finding.severity)
    assert (f"ValidatingWebhookConfiguration {NAME}",) == finding.objects
    assert ("webhooks[0].clientConfig.service", f"{NAMESPACE}/{NAME}") == (finding.field, finding.value)
    assert "its Service has no Ready endpoint: invalid specs are accepted" == finding.message


@pytest.mark.parametrize(
    ("bundle", "later", "message"),
    [
        (None, timedelta(days=366), "expired on 20"),
        ("", _LATER, "is not set"),
        ("bm9uZQ==", _LATER, "contains no usable certificate"),
        ("a", _LATER, "cannot be read"),
        ("#", _LATER, "contains no usable certificate"),
    ],
)
@pytest.mark.rule("13.2")
def test_names_a_webhook_whose_authority_verifies_nothing(
    world: World, bundle: str | None, later: timedelta, message: str
) -> None:
    plant(world, bundle=bundle, policy="Fail")
    (finding,) = look(world, later)
    assert ("AdmissionWebhookUntrusted", "webhooks[0].clientConfig.caBundle") == (finding.reason, finding.field)
    assert message in finding.message
    assert finding.message.endswith("every write of the kinds in its rules is refused")


@pytest.mark.rule("13.2")
def test_a_working_webhook_has_no_finding(world: World) -> None:
    plant(world)
    assert [] == look(world) == look(world, timedelta(days=364))


@pytest.mark.rule("13.2")
def test_a_certificate_that_is_trusted_by_itself_is_no_authority_to_judge(world: World) -> None:
    pair = new_pair([f"{NAME}.{NAMESPACE}.svc"], world.clock.wall())
    plant(world, bundle=base64.b64encode(pair.certificate).decode())
    assert [] == look(world, timedelta(days=9999))


@pytest.mark.rule("13.2")
def test_a_webhook_that_was_just_created_may_still_start(world: World) -> None:
    plant(world, None, "")
    assert [] == look(world, timedelta(minutes=1))


@pytest.mark.rule("13.2")
def test_foreign_webhooks_are_not_judged(world: World) -> None:
    plant(world, None, "", labels={})
    assert [] == look(world)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [(CONFIGURATIONS, set[str]()), (ENDPOINT_SLICES, {"AdmissionWebhookUntrusted"})],
    ids=str,
)
@pytest.mark.rule("13")
def test_what_the_user_may_not_read_is_not_called_missing(world: World, resource: Resource, expected: set[str]) -> None:
    plant(world, None, "")
    refusal = Refusal(403, "Forbidden", "you may not")
    heal = world.faults.api_fault(Fault(refusal=refusal), verb="list", resource=str(resource))
    facts = known(world)
    heal()
    assert expected == reasons(diagnose(facts, admission.CAUSES))
    assert resource in facts.unread
