"""Volume attributes classes of claims (lifecycle.md 10.3); whole clusters are tested with their syncs."""

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.outcome import Done, Refused
from member.volumes.changes import ClaimClass, change_classes
from tests.kube.fakes import FakeApi
from tests.member.deciding import concluded
from tests.member.reconciling import as_object, context

NAME = "tikv-demo-tikv-0"
PATH = PERSISTENT_VOLUME_CLAIMS.path("ns", NAME)


class OldApi(FakeApi):
    """A Kubernetes without VolumeAttributesClass: it drops the field without a word."""

    def put(self, path: str, body: Json) -> Json:
        spec = {key: value for key, value in body.get("spec", {}).items() if key != "volumeAttributesClassName"}
        return super().put(path, body | {"spec": spec})


def claim(api: FakeApi, wanted: str, **changes: bool) -> ClaimClass:
    """A bound claim of the class `slow` for which the spec names another."""
    spec = {"volumeName": "pv", "volumeAttributesClassName": "slow"}
    metadata = {"name": NAME, "namespace": "ns"}
    body = api.put(PATH, {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}})
    return ClaimClass(as_object(body), wanted, "spec.tikv.volumeAttributesClassName", **changes)


@pytest.mark.rule("lifecycle-10.3")
def test_a_claim_requests_the_class() -> None:
    api = FakeApi()
    ctx = context(api)
    assert Done() == concluded(ctx, change_classes([claim(api, "fast")]))
    assert "fast" == api.objects[PATH]["spec"]["volumeAttributesClassName"]


@pytest.mark.parametrize(("wanted", "written"), [("", False), ("slow", False), ("fast", True)])
@pytest.mark.rule("lifecycle-10.3")
def test_leaves_a_claim_alone_that_has_the_class_or_keeps_its_own_or_is_being_written(
    wanted: str, written: bool
) -> None:
    api = FakeApi()
    ctx, each = context(api), claim(api, wanted, written=written)
    assert (Done(), []) == (
        concluded(ctx, change_classes([each])),
        [call for call in api.calls if call.startswith("PATCH")],
    )


@pytest.mark.rule("lifecycle-10.3")
def test_a_kubernetes_without_such_classes_is_reported() -> None:
    api = OldApi()
    each = claim(api, "fast")
    ctx = context(api)
    outcome = concluded(ctx, change_classes([each, each]))
    assert isinstance(outcome, Refused)
    assert f"spec.tikv.volumeAttributesClassName: PersistentVolumeClaim {NAME} does not keep" in outcome.message
    assert 1 == len([call for call in api.calls if call.startswith("PATCH")])
