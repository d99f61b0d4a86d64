"""Problems of the operator's admission webhook, which nothing else shows while its `failurePolicy` is Ignore."""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from apis.times import stamp
from cli.doctor.facts import ENDPOINT_SLICES, Facts, name_of
from cli.doctor.finding import Cause, Severity, Sign
from dataplane.certificates import BadCertificate, end_of_trust
from kube.objects import Json
from kube.resources import VALIDATING_WEBHOOK_CONFIGURATIONS

_OF_SERVICE = "kubernetes.io/service-name"

_PATIENCE = timedelta(minutes=2)
"""The time in which a new operator starts and patches its certificate authority into the configuration."""


def services_of(configuration: Json) -> Iterator[tuple[str, str]]:
    """Namespace and name of each Service that a configuration sends reviews to."""
    for webhook in configuration.get("webhooks") or ():
        if service := webhook["clientConfig"].get("service"):
            yield service["namespace"], service["name"]


def selector_of(service: str) -> str:
    """The label selector of the EndpointSlices of a Service."""
    return f"{_OF_SERVICE}={service}"


def _webhooks(facts: Facts) -> Iterator[tuple[str, str, Json]]:
    """The configuration and the path of each webhook that should work by now."""
    for configuration in facts.all(VALIDATING_WEBHOOK_CONFIGURATIONS):
        if facts.lasts(configuration["metadata"].get("creationTimestamp"), _PATIENCE):
            for number, webhook in enumerate(configuration.get("webhooks") or ()):
                title = f"{VALIDATING_WEBHOOK_CONFIGURATIONS.kind} {name_of(configuration)}"
                yield title, f"webhooks[{number}].clientConfig", webhook


def _without_endpoint(facts: Facts) -> Iterator[Sign]:
    """Services without a Ready endpoint, where the user may read EndpointSlices."""
    if not facts.knows(ENDPOINT_SLICES):
        return
    ready = {
        (each["metadata"]["namespace"], each["metadata"]["labels"][_OF_SERVICE])
        for each in facts.all(ENDPOINT_SLICES)
        if any(_is_ready(endpoint) for endpoint in each.get("endpoints") or ())
    }
    for title, path, webhook in _webhooks(facts):
        for namespace, name in services_of({"webhooks": [webhook]}):
            if (namespace, name) not in ready:
                message = f"its Service has no Ready endpoint: {_effect(webhook)}"
                yield Sign(title, message, f"{path}.service", f"{namespace}/{name}")


def _is_ready(endpoint: Json) -> bool:
    """An unknown state counts as Ready, as the API defines."""
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _untrusted(facts: Facts) -> Iterator[Sign]:
    """Certificate authorities that no server can have a valid certificate of."""
    for title, path, webhook in _webhooks(facts):
        bundle = webhook["clientConfig"].get("caBundle") or ""
        if trouble := _trouble_of(bundle, facts.now):
            yield Sign(title, f"its certificate authority {trouble}: {_effect(webhook)}", f"{path}.caBundle")


def _trouble_of(bundle: str, now: datetime) -> str:
    """The end of a sentence about a `caBundle`; empty while one of its authorities is valid."""
    if not bundle:
        return "is not set"
    try:
        end = end_of_trust(base64.b64decode(bundle))
    except binascii.Error as error:
        return f"cannot be read ({error})"
    except BadCertificate as error:
        return error.message
    return f"expired on {stamp(end)}" if end and end <= now else ""


def _effect(webhook: Json) -> str:
    is_open = webhook.get("failurePolicy") == "Ignore"
    return "invalid specs are accepted" if is_open else "every write of the kinds in its rules is refused"


CAUSES = (
    Cause(
        "AdmissionWebhookUnreachable",
        "Get the operator's pods Ready; the Service must select them.",
        _without_endpoint,
        Severity.WARNING,
    ),
    Cause(
        "AdmissionWebhookUntrusted",
        "`kubectl logs` of the operator says why it does not renew it; the flag `-admission-webhook` must name it.",
        _untrusted,
        Severity.WARNING,
    ),
)
