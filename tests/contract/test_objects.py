"""Create, get, list, patch, replace, delete, and what happens when two write at once."""

from typing import Any

import pytest

from kube.client import JSON_PATCH, STRATEGIC_MERGE_PATCH
from kube.errors import AlreadyExists, ApiError, BadRequest, Conflict, Expired, Invalid, NotFound
from kube.objects import Json
from kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS, SERVICES, STATEFUL_SETS
from tests.contract.bodies import CONTAINER, pods
from tests.contract.objects import claim, config_map, pod
from tests.contract.worlds import Side, eventually


def test_create_answers_201_with_what_the_server_owns(world: Side, namespace: str) -> None:
    answer = world.send("POST", CONFIG_MAPS.path(namespace), config_map("a", key="value"))

    assert (201, "application/json") == (answer.status, answer.content_type)
    assert ("ConfigMap", "v1") == (answer.tree["kind"], answer.tree["apiVersion"])
    meta = answer.tree["metadata"]
    assert {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} == meta.keys() - {"managedFields"}
    assert {"key": "value"} == answer.tree["data"]


def test_a_taken_name_is_refused(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)

    with pytest.raises(AlreadyExists, match='configmaps "a" already exists') as refused:
        world.client.create(CONFIG_MAPS, config_map("a"), namespace)

    assert ("a", "configmaps", "") == (
        refused.value.details.name,
        refused.value.details.kind,
        refused.value.details.group,
    )


def test_generated_names_are_unique(world: Side, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "some-"}}
    names = {world.client.create(CONFIG_MAPS, body, namespace).metadata.name for _ in range(2)}

    assert 2 == len(names)
    assert all(name.startswith("some-") and len(name) == len("some-") + 5 for name in names)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (config_map("Upper_case"), "metadata.name"),
        (config_map("a") | {"metadata": {"name": "a", "labels": {"bad key!": "x"}}}, "metadata.labels"),
        (config_map("a") | {"data": {"no/slash": "x"}}, "data[no/slash]"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, "metadata.name"),
    ],
    ids=["name", "label", "key", "nameless"],
)
def test_invalid_objects_are_refused_by_field(world: Side, namespace: str, body: Json, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        world.client.create(CONFIG_MAPS, body, namespace)

    assert field in [cause.field for cause in refused.value.details.causes]


def test_a_pod_without_containers_is_refused(world: Side, namespace: str) -> None:
    with pytest.raises(Invalid) as refused:
        world.client.create(PODS, pod("a", containers=[]), namespace)

    assert [("FieldValueRequired", "spec.containers")] == [
        (cause.reason, cause.field) for cause in refused.value.details.causes
    ]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("0.5Ki", "512"),
        ("1000Ki", "1000Ki"),
        ("1000000", "1M"),
        ("1500", "1500"),
        ("0.5", "500m"),
        ("1200m", "1200m"),
        ("2000m", "2"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        (3000, "3k"),
    ],
)
def test_quantities_are_stored_in_one_form(world: Side, namespace: str, sent: str | int, kept: str) -> None:
    body = claim("a", resources={"requests": {"storage": sent}})
    answer = world.send("POST", f"{PERSISTENT_VOLUME_CLAIMS.path(namespace)}?dryRun=All", body)
    assert kept == answer.tree["spec"]["resources"]["requests"]["storage"]


def test_an_immutable_field_stays(world: Side, namespace: str) -> None:
    world.client.create(SERVICES, service("a"), namespace)

    with pytest.raises(Invalid, match="may not change once set"):
        world.client.patch(SERVICES, "a", namespace, {"spec": {"clusterIP": "10.96.200.200"}})


def test_an_unknown_namespace_is_not_found(world: Side) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        world.client.create(CONFIG_MAPS, config_map("a"), "nowhere")


def test_a_list_is_cut_into_pages_of_one_version(world: Side, namespace: str) -> None:
    for name in "abc":
        world.client.create(CONFIG_MAPS, config_map(name), namespace)
    eventually(lambda: world.exists(CONFIG_MAPS, "kube-root-ca.crt", namespace))

    first = world.client.list_page(CONFIG_MAPS, namespace, limit=2)
    world.client.create(CONFIG_MAPS, config_map("bb"), namespace)
    second = world.client.list_page(CONFIG_MAPS, namespace, limit=2, continue_token=first.continue_token)

    names = [item.metadata.name for page in (first, second) for item in page.items]
    assert ["a", "b", "c", "kube-root-ca.crt"] == names
    assert (first.resource_version, "") == (second.resource_version, second.continue_token)
    assert all("bb" != name for name in names)


def test_names_are_listed_without_objects(world: Side, namespace: str) -> None:
    for resource, body in ((CONFIG_MAPS, config_map), (PERSISTENT_VOLUME_CLAIMS, claim)):
        for name in ("b", "a"):
            world.client.create(resource, body(name), namespace)
        assert {"a", "b"} <= set(world.client.list_names(resource, namespace))
    assert [] == world.client.list_names(SERVICES, namespace)


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ({"label_selector": "tier=db"}, ["a", "b"]),
        ({"label_selector": "tier in (db),zone!=west"}, ["a"]),
        ({"label_selector": "!tier"}, ["c"]),
        ({"label_selector": "zone"}, ["b"]),
        ({"field_selector": "metadata.name=b"}, ["b"]),
        ({"field_selector": "metadata.name!=b,type=Opaque"}, ["a", "c"]),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_selectors_choose(world: Side, namespace: str, selectors: dict[str, str], expected: list[str]) -> None:
    for name, labels in (("a", {"tier": "db"}), ("b", {"tier": "db", "zone": "west"}), ("c", {})):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}}
        world.client.create(SECRETS, body, namespace)

    found = world.client.list_page(SECRETS, namespace, **selectors)  # type: ignore[arg-type]

    assert expected == [item.metadata.name for item in found.items]


@pytest.mark.parametrize("query", ["labelSelector=a%20b%20c", "fieldSelector=spec.unheardOf%3Da"])
def test_bad_selectors_are_bad_requests(world: Side, namespace: str, query: str) -> None:
    answer = world.send("GET", f"{CONFIG_MAPS.path(namespace)}?{query}")

    assert (400, "BadRequest") == (answer.status, answer.reason)


def test_a_merge_patch_sets_and_removes(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a", one="1", two="2"), namespace)

    patched = world.client.patch(CONFIG_MAPS, "a", namespace, {"data": {"one": None, "three": "3"}})

    assert {"two": "2", "three": "3"} == patched.decode()["data"]


def test_a_json_patch_tests_before_it_writes(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a", one="1"), namespace)

    def patch(expected: str) -> Json:
        steps: list[Json] = [
            {"op": "test", "path": "/data/one", "value": expected},
            {"op": "replace", "path": "/data/one", "value": "2"},
        ]
        return world.client.patch(CONFIG_MAPS, "a", namespace, steps, content_type=JSON_PATCH).decode()

    with pytest.raises(Invalid):
        patch("other")
    assert {"one": "2"} == patch("1")["data"]


def test_a_strategic_merge_patch_merges_lists_by_key(world: Side, namespace: str) -> None:
    world.client.create(SERVICES, service("a"), namespace)
    patch = {"spec": {"ports": [{"port": 81, "name": "second"}]}}

    patched = world.client.patch(SERVICES, "a", namespace, patch, content_type=STRATEGIC_MERGE_PATCH)

    assert {80, 81} == {each["port"] for each in patched.decode()["spec"]["ports"]}


def test_an_update_without_changes_makes_no_new_version(world: Side, namespace: str) -> None:
    before = world.client.create(CONFIG_MAPS, config_map("a", one="1"), namespace).metadata

    after = world.client.patch(CONFIG_MAPS, "a", namespace, {"data": {"one": "1"}}).metadata

    assert before.resource_version == after.resource_version


def test_the_slower_of_two_writers_conflicts(world: Side, namespace: str) -> None:
    read = world.client.create(CONFIG_MAPS, config_map("a"), namespace).decode()
    world.client.patch(CONFIG_MAPS, "a", namespace, {"data": {"by": "another"}})

    with pytest.raises(Conflict, match="the object has been modified"):
        world.client.replace(CONFIG_MAPS, "a", namespace, read | {"data": {"by": "me"}})
    stale = {"metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}, "data": {"by": "me"}}
    with pytest.raises(Conflict):
        world.client.patch(CONFIG_MAPS, "a", namespace, stale)


def test_writes_for_another_uid_or_version_are_refused(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)

    with pytest.raises(Invalid, match="field is immutable"):
        world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"uid": "another"}, "data": {"a": "b"}})
    with pytest.raises(Conflict):
        world.client.delete(CONFIG_MAPS, "a", namespace, uid="another")
    with pytest.raises(Conflict):
        world.client.delete(CONFIG_MAPS, "a", namespace, resource_version="1")
    assert world.exists(CONFIG_MAPS, "a", namespace)


def test_a_replacement_without_a_version_overwrites(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a", one="1"), namespace)

    assert {"two": "2"} == world.client.replace(CONFIG_MAPS, "a", namespace, config_map("a", two="2")).decode()["data"]


def test_dry_run_stores_nothing(world: Side, namespace: str) -> None:
    answer = world.send("POST", f"{CONFIG_MAPS.path(namespace)}?dryRun=All", config_map("a"))

    assert 201 == answer.status
    assert not world.exists(CONFIG_MAPS, "a", namespace)


def test_delete_answers_a_status_or_the_object(world: Side, namespace: str) -> None:
    world.client.create(CONFIG_MAPS, config_map("a"), namespace)
    world.client.create(SERVICES, service("a"), namespace)

    status = world.send("DELETE", CONFIG_MAPS.path(namespace, "a"))
    shown = world.send("DELETE", SERVICES.path(namespace, "a"))
    missing = world.send("DELETE", CONFIG_MAPS.path(namespace, "a"))

    assert (200, "Status", "Success") == (status.status, status.tree["kind"], status.tree["status"])
    assert {"name", "kind", "uid"} == status.tree["details"].keys()
    assert (200, "Service") == (shown.status, shown.tree["kind"])
    assert (404, "NotFound") == (missing.status, missing.reason)


def test_finalizers_keep_an_object_until_the_last_is_gone(world: Side, namespace: str) -> None:
    body = config_map("a") | {"metadata": {"name": "a", "finalizers": ["example.com/one", "example.com/two"]}}
    world.client.create(CONFIG_MAPS, body, namespace)

    world.client.delete(CONFIG_MAPS, "a", namespace)

    kept = world.client.get(CONFIG_MAPS, "a", namespace).metadata
    assert (True, ("example.com/one", "example.com/two")) == (kept.deletion_timestamp is not None, kept.finalizers)
    with pytest.raises(Invalid, match="no new finalizers can be added"):
        world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"finalizers": ["example.com/three"]}})
    world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"finalizers": ["example.com/two"]}})
    assert world.exists(CONFIG_MAPS, "a", namespace)
    world.client.patch(CONFIG_MAPS, "a", namespace, {"metadata": {"finalizers": None}})
    assert not world.exists(CONFIG_MAPS, "a", namespace)


def test_a_collection_is_deleted_by_selector(world: Side, namespace: str) -> None:
    for name, labels in (("a", {"go": "yes"}), ("b", {"go": "no"})):
        body = config_map(name) | {"metadata": {"name": name, "labels": labels}}
        world.client.create(CONFIG_MAPS, body, namespace)

    answer = world.send("DELETE", f"{CONFIG_MAPS.path(namespace)}?labelSelector=go%3Dyes")

    assert (200, "ConfigMapList") == (answer.status, answer.tree["kind"])
    assert (False, True) == tuple(world.exists(CONFIG_MAPS, name, namespace) for name in "ab")


def test_unknown_fields_are_dropped_with_a_warning_or_refused(world: Side, namespace: str) -> None:
    body = pod("a") | {"unheard": "of"}
    path = PODS.path(namespace)

    refused = world.send("POST", f"{path}?fieldValidation=Strict", body)
    dropped = world.send("POST", f"{path}?fieldValidation=Warn", body)

    assert (400, "BadRequest") == (refused.status, refused.reason)
    assert 'strict decoding error: unknown field "unheard"' in refused.tree["message"]
    assert 201 == dropped.status
    assert "unheard" not in dropped.tree


def test_a_map_that_becomes_empty_is_gone(world: Side, namespace: str) -> None:
    body = pod("a") | {"metadata": {"name": "a", "annotations": {"only": "one"}, "labels": {}}}
    created = world.client.create(PODS, body, namespace).decode()
    patch = {"metadata": {"annotations": {"only": None}}}
    patched = world.client.patch(PODS, "a", namespace, patch).decode()

    assert "labels" not in created["metadata"]
    assert "annotations" not in patched["metadata"]


def test_a_version_from_the_future_is_a_timeout(world: Side, namespace: str) -> None:
    answer = world.send("GET", f"{CONFIG_MAPS.path(namespace)}?resourceVersion=99999999999")

    assert (504, "Timeout") == (answer.status, answer.reason)


def test_a_forged_continue_token_is_refused(world: Side, namespace: str) -> None:
    with pytest.raises((BadRequest, Expired)) as refused:
        world.client.list_page(CONFIG_MAPS, namespace, limit=1, continue_token="forged")

    assert (400, "BadRequest") == (refused.value.code, refused.value.reason)


def test_a_service_gets_an_address_of_its_own(world: Side, namespace: str) -> None:
    addresses = {world.client.create(SERVICES, service(name), namespace).decode()["spec"]["clusterIP"] for name in "ab"}

    assert 2 == len(addresses)
    headless = world.client.create(SERVICES, service("c", clusterIP="None"), namespace).decode()["spec"]
    assert ("None", ["None"], "ClusterIP") == (headless["clusterIP"], headless["clusterIPs"], headless["type"])


def test_a_namespace_takes_everything_with_it(world: Side) -> None:
    name = world.new_namespace()
    world.client.create(CONFIG_MAPS, config_map("a"), name)

    answer = world.send("DELETE", f"/api/v1/namespaces/{name}")

    assert (200, "Terminating") == (answer.status, answer.tree["status"]["phase"])
    with pytest.raises(ApiError) as refused:
        world.client.create(CONFIG_MAPS, config_map("b"), name)
    assert refused.value.reason in ("Forbidden", "NotFound")
    eventually(lambda: world.send("GET", f"/api/v1/namespaces/{name}").status == 404)


def service(name: str, **spec: Any) -> Json:
    """A Service with one port."""
    ports = [{"port": 80, "name": "first"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


def test_templates_do_not_get_what_only_pods_get(world: Side, namespace: str) -> None:
    container = {**CONTAINER, "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}
    in_template = pods(hostNetwork=True, containers=[container])
    alone = pod("p", hostNetwork=True, containers=[container])
    made = world.client.create(STATEFUL_SETS, in_template, namespace).decode()["spec"]["template"]["spec"]
    (one,), (other,) = made["containers"], world.client.create(PODS, alone, namespace).decode()["spec"]["containers"]

    assert ({"limits": {"cpu": "1"}}, {"containerPort": 1, "protocol": "TCP"}) == (one["resources"], one["ports"][0])
    assert {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}} == other["resources"]
    assert {"containerPort": 1, "hostPort": 1, "protocol": "TCP"} == other["ports"][0]
