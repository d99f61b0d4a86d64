"""Server-side apply: managers, conflicts, ownership of fields."""

from typing import Any

import msgspec
import pytest

from kube.client import Client
from kube.errors import ApiError, Conflict, Invalid
from kube.objects import Json
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.apiserver import ApiServer, InProcessTransport
from sandbox.apiserver.applying import MEDIA_TYPE

_PATH = "/apis/apps/v1/namespaces/default/deployments/d"


@pytest.fixture
def client() -> Client:
    return Client(InProcessTransport(ApiServer(FakeClock(), SeededRandomness(1)), "user"))


def _deployment(*containers: Json, **spec: Any) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": list(containers)}}
    body = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": body}


def _container(name: str, image: str = "busybox:1") -> Json:
    return {"name": name, "image": image}


def _apply(client: Client, body: Json, manager: str = "one", query: str = "") -> Json:
    path = f"{_PATH}?fieldManager={manager}{query}"
    answer = client.request("PATCH", path, body=body, content_type=MEDIA_TYPE)
    tree: Json = msgspec.json.decode(answer.body)
    return tree


def _containers(tree: Json) -> list[tuple[str, str]]:
    return [(each["name"], each["image"]) for each in tree["spec"]["template"]["spec"]["containers"]]


def _managers(tree: Json) -> list[tuple[str, str]]:
    return [(each["manager"], each["operation"]) for each in tree["metadata"]["managedFields"]]


def test_creates_a_missing_object(client: Client) -> None:
    tree = _apply(client, _deployment(_container("x"), replicas=2))
    assert (2, [("x", "busybox:1")], [("one", "Apply")]) == (
        tree["spec"]["replicas"],
        _containers(tree),
        _managers(tree),
    )
    fields = tree["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert {"f:replicas", "f:selector", "f:template"} == set(fields)
    (item,) = fields["f:template"]["f:spec"]["f:containers"].items()
    assert ('k:{"name":"x"}', {".": {}, "f:image": {}, "f:name": {}}) == item


def test_applying_the_same_again_changes_nothing(client: Client) -> None:
    first = _apply(client, _deployment(_container("x")))
    assert first == _apply(client, _deployment(_container("x")))


def test_removes_fields_that_a_manager_no_longer_applies(client: Client) -> None:
    _apply(client, _deployment(_container("x"), _container("y"), minReadySeconds=5))
    tree = _apply(client, _deployment(_container("x", "busybox:2")))
    assert [("x", "busybox:2")] == _containers(tree)
    assert "minReadySeconds" not in tree["spec"]


def test_keeps_fields_that_another_manager_also_applies(client: Client) -> None:
    _apply(client, _deployment(_container("x"), minReadySeconds=5))
    _apply(client, _deployment(_container("x"), minReadySeconds=5), "two")
    tree = _apply(client, _deployment(_container("x")))
    assert 5 == tree["spec"]["minReadySeconds"]


def test_a_different_value_for_a_field_of_another_manager_is_a_conflict(client: Client) -> None:
    _apply(client, _deployment(_container("x"), replicas=2))
    with pytest.raises(Conflict) as refused:
        _apply(client, _deployment(_container("x", "busybox:2"), replicas=3), "two")
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflict with "one" using apps/v1: .spec.replicas; '
        'conflict with "one" using apps/v1: .spec.template.spec.containers[name="x"].image'
    )


def test_force_takes_the_field(client: Client) -> None:
    _apply(client, _deployment(_container("x"), replicas=2))
    tree = _apply(client, _deployment(_container("x"), replicas=3), "two", "&force=true")
    assert 3 == tree["spec"]["replicas"]
    with pytest.raises(Conflict, match='conflict with "two"'):
        _apply(client, _deployment(_container("x"), replicas=2))


def test_an_update_by_another_client_takes_the_field(client: Client) -> None:
    _apply(client, _deployment(_container("x"), replicas=2))
    patch: Json = {"spec": {"replicas": 4}}
    path = f"{_PATH}?fieldManager=kubectl-edit"
    client.request("PATCH", path, body=patch, content_type="application/merge-patch+json")
    with pytest.raises(Conflict, match=r'conflict with "kubectl-edit" using apps/v1: \.spec\.replicas'):
        _apply(client, _deployment(_container("x"), replicas=2))


def test_does_not_take_fields_from_before_the_first_apply(client: Client) -> None:
    body = _deployment(_container("x"), replicas=2)
    client.request("POST", _PATH.removesuffix("/d"), body=body, content_type="application/json")
    with pytest.raises(Conflict, match='conflict with "before-first-apply"'):
        _apply(client, _deployment(_container("x"), replicas=3))
    assert ("one", "Apply") in _managers(_apply(client, _deployment(_container("x"), replicas=2)))


def test_a_dry_run_stores_nothing(client: Client) -> None:
    _apply(client, _deployment(_container("x")), query="&dryRun=All")
    with pytest.raises(ApiError, match="not found"):
        client.request("GET", _PATH)


def test_objects_that_were_never_applied_have_no_records(client: Client) -> None:
    body = _deployment(_container("x"))
    client.request("POST", _PATH.removesuffix("/d"), body=body, content_type="application/json")
    tree = msgspec.json.decode(client.request("GET", _PATH).body)
    assert "managedFields" not in tree["metadata"]


def test_an_apply_names_its_manager_and_brings_no_records(client: Client) -> None:
    with pytest.raises(Invalid, match="fieldManager: Required value: is required for apply patch"):
        _apply(client, _deployment(_container("x")), "")
    body = _deployment(_container("x"))
    body["metadata"]["managedFields"] = [{"manager": "me"}]
    with pytest.raises(ApiError, match=r"metadata\.managedFields must be nil"):
        _apply(client, body)
