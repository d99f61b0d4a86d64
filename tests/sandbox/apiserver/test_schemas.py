"""The definitions of the built-in kinds."""

import pytest

from kube.objects import Json
from kube.resources import Resource
from sandbox.apiserver import schemas
from sandbox.apiserver.import_schemas import extracted
from sandbox.apiserver.kinds import BUILT_IN, Kind
from sandbox.apiserver.refusals import Refusal

_THINGS = Resource("example.com", "v1", "things", "Thing")


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.key)
def test_every_built_in_kind_has_one(kind: Kind) -> None:
    assert {"apiVersion", "kind", "metadata"} <= set(schemas.of(kind.resource)["properties"])


def test_definitions_are_extracted_with_all_they_refer_to() -> None:
    kind = {"group": "example.com", "version": "v1", "kind": "Thing"}
    prefix = "#/components/schemas/"
    parts: Json = {"type": "array", "items": {"allOf": [{"$ref": f"{prefix}a.Part"}], "default": {}}}
    published = {
        "a.Thing": {
            "description": "long text",
            "type": "object",
            "properties": {"parts": parts | {"x-kubernetes-patch-merge-key": "name"}},
            "x-kubernetes-group-version-kind": [kind],
        },
        "a.Part": {"type": "object", "properties": {"self": {"$ref": f"{prefix}a.Part"}}},
        "a.Unused": {"type": "object"},
    }
    found = extracted([{"components": {"schemas": published}}], [_THINGS])
    assert {
        "a.Thing": {
            "type": "object",
            "properties": {
                "parts": {
                    "type": "array",
                    "items": {"$ref": "a.Part"},
                    "x-kubernetes-patch-merge-key": "name",
                }
            },
            "x-kubernetes-group-version-kind": [kind],
        },
        "a.Part": {"type": "object", "properties": {"self": {"$ref": "a.Part"}}},
    } == found


def test_a_resource_missing_from_the_documents_is_an_error() -> None:
    with pytest.raises(KeyError):
        extracted([{"components": {"schemas": {}}}], [_THINGS])


def test_a_quantity_sent_as_a_number_is_stored_as_text() -> None:
    claim = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
    sent: Json = {"spec": {"resources": {"requests": {"storage": 1073741824}}}}
    kept = schemas.prune(sent, schemas.of(claim), "", [])
    assert {"spec": {"resources": {"requests": {"storage": "1073741824"}}}} == kept


def test_a_null_in_a_list_is_the_empty_value_of_its_type() -> None:
    pod = Resource("", "v1", "pods", "Pod")
    sent: Json = {"metadata": {"finalizers": [None]}, "spec": {"containers": [None]}}
    kept = schemas.prune(sent, schemas.of(pod), "", [])
    assert {"metadata": {"finalizers": [""]}, "spec": {"containers": [{}]}} == kept


@pytest.mark.parametrize(
    "spec", [None, {"paused": None}, {"paused": True, "colour": "red"}], ids=["null", "in it", "unknown"]
)
def test_unknown_fields_are_dropped_every_time(spec: Json | None) -> None:
    deployment = Resource("apps", "v1", "deployments", "Deployment")
    every: list[Json] = [{"metadata": {}}, {"spec": spec}, {"spec": spec}]
    told = [(schemas.drop_unknown(sent, deployment), sent.get("spec", "dropped")) for sent in every]
    assert told[1] == told[2]
    assert spec != told[2][1]


def test_a_spec_of_the_wrong_type_is_rejected_every_time() -> None:
    deployment = Resource("apps", "v1", "deployments", "Deployment")
    schemas.drop_unknown({"spec": {"replicas": 1}}, deployment)
    for _ in range(2):
        with pytest.raises(Refusal, match="cannot unmarshal"):
            schemas.drop_unknown({"spec": {"replicas": "1"}}, deployment)
