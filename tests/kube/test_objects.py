import json
import weakref

import msgspec
import pytest

from kube.objects import Object, secret_data
from kube.resources import LEASES, NODES, PODS, SECRETS

POD = (
    b'{"metadata":{"name":"a","namespace":"ns","uid":"u","labels":{"x":"1"},"futureField":1,'
    b'"managedFields":[{"manager":"kubectl"}],"ownerReferences":['
    b'{"apiVersion":"v1","kind":"A","name":"by","uid":"1"},'
    b'{"apiVersion":"apps/v1","kind":"StatefulSet","name":"s","uid":"2","controller":true}]},"spec":{"unknown":[1]}}'
)


@pytest.mark.rule("KEY-1")
def test_the_key_has_the_namespace_if_there_is_one() -> None:
    assert ("ns/a", "n") == (Object(POD).key, Object(b'{"metadata":{"name":"n"}}').key)


@pytest.mark.rule("KEY-5")
def test_an_object_without_metadata_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="metadata"):
        Object(b"{}")


@pytest.mark.rule("PY-7")
def test_keeps_all_fields_but_managed_fields() -> None:
    tree = Object(POD, "v1", "Pod").decode()

    assert ({"unknown": [1]}, 1, "v1", "Pod") == (
        tree["spec"],
        tree["metadata"]["futureField"],
        tree["apiVersion"],
        tree["kind"],
    )
    assert "managedFields" not in tree["metadata"]


class _Model(msgspec.Struct, frozen=True):
    spec: dict[str, list[int]]


@pytest.mark.rule("PY-7")
def test_trees_are_fresh_and_models_are_shared() -> None:
    pod = Object(POD)

    assert pod.decode() is not pod.decode()
    assert pod.decode_as(_Model) is pod.decode_as(_Model)
    assert pod.decode_as(_Model) is not Object(POD).decode_as(_Model)


def test_does_not_cache_the_content_of_a_secret() -> None:
    secret = Object(b'{"metadata":{"name":"s"},"data":{"password":"cw=="}}')
    data = secret_data(secret)
    kept = weakref.ref(secret)
    del secret

    assert {"password": b"s"} == data
    assert kept() is None


@pytest.mark.parametrize(
    "meta",
    [
        '{"name":"a","managedFields":[{"x":[1]}]}',
        '{"managedFields":[{"x":[1]}],"name":"a"}',
        '{"name": "a", "managedFields": [{"x": [1]}]}',
        '{"annotations":{"x":"\\",\\"managedFields\\":[1]"},"managedFields":[{"x":[1]}],"name":"a"}',
    ],
)
@pytest.mark.rule("INF-30")
def test_removes_managed_fields_in_any_position_and_format(meta: str) -> None:
    inner = json.dumps([{"managedFields": 1}, {"a": 1, "managedFields": [2]}], separators=(",", ":"))
    for text in (f'{{"metadata":{meta},"spec":{inner}}}', f'{{"before":{inner},"metadata":{meta}}}'):
        expected = json.loads(text)
        del expected["metadata"]["managedFields"]
        obj = Object(text.encode())

        assert expected == json.loads(obj.raw)
        assert b"" == bytes(obj.metadata.managed_fields_)


def test_keeps_a_text_that_only_mentions_managed_fields() -> None:
    raw = b'{"metadata":{"name":"a"},"data":{"x":"\\"managedFields\\" and \\"more\\""},"managedFields":1}'

    assert raw == Object(raw).raw


@pytest.mark.rule("F2")
def test_readers_cannot_change_shared_objects() -> None:
    pod = Object(POD)
    pod.decode()["metadata"]["labels"]["x"] = "2"

    assert {"x": "1"} == dict(pod.metadata.labels)
    for view in (pod.metadata.labels, pod.metadata.annotations):
        with pytest.raises(TypeError):
            view["x"] = "2"  # type: ignore[index]
    with pytest.raises(AttributeError):
        pod.metadata.name = "b"  # type: ignore[misc]


def test_the_controller_is_the_owner_that_controls() -> None:
    controller = Object(POD).metadata.controller

    assert controller is not None
    assert ("StatefulSet", "2") == (controller.kind, controller.uid)
    assert Object(b'{"metadata":{}}').metadata.controller is None


def test_resources_know_their_paths() -> None:
    assert "/api/v1/namespaces/ns/pods/a/status" == PODS.path("ns", "a", "status")
    assert "/api/v1/pods" == PODS.path()
    assert "/api/v1/nodes/n" == NODES.path("ignored", "n")
    assert "/apis/coordination.k8s.io/v1/namespaces/ns/leases" == LEASES.path("ns")
    assert "leases.coordination.k8s.io" == str(LEASES)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("../../kube-system/secrets/token", "..%2F..%2Fkube-system%2Fsecrets%2Ftoken"),
        ("..", "%2E%2E"),
        ("a?b#c%2F\n", "a%3Fb%23c%252F%0A"),
        ("é", "%C3%A9"),
        ("system:basic", "system:basic"),
    ],
)
def test_a_path_leads_to_the_named_object_for_any_name(name: str, segment: str) -> None:
    assert f"/api/v1/namespaces/{segment}/secrets/{segment}" == SECRETS.path(name, name)
