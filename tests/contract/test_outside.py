"""Paths outside of the API, and the formats of answers."""

import pytest
import yaml

from apis.crd import KINDS
from kube.resources import CONFIG_MAPS, NODES, PODS, SECRETS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from tests.contract.objects import config_map, tidb_cluster
from tests.contract.worlds import Side

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nowhere", ""),
        ("/apis/nowhere.example.com", ""),
        ("/apis/nowhere.example.com/v1", ""),
        ("/apis/nowhere.example.com/v1/things", ""),
        ("/apis/pingcap.com/v9", ""),
        ("/apis/pingcap.com/v9/tidbclusters", ""),
        ("/apis/pingcap.com/v1alpha1/unheard", ""),
        ("/api/v9", "NotFound"),
        ("/api/v9/pods", "NotFound"),
        ("/apis/apps/v9", "NotFound"),
        ("/apis/apps/v9/statefulsets", "NotFound"),
        ("/api/v1/unheard", "NotFound"),
        ("/apis/apps/v1/unheard", "NotFound"),
        ("/api/v1/namespaces/default/unheard", "NotFound"),
        ("/api/v1/namespaces/default/nodes", "NotFound"),
        ("/api/v1/pods/a", "NotFound"),
        ("/api/v1/namespaces/default/configmaps/a/status", "NotFound"),
        ("/api/v1/namespaces/default/pods/a/unheard", "NotFound"),
        ("/api/v1/namespaces/default/configmaps/a", "NotFound"),
        ("/apis/pingcap.com/v1alpha1/namespaces/default/tidbclusters/a/unheard", "NotFound"),
        ("/apis/pingcap.com/v1alpha1/namespaces/default/tidbclusters/a", "NotFound"),
    ],
)
def test_an_unknown_path_is_not_found(world: Side, path: str, reason: str) -> None:
    """Unknown to the server as a whole: plain text. Unknown to a group it serves: a Status."""
    answer = world.send("GET", path)

    content_type = "application/json" if reason else "text/plain; charset=utf-8"
    assert (404, content_type, reason) == (answer.status, answer.content_type, answer.reason)
    assert reason or answer.text == "404 page not found\n"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", CONFIG_MAPS.path("default")),
        ("PATCH", CONFIG_MAPS.path("default")),
        ("POST", CONFIG_MAPS.path("default", "a")),
        ("POST", CONFIG_MAPS.path()),
        ("DELETE", CONFIG_MAPS.path()),
        ("POST", STATEFUL_SETS.path("default", "a", "scale")),
        ("DELETE", STATEFUL_SETS.path("default", "a", "status")),
        ("GET", PODS.path("default", "a", "binding")),
    ],
)
def test_a_method_that_the_resource_lacks_is_not_allowed(world: Side, method: str, path: str) -> None:
    answer = world.send(method, path, None if method == "GET" else {})

    assert (405, "MethodNotAllowed", "application/json") == (answer.status, answer.reason, answer.content_type)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_custom_resource_is_written_by_name(world: Side, method: str) -> None:
    answer = world.send(method, TIDB_CLUSTERS.path("default"), {}, content_type="application/merge-patch+json")

    assert (400, "name must be provided") == (answer.status, answer.tree["message"])


@pytest.mark.parametrize("path", [CONFIG_MAPS.path("default"), TIDB_CLUSTERS.path("default"), "/api/v1", "/apis"])
@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Unheard;v=v1;g=meta.k8s.io", "image/*"])
def test_an_unknown_format_is_not_acceptable(world: Side, path: str, accept: str) -> None:
    answer = world.send("GET", path, accept=accept)

    assert (406, "NotAcceptable", "application/json") == (answer.status, answer.reason, answer.content_type)


def test_an_answer_has_the_first_acceptable_format(world: Side) -> None:
    answer = world.send("GET", CONFIG_MAPS.path("default"), accept="text/html, application/json;q=0.5, */*")

    assert (200, "application/json", "ConfigMapList") == (answer.status, answer.content_type, answer.tree["kind"])


def test_an_answer_may_be_yaml(world: Side) -> None:
    found = world.send("GET", CONFIG_MAPS.path("default"), accept="application/yaml")
    missing = world.send("GET", CONFIG_MAPS.path("default", "unheard"), accept="application/yaml")

    assert (200, "application/yaml") == (found.status, found.content_type)
    assert ("ConfigMapList", "v1") == tuple(yaml.safe_load(found.text)[name] for name in ("kind", "apiVersion"))
    assert (404, "application/yaml") == (missing.status, missing.content_type)
    assert "NotFound" == yaml.safe_load(missing.text)["reason"]


def test_a_body_of_an_unknown_type_is_not_supported(world: Side, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace)

    for method, content_type in (("POST", "text/plain"), ("POST", "application/merge-patch+json")):
        answer = world.send(method, path, config_map("a"), content_type=content_type)
        assert (415, "UnsupportedMediaType") == (answer.status, answer.reason)
    for resource, content_type in (
        (CONFIG_MAPS, "application/json"),
        (CONFIG_MAPS, "text/plain"),
        (TIDB_CLUSTERS, "application/strategic-merge-patch+json"),
    ):
        answer = world.send("PATCH", resource.path(namespace, "a"), {}, content_type=content_type)
        assert (415, "UnsupportedMediaType") == (answer.status, answer.reason)


def test_a_body_may_be_yaml(world: Side, namespace: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: value}\n"

    answer = world.send("POST", CONFIG_MAPS.path(namespace), body, content_type="application/yaml")

    assert (201, {"key": "value"}) == (answer.status, answer.tree["data"])


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"apiVersion":"v1","kind":"Secret"}',
        b'{"apiVersion":"v2","kind":"ConfigMap"}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"other"}}',
    ],
)
def test_a_malformed_body_is_a_bad_request(world: Side, namespace: str, body: bytes) -> None:
    answer = world.send("POST", CONFIG_MAPS.path(namespace), body)

    assert (400, "BadRequest") == (answer.status, answer.reason)


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        (SECRETS, b'{"metadata":{"name":"a"},"data":{"key":"no base64!"}}'),
        (TIDB_CLUSTERS, b'{"metadata":{"name":"a"}}'),
        (TIDB_CLUSTERS, b"{}"),
    ],
    ids=["base64", "typeless", "empty"],
)
def test_a_body_that_is_no_object_of_its_kind_is_a_bad_request(
    world: Side, namespace: str, resource: Resource, body: bytes
) -> None:
    answer = world.send("POST", resource.path(namespace), body)

    assert (400, "BadRequest") == (answer.status, answer.reason)


def test_tables_have_the_same_columns(world: Side, namespace: str) -> None:
    for resource in (PODS, NODES, STATEFUL_SETS, CONFIG_MAPS):
        answer = world.send("GET", resource.path(namespace), accept=_TABLE)
        assert (200, "Table", "meta.k8s.io/v1") == (answer.status, answer.tree["kind"], answer.tree["apiVersion"])
        assert "Name" == answer.tree["columnDefinitions"][0]["name"]
    answer = world.send("GET", TIDB_CLUSTERS.path(namespace), accept=_TABLE)
    assert ["Name", "Ready", "PD"] == [column["name"] for column in answer.tree["columnDefinitions"]][:3]


def test_metadata_is_served_without_the_rest(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a", key="value"), namespace)

    one = world.send("GET", CONFIG_MAPS.path(namespace, "a"), accept=_METADATA)
    many = world.send("GET", CONFIG_MAPS.path(namespace), accept=_METADATA_LIST)

    assert {"kind", "apiVersion", "metadata"} == one.tree.keys()
    assert ("PartialObjectMetadata", "meta.k8s.io/v1") == (one.tree["kind"], one.tree["apiVersion"])
    assert "PartialObjectMetadataList" == many.tree["kind"]
    assert "data" not in many.tree["items"][0]


def test_items_of_built_in_lists_carry_no_type(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)
    world.client.create(TIDB_CLUSTERS, tidb_cluster("a"), namespace)

    built_in = world.send("GET", CONFIG_MAPS.path(namespace)).tree["items"][0]
    custom = world.send("GET", TIDB_CLUSTERS.path(namespace)).tree["items"][0]

    assert ("kind" in built_in, "kind" in custom) == (False, True)


def test_an_unknown_token_is_unauthorized(world: Side) -> None:
    with world.reached_with("forged") as stranger:
        answer = stranger.send("GET", PODS.path())

    assert (401, "Unauthorized", 401) == (answer.status, answer.reason, answer.tree["code"])


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_health_is_ok(world: Side, path: str) -> None:
    answer = world.send("GET", path)

    assert (200, "text/plain; charset=utf-8", "ok") == (answer.status, answer.content_type, answer.text)


def test_versions_and_groups_are_listed(world: Side) -> None:
    assert ("1", "36") == tuple(world.send("GET", "/version").tree[name] for name in ("major", "minor"))
    assert ["v1"] == world.send("GET", "/api").tree["versions"]
    groups = {group["name"] for group in world.send("GET", "/apis").tree["groups"]}
    assert {"apps", "batch", "pingcap.com", "coordination.k8s.io", "apiextensions.k8s.io"} <= groups
    resources = {each["name"]: each for each in world.send("GET", "/apis/pingcap.com/v1alpha1").tree["resources"]}
    statuses = {f"{kind.plural}/status" for kind in KINDS if kind.status_subresource}
    assert {kind.plural for kind in KINDS} | statuses | {"tidbclusters/scale"} == resources.keys()
    assert ["tc"] == resources["tidbclusters"]["shortNames"]
