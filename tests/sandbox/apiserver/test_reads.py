"""Get and list: selectors, paging, versions."""

import pytest

from tests.sandbox.apiserver.calls import CORE, TABLE, Calls, config_map, pod


def _names(call: Calls, query: str, path: str = f"{CORE}/configmaps") -> list[str]:
    answer = call("GET", f"{path}?{query}")
    assert answer.code == 200, answer.tree
    return [item["metadata"]["name"] for item in answer.tree["items"]]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=pd", ["a", "b"]),
        ("app==pd,tier!=x", ["b"]),
        ("app in (pd, tikv)", ["a", "b", "c"]),
        ("app notin (pd)", ["c", "d"]),
        ("tier", ["a"]),
        ("!app", ["d"]),
        ("size>2", ["c"]),
        ("size<3", ["b"]),
    ],
)
def test_label_selectors(call: Calls, selector: str, names: list[str]) -> None:
    labels = {
        "a": {"app": "pd", "tier": "x"},
        "b": {"app": "pd", "size": "2"},
        "c": {"app": "tikv", "size": "3"},
        "d": {},
    }
    for name, given in labels.items():
        call.made(f"{CORE}/configmaps", {"metadata": {"name": name, "labels": given}})
    quoted = selector.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E")
    assert names == _names(call, f"labelSelector={quoted}")


def test_field_selectors(call: Calls) -> None:
    call.made(f"{CORE}/pods", pod("here", nodeName="n1"))
    call.made(f"{CORE}/pods", pod("there", nodeName="n2"))
    assert ["here"] == _names(call, "fieldSelector=spec.nodeName%3Dn1", "/api/v1/pods")
    assert ["there"] == _names(call, "fieldSelector=status.phase%3DPending,metadata.name!%3Dhere", "/api/v1/pods")
    refused = call("GET", "/api/v1/pods?fieldSelector=spec.foo%3Dn1")
    assert (400, "field label not supported: spec.foo") == (refused.code, refused.tree["message"])


@pytest.mark.rule("LW-2")
def test_pages_show_the_state_of_the_first_page(call: Calls) -> None:
    for name in "abcde":
        call.made(f"{CORE}/configmaps", config_map(name))
    first = call("GET", f"{CORE}/configmaps?limit=2").tree
    call.made(f"{CORE}/configmaps", config_map("bb"))
    second = call("GET", f"{CORE}/configmaps?limit=2&continue={first['metadata']['continue']}").tree
    third = call("GET", f"{CORE}/configmaps?limit=2&continue={second['metadata']['continue']}").tree
    pages = [[item["metadata"]["name"] for item in page["items"]] for page in (first, second, third)]
    assert [["a", "b"], ["c", "d"], ["e"]] == pages
    assert 3 == first["metadata"]["remainingItemCount"]
    assert first["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]
    assert "continue" not in third["metadata"]


@pytest.mark.rule("LW-3")
def test_a_compacted_continue_token_expires_and_offers_an_inconsistent_one(call: Calls) -> None:
    for name in "abc":
        call.made(f"{CORE}/configmaps", config_map(name))
    token = call("GET", f"{CORE}/configmaps?limit=1").tree["metadata"]["continue"]
    call.made(f"{CORE}/configmaps", config_map("bb"))
    call.server.storage.compact()
    expired = call("GET", f"{CORE}/configmaps?limit=1&continue={token}")
    assert (410, "Expired") == (expired.code, expired.tree["reason"])
    assert ["b", "bb", "c"] == _names(call, f"continue={expired.tree['metadata']['continue']}")


@pytest.mark.rule("REF-13")
def test_a_version_from_the_future_is_too_large(call: Calls) -> None:
    answer = call("GET", f"{CORE}/configmaps?resourceVersion=999999")
    assert (504, "Timeout") == (answer.code, answer.tree["reason"])
    assert "ResourceVersionTooLarge" == answer.tree["details"]["causes"][0]["reason"]


def test_resource_version_match_exact_shows_the_past(call: Calls) -> None:
    then = call.made(f"{CORE}/configmaps", config_map("a"))["metadata"]["resourceVersion"]
    call.made(f"{CORE}/configmaps", config_map("b"))
    assert ["a"] == _names(call, f"resourceVersion={then}&resourceVersionMatch=Exact")
    assert ["a", "b"] == _names(call, f"resourceVersion={then}&resourceVersionMatch=NotOlderThan")
    refused = call("GET", f"{CORE}/configmaps?resourceVersionMatch=Exact")
    assert (422, "Invalid") == (refused.code, refused.tree["reason"])


def test_rejects_parameters_that_are_not_numbers(call: Calls) -> None:
    for path in (f"{CORE}/pods?limit=x", f"{CORE}/pods?watch=true&timeoutSeconds=x", f"{CORE}/pods?resourceVersion=x"):
        assert 400 == call("GET", path).code


@pytest.mark.rule("REF-17")
def test_items_of_built_in_kinds_carry_no_kind(call: Calls) -> None:
    call.made(f"{CORE}/configmaps", config_map("a", x="1"))
    listed = call("GET", f"{CORE}/configmaps").tree
    assert ("ConfigMapList", "v1") == (listed["kind"], listed["apiVersion"])
    assert {"metadata", "data"} == set(listed["items"][0])


def test_not_found_names_the_object(call: Calls) -> None:
    answer = call("GET", f"{CORE}/configmaps/nope")
    assert 404 == answer.code
    assert {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "nope" not found',
        "reason": "NotFound",
        "details": {"name": "nope", "kind": "configmaps"},
        "code": 404,
    } == answer.tree


def test_protobuf_falls_back_to_json_only_when_json_is_offered(call: Calls) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    assert 200 == call("GET", f"{CORE}/pods", accept=f"{protobuf},application/json").code
    assert 406 == call("GET", f"{CORE}/pods", accept=protobuf).code


def test_partial_metadata(call: Calls) -> None:
    call.made(f"{CORE}/configmaps", config_map("a", x="1"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = call("GET", f"{CORE}/configmaps", accept=accept).tree
    assert "PartialObjectMetadataList" == listed["kind"]
    assert {"metadata"} == set(listed["items"][0])


def test_tables_show_what_kubectl_prints(call: Calls) -> None:
    body = pod("web-0", nodeName="n1")
    call.made(f"{CORE}/pods", body)
    ready = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}
    call.merged(
        f"{CORE}/pods/web-0/status", {"status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [ready]}}
    )
    table = call("GET", f"{CORE}/pods", accept=TABLE).tree
    names = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert ["Name", "Ready", "Status", "Restarts", "Age"] == names
    expected = ["web-0", "1/1", "Running", "0", "0s", "10.0.0.1", "n1", "<none>", "<none>"]
    assert expected == table["rows"][0]["cells"]
    assert "PartialObjectMetadata" == table["rows"][0]["object"]["kind"]
