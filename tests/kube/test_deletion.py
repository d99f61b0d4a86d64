import pytest

from kube.client import Client
from kube.deletion import Destroyer, LiveObject
from kube.errors import Conflict, NotFound
from kube.objects import Object
from kube.resources import PODS
from tests.kube.fakes import FakeApi, ScriptedTransport, status

PATH = "/api/v1/namespaces/ns/pods/a"
POD = {"metadata": {"name": "a", "namespace": "ns"}}


@pytest.mark.rule("F5")
def test_evidence_comes_only_from_a_live_read() -> None:
    with pytest.raises(TypeError, match="observe"):
        LiveObject(object(), PODS, Object(b'{"metadata":{}}'))


@pytest.mark.rule("F5")
def test_deletes_exactly_the_version_that_was_read_live() -> None:
    api = FakeApi()
    api.put(PATH, POD)
    destroyer = Destroyer(Client(api))

    evidence = destroyer.observe(PODS, "a", "ns")
    assert evidence is not None
    destroyer.delete(evidence)

    assert {} == api.objects
    assert ["GET a", "DELETE a"] == api.calls
    assert api.requests[1].body is not None
    assert b'"uid":"uid-%s","resourceVersion":"1"' % PATH.encode() in api.requests[1].body


@pytest.mark.rule("F3")
def test_a_pod_that_changed_since_is_not_deleted() -> None:
    api = FakeApi()
    api.put(PATH, POD)
    destroyer = Destroyer(Client(api))
    evidence = destroyer.observe(PODS, "a", "ns")
    api.put(PATH, POD)

    assert evidence is not None
    with pytest.raises(Conflict):
        destroyer.delete(evidence)


@pytest.mark.rule("EXP-1")
def test_a_missing_object_counts_as_deleted() -> None:
    api = FakeApi()
    api.put(PATH, POD)
    destroyer = Destroyer(Client(api))
    evidence = destroyer.observe(PODS, "a", "ns")
    api.objects.clear()

    assert evidence is not None
    destroyer.delete(evidence)


@pytest.mark.rule("F1")
def test_an_absent_object_gives_no_evidence() -> None:
    assert Destroyer(Client(FakeApi())).observe(PODS, "a", "ns") is None


@pytest.mark.rule("F1")
def test_an_unknown_resource_does_not_prove_absence() -> None:
    with pytest.raises(NotFound):
        Destroyer(Client(ScriptedTransport([status(404, "NotFound")]))).observe(PODS, "a", "ns")
