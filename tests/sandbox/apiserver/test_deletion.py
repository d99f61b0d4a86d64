"""Deletion: preconditions, grace periods, finalizers, emptied containers."""

import pytest

from ports.clock import FakeClock
from ports.transport import Request
from tests.sandbox.apiserver.calls import (
    APPS,
    CORE,
    DEFINITIONS,
    WIDGETS,
    Calls,
    config_map,
    definition,
    pod,
    widget,
    workload,
)

_ONE = f"{CORE}/configmaps/a"


def test_delete_answers_a_status_or_the_object(call: Calls) -> None:
    made = call.made(f"{CORE}/configmaps", config_map("a"))
    answer = call("DELETE", _ONE)
    details = {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert ("Success", details) == (answer.tree["status"], answer.tree["details"])
    assert 404 == call("DELETE", _ONE).code
    call.made(f"{CORE}/pods", pod("p"))
    assert "Pod" == call("DELETE", f"{CORE}/pods/p").tree["kind"]


@pytest.mark.parametrize("precondition", ["uid", "resourceVersion"])
def test_preconditions_must_hold(call: Calls, precondition: str) -> None:
    made = call.made(f"{CORE}/configmaps", config_map("a"))
    wrong = call("DELETE", _ONE, {"preconditions": {precondition: "12345"}})
    assert (409, "Conflict") == (wrong.code, wrong.tree["reason"])
    right = call("DELETE", _ONE, {"preconditions": {precondition: made["metadata"][precondition]}})
    assert 200 == right.code


def test_a_running_pod_is_deleted_by_the_kubelet(call: Calls, clock: FakeClock) -> None:
    call.made(f"{CORE}/pods", pod("p", nodeName="n1", terminationGracePeriodSeconds=10))
    marked = call("DELETE", f"{CORE}/pods/p").tree["metadata"]
    assert ("2026-01-01T00:00:10Z", 10) == (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"])
    clock.step(60)
    again = call("DELETE", f"{CORE}/pods/p").tree["metadata"]
    assert marked == again
    shorter = call("DELETE", f"{CORE}/pods/p", {"gracePeriodSeconds": 3}).tree["metadata"]
    assert ("2026-01-01T00:01:03Z", 3) == (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"])
    assert 200 == call("DELETE", f"{CORE}/pods/p", {"gracePeriodSeconds": 0}).code
    assert 404 == call("GET", f"{CORE}/pods/p").code


@pytest.mark.parametrize("phase", ["", "Succeeded", "Failed"])
def test_a_pod_without_a_node_is_deleted_immediately(call: Calls, phase: str) -> None:
    call.made(f"{CORE}/pods", pod("p", **({"nodeName": "n1"} if phase else {})))
    if phase:
        call.merged(f"{CORE}/pods/p/status", {"status": {"phase": phase}})
    call("DELETE", f"{CORE}/pods/p")
    assert 404 == call("GET", f"{CORE}/pods/p").code


def test_finalizers_hold_an_object_until_the_last_is_gone(call: Calls) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["example.com/x"]
    call.made(f"{CORE}/configmaps", body)
    marked = call("DELETE", _ONE)
    assert (200, True) == (marked.code, "deletionTimestamp" in marked.tree["metadata"])
    last = call.merged(_ONE, {"metadata": {"finalizers": None}})
    assert 200 == last.code
    assert 404 == call("GET", _ONE).code


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
def test_propagation_is_a_finalizer_for_the_garbage_collector(
    call: Calls, policy: str, finalizers: list[str] | None
) -> None:
    call.made(f"{APPS}/statefulsets", workload("web"))
    call("DELETE", f"{APPS}/statefulsets/web", {"propagationPolicy": policy})
    left = call("GET", f"{APPS}/statefulsets/web")
    assert finalizers == left.tree["metadata"].get("finalizers")
    assert (404 if finalizers is None else 200) == left.code


def test_an_unknown_propagation_policy_is_invalid(call: Calls) -> None:
    call.made(f"{CORE}/configmaps", config_map("a"))
    answer = call("DELETE", f"{_ONE}?propagationPolicy=Foo")
    assert (422, "propagationPolicy") == (answer.code, answer.tree["details"]["causes"][0]["field"])


def test_delete_collection_deletes_selected_objects(call: Calls) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"x": "1"})):
        call.made(f"{CORE}/configmaps", {"metadata": {"name": name, "labels": labels}})
    deleted = call("DELETE", f"{CORE}/configmaps?labelSelector=x%3D1").tree["items"]
    assert ["a", "c"] == [item["metadata"]["name"] for item in deleted]
    left = call("GET", f"{CORE}/configmaps").tree["items"]
    assert ["b"] == [item["metadata"]["name"] for item in left]


def test_a_namespace_is_emptied_before_it_is_deleted(call: Calls) -> None:
    call.made("/api/v1/namespaces", {"metadata": {"name": "n"}})
    call.made("/api/v1/namespaces/n/configmaps", config_map("a"))
    call.made("/api/v1/namespaces/n/pods", pod("p", nodeName="n1"))
    assert "Terminating" == call("DELETE", "/api/v1/namespaces/n").tree["status"]["phase"]
    assert 404 == call("GET", "/api/v1/namespaces/n/configmaps/a").code
    refused = call("POST", "/api/v1/namespaces/n/configmaps", config_map("b"))
    assert (403, "NamespaceTerminating") == (refused.code, refused.tree["details"]["causes"][0]["reason"])
    assert "Terminating" == call("GET", "/api/v1/namespaces/n").tree["status"]["phase"]
    call("DELETE", "/api/v1/namespaces/n/pods/p", {"gracePeriodSeconds": 0})
    assert 404 == call("GET", "/api/v1/namespaces/n").code


def test_deleting_a_definition_deletes_its_objects(call: Calls) -> None:
    call.made(DEFINITIONS, definition({"type": "object"}))
    call.made(WIDGETS, widget("w"))
    call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert [] == call.server.storage.objects("widgets.example.com")
    assert 404 == call.server.handle("x", _get(WIDGETS)).status


def test_eviction_respects_a_used_up_budget(call: Calls) -> None:
    body = pod("p")
    body["metadata"]["labels"] = {"app": "pd"}
    call.made(f"{CORE}/pods", body)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    call.made(budgets, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "pd"}}}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    refused = call("POST", f"{CORE}/pods/p/eviction", eviction)
    assert (429, "DisruptionBudget") == (refused.code, refused.tree["details"]["causes"][0]["reason"])
    call.merged(f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1}})
    assert 201 == call("POST", f"{CORE}/pods/p/eviction", eviction).code
    assert 404 == call("GET", f"{CORE}/pods/p").code
    assert 0 == call("GET", f"{budgets}/b").tree["status"]["disruptionsAllowed"]


def _get(path: str) -> Request:
    return Request("GET", path)
