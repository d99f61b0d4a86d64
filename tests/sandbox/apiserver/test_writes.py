"""Create, update and patch."""

import pytest

from kube.objects import Json
from ports.transport import Request
from tests.sandbox.apiserver.calls import (
    APPS,
    CORE,
    JSON_PATCH,
    STRATEGIC,
    Calls,
    config_map,
    pod,
    workload,
)

_CONFIG_MAPS = f"{CORE}/configmaps"
_ONE = f"{_CONFIG_MAPS}/a"


def test_create_gives_identity_and_version(call: Calls) -> None:
    made = call.made(_CONFIG_MAPS, config_map("a", x="1"))
    assert "2026-01-01T00:00:00Z" == made["metadata"]["creationTimestamp"]
    assert {"name", "namespace", "uid", "creationTimestamp", "resourceVersion"} == set(made["metadata"])
    again = call("POST", _CONFIG_MAPS, config_map("a"))
    assert (409, "AlreadyExists", 'configmaps "a" already exists') == (
        again.code,
        again.tree["reason"],
        again.tree["message"],
    )


def test_generate_name(call: Calls) -> None:
    body = {"metadata": {"generateName": "job-"}}
    names = {call.made(_CONFIG_MAPS, body)["metadata"]["name"] for _ in range(5)}
    assert 5 == len(names)
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


def test_a_missing_namespace_is_not_found(call: Calls) -> None:
    answer = call("POST", "/api/v1/namespaces/nope/configmaps", config_map("a"))
    assert (404, 'namespaces "nope" not found') == (answer.code, answer.tree["message"])


def test_dry_run_stores_nothing(call: Calls) -> None:
    answer = call("POST", f"{_CONFIG_MAPS}?dryRun=All", config_map("a"))
    assert 201 == answer.code
    assert "resourceVersion" not in answer.tree["metadata"]
    assert 404 == call("GET", _ONE).code


def test_an_outdated_version_conflicts(call: Calls) -> None:
    made = call.made(_CONFIG_MAPS, config_map("a"))
    call.merged(_ONE, {"data": {"x": "1"}})
    for answer in (
        call("PUT", _ONE, made),
        call.merged(_ONE, {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}),
    ):
        assert (409, "Conflict") == (answer.code, answer.tree["reason"])
        assert answer.tree["message"].endswith("please apply your changes to the latest version and try again")


def test_rejects_a_patch_with_another_uid(call: Calls) -> None:
    call.made(_CONFIG_MAPS, config_map("a"))
    answer = call.merged(_ONE, {"metadata": {"uid": "other"}})
    assert (422, "metadata.uid") == (answer.code, answer.tree["details"]["causes"][0]["field"])


def test_a_patch_for_another_version_of_another_uid_is_a_conflict(call: Calls) -> None:
    call.made(_CONFIG_MAPS, config_map("a"))
    answer = call.merged(_ONE, {"metadata": {"uid": "other", "resourceVersion": "1"}})
    assert (409, "Conflict") == (answer.code, answer.tree["reason"])


def test_an_identical_update_is_not_a_write(call: Calls) -> None:
    made = call.made(_CONFIG_MAPS, config_map("a", x="1"))
    assert made == call.merged(_ONE, {"data": {"x": "1"}}).tree
    assert made == call("PUT", _ONE, made).tree


def test_an_update_keeps_what_the_server_owns(call: Calls) -> None:
    made = call.made(_CONFIG_MAPS, config_map("a", x="1"))
    replaced = call("PUT", _ONE, {"metadata": {"name": "a", "creationTimestamp": None}, "data": {"y": "2"}}).tree
    assert made["metadata"]["uid"] == replaced["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"] == replaced["metadata"]["creationTimestamp"]
    assert {"y": "2"} == replaced["data"]


def test_leases_are_only_updated_under_a_version(call: Calls) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    call.made(leases, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    answer = call("PUT", f"{leases}/l", {"metadata": {"name": "l"}})
    assert (422, "metadata.resourceVersion: Invalid value: 0: must be specified for an update") == (
        answer.code,
        answer.tree["message"].partition(" is invalid: ")[2],
    )


def test_status_and_spec_have_separate_endpoints(call: Calls) -> None:
    made = call.made(f"{APPS}/statefulsets", workload("web") | {"status": {"replicas": 7}})
    assert (1, 0) == (made["metadata"]["generation"], made["status"]["replicas"])
    path = f"{APPS}/statefulsets/web"
    through_spec = call.merged(path, {"spec": {"replicas": 3}, "status": {"replicas": 9}}).tree
    assert (2, 3, 0) == (
        through_spec["metadata"]["generation"],
        through_spec["spec"]["replicas"],
        through_spec["status"]["replicas"],
    )
    through_status = call.merged(f"{path}/status", {"spec": {"replicas": 5}, "status": {"replicas": 3}}).tree
    assert (2, 3, 3) == (
        through_status["metadata"]["generation"],
        through_status["spec"]["replicas"],
        through_status["status"]["replicas"],
    )


def test_scale(call: Calls) -> None:
    call.made(f"{APPS}/statefulsets", workload("web"))
    path = f"{APPS}/statefulsets/web/scale"
    scale = call("GET", path).tree
    assert ("Scale", 1, "app=web") == (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"])
    assert 4 == call.merged(path, {"spec": {"replicas": 4}}).tree["spec"]["replicas"]
    outdated = call("PUT", path, scale | {"spec": {"replicas": 9}})
    assert (409, 4) == (outdated.code, call("GET", path).tree["spec"]["replicas"])


def test_binding_places_a_pod_once(call: Calls) -> None:
    call.made(f"{CORE}/pods", pod("p"))
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert 201 == call("POST", f"{CORE}/pods/p/binding", binding).code
    placed = call("GET", f"{CORE}/pods/p").tree
    assert ("n1", "PodScheduled") == (placed["spec"]["nodeName"], placed["status"]["conditions"][0]["type"])
    again = call("POST", f"{CORE}/pods/p/binding", binding)
    assert (409, True) == (again.code, 'pod p is already assigned to node "n1"' in again.tree["message"])


def test_json_patch(call: Calls) -> None:
    call.made(_CONFIG_MAPS, config_map("a", x="1"))
    good = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "add", "path": "/data/y", "value": "2"}]
    assert {"x": "1", "y": "2"} == call("PATCH", _ONE, good, content_type=JSON_PATCH).tree["data"]
    bad = [{"op": "test", "path": "/data/x", "value": "other"}]
    assert 422 == call("PATCH", _ONE, bad, content_type=JSON_PATCH).code
    assert 400 == call("PATCH", _ONE, {"data": {}}, content_type=JSON_PATCH).code


def test_strategic_merge_patch_merges_lists_by_key(call: Calls) -> None:
    body = pod("p")
    body["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    call.made(f"{CORE}/pods", body)
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]},
        "spec": {"containers": [{"name": "main", "image": "pingcap/pd:v8.5.3"}]},
    }
    patched = call("PATCH", f"{CORE}/pods/p", patch, content_type=STRATEGIC).tree
    assert ["example.com/b"] == patched["metadata"]["finalizers"]
    assert ["pingcap/pd:v8.5.3"] == [container["image"] for container in patched["spec"]["containers"]]
    assert "File" == patched["spec"]["containers"][0]["terminationMessagePolicy"]


def test_strategic_merge_patch_deletes_and_orders_list_items(call: Calls) -> None:
    ports = [{"name": name, "port": number} for name, number in (("a", 1), ("b", 2), ("c", 3))]
    call.made(f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    patch = {
        "spec": {
            "$setElementOrder/ports": [{"port": 3}, {"port": 1}],
            "ports": [{"port": 2, "$patch": "delete"}],
        }
    }
    patched = call("PATCH", f"{CORE}/services/s", patch, content_type=STRATEGIC).tree
    assert [3, 1] == [port["port"] for port in patched["spec"]["ports"]]


def test_unknown_patch_types_are_415(call: Calls) -> None:
    call.made(_CONFIG_MAPS, config_map("a"))
    for content_type in ("application/apply-patch+cbor", "text/plain"):
        assert 415 == call("PATCH", _ONE, {}, content_type=content_type).code


@pytest.mark.parametrize(("mode", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201)])
def test_unknown_fields_of_built_in_kinds(call: Calls, mode: str, code: int) -> None:
    answer = call("POST", f"{CORE}/pods?fieldValidation={mode}", pod("p", nodename="n1"))
    assert code == answer.code
    if mode == "Strict":
        expected = (
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.nodename"'
        )
        assert expected == answer.tree["message"]
        return
    assert "nodename" not in answer.tree["spec"]
    warning = '299 - "unknown field \\"spec.nodename\\""' if mode == "Warn" else None
    assert warning == answer.headers.get("warning")


def test_rejects_a_field_of_another_type_in_the_words_of_go(call: Calls) -> None:
    answer = call("POST", f"{CORE}/pods", pod("p", terminationGracePeriodSeconds="30"))
    expected = (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field '
        "PodSpec.spec.terminationGracePeriodSeconds of type int64"
    )
    assert (400, expected) == (answer.code, answer.tree["message"])


def test_null_is_absence_in_built_in_kinds(call: Calls) -> None:
    made = call.made(
        f"{CORE}/services",
        {"metadata": {"name": "s", "labels": None}, "spec": {"ports": [{"port": 1}], "selector": None}},
    )
    assert ("labels" in made["metadata"], "selector" in made["spec"]) == (False, False)
    assert 422 == call("POST", f"{CORE}/services", {"metadata": {"name": "t"}, "spec": None}).code


def test_the_body_must_agree_with_the_path(call: Calls) -> None:
    cases = [
        ({"kind": "Secret", "metadata": {"name": "a"}}, "cannot be handled as a ConfigMap"),
        ({"metadata": {"name": "a", "namespace": "other"}}, "does not match the namespace sent on the request"),
    ]
    for body, message in cases:
        answer = call("POST", _CONFIG_MAPS, body)
        assert 400 == answer.code
        assert message in answer.tree["message"]
    call.made(_CONFIG_MAPS, config_map("a"))
    assert 400 == call("PUT", _ONE, config_map("b")).code


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"[" * 100000, "application/json"),
        (b'{"a": ' * 100000, "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"a: &a [*a]", "application/yaml"),
        (b"a: &a [x]\nb: &b [" + b"*a," * 5000 + b"]\nc: [" + b"*b," * 5000 + b"]", "application/yaml"),
        (b"a: " + b"[" * 5000, "application/yaml"),
        (b"a: " + b"9" * 5000, "application/yaml"),
        (b"a: !!int ''", "application/yaml"),
        (b'a: "\\Uffffffff"', "application/yaml"),
    ],
)
def test_malformed_bytes_are_400(call: Calls, body: bytes, content_type: str) -> None:
    answer = call.server.handle("user", Request("POST", f"{CORE}/configmaps", {"content-type": content_type}, body))
    assert 400 == answer.status


_STATEFUL_SET = f"{APPS}/statefulsets/s"


@pytest.mark.parametrize(
    ("verb", "path", "body", "content_type"),
    [
        ("POST", _CONFIG_MAPS, {"apiVersion": 1, "kind": 2, "metadata": {"name": "b"}}, "application/json"),
        ("DELETE", _ONE, {"preconditions": 5}, "application/json"),
        ("DELETE", _ONE, {"gracePeriodSeconds": "x"}, "application/json"),
        ("PUT", f"{_STATEFUL_SET}/scale", {"spec": {"replicas": "x"}}, "application/json"),
        ("PUT", f"{_STATEFUL_SET}/scale", {"spec": []}, "application/json"),
        ("PATCH", f"{_STATEFUL_SET}/scale", {"spec": {"replicas": "x"}}, "application/merge-patch+json"),
        ("PATCH", _ONE, {"metadata": {"$retainKeys": 3}}, STRATEGIC),
        ("PATCH", _ONE, {"metadata": {"$setElementOrder/finalizers": 5}}, STRATEGIC),
        ("PATCH", _ONE, {"metadata": {"finalizers": ["a.b/c"], "$setElementOrder/finalizers": [{}]}}, STRATEGIC),
        ("PATCH", _ONE, {"metadata": {"finalizers": ["a.b/c"], "$deleteFromPrimitiveList/finalizers": 5}}, STRATEGIC),
    ],
)
def test_values_of_another_type_are_400(call: Calls, verb: str, path: str, body: Json, content_type: str) -> None:
    call.made(_CONFIG_MAPS, config_map("a"))
    call.made(f"{APPS}/statefulsets", workload("s", serviceName="s"))
    assert 400 == call(verb, path, body, content_type=content_type).code
