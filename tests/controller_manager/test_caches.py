"""The watch of Secrets: the cached fields, and an operator that may not list them."""

import base64

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_manager.caches import Caches
from controller_manager.process_options import ProcessOptions
from informers.reflector import log_watch_error
from kube.client import Client
from kube.objects import Json
from kube.resources import SECRETS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from tests.kube.fakes import ScriptedTransport, answer, status

_CONTENT = base64.b64encode(b"hunter2").decode()


def _caches(transport: ScriptedTransport, clock: FakeClock) -> Caches:
    return Caches(
        Client(transport),
        clock,
        SeededRandomness(1),
        ProcessOptions(name="tidb", namespace="ns"),
        "ns",
        registry=CollectorRegistry(),
        on_watch_error=log_watch_error,
    )


def test_only_name_uid_and_version_of_a_secret_are_cached(clock: FakeClock) -> None:
    meta: Json = {
        "name": "s",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"owner": "helm"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": _CONTENT},
    }
    listed = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "9"}}
    transport = ScriptedTransport([answer(200, listed | {"items": [{"metadata": meta}]})])
    informer = _caches(transport, clock).secret_metadata.informer_for(SECRETS)
    informer.reflector.step()
    while informer.queued():
        informer.step()
    (kept,) = informer.store.list()
    assert ("ns/s", "u", "7") == (kept.key, kept.metadata.uid, kept.metadata.resource_version)
    assert {"name", "namespace", "uid", "resourceVersion"} == msgspec.json.decode(kept.raw)["metadata"].keys()
    assert "as=PartialObjectMetadataList" in transport.requests[0].headers["accept"]


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_operator_that_may_not_list_secrets_starts_and_says_so_once(clock: FakeClock, rounds: int) -> None:
    caches = _caches(ScriptedTransport(lambda _: status(403, "Forbidden")), clock)
    informer = caches.secret_metadata.informer_for(SECRETS)
    with capture_logs() as logs:
        for _ in range(rounds):
            informer.reflector.step()
    said = [each["event"] for each in logs if "Secrets" in each["event"]]
    assert 1 == len(said)
    assert "for up to five minutes: grant the operator list and watch on secrets" in said[0]
    assert caches.unsynced() is None
    assert [] == caches.missing_after_sync(Stop())
