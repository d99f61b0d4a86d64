"""ResourceQuotas as the admission of Kubernetes enforces them."""

from typing import Any

import pytest

from kube.objects import Json
from tests.sandbox.apiserver.calls import Calls

QUOTAS, PODS = "/api/v1/namespaces/default/resourcequotas", "/api/v1/namespaces/default/pods"
CLAIMS, SERVICES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/namespaces/default/services"


def quota(call: Calls, **hard: str) -> None:
    call.made(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {k.replace("_", "."): v for k, v in hard.items()}}})


def pod(name: str, **resources: Any) -> Json:
    container = {"name": "a", "image": "x", "resources": resources}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def claim(name: str, size: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "fast"}
    return {"metadata": {"name": name}, "spec": spec}


def used(call: Calls) -> Json:
    found: Json = call("GET", f"{QUOTAS}/q").tree["status"]["used"]
    return found


def refusal(call: Calls, path: str, body: Json) -> tuple[int, str]:
    answer = call("POST", path, body)
    return answer.code, answer.tree["message"]


def test_the_refusal_of_a_pod_beyond_the_quota_shows_the_used_amount(call: Calls) -> None:
    quota(call, pods="1")
    call.made(PODS, pod("one"))
    what = 'pods "two" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    assert (403, what) == refusal(call, PODS, pod("two"))
    assert {"pods": "1"} == used(call)


def test_a_deleted_object_frees_its_part(call: Calls) -> None:
    quota(call, services="1", services_nodeports="1")
    port = {"metadata": {"name": "one"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    call.made(SERVICES, port)
    assert {"services": "1", "services.nodeports": "1"} == used(call)
    assert 403 == refusal(call, SERVICES, port | {"metadata": {"name": "two"}})[0]
    call("DELETE", f"{SERVICES}/one")
    assert {"services": "0", "services.nodeports": "0"} == used(call)
    call.made(SERVICES, port | {"metadata": {"name": "two"}})


def test_requests_and_limits_of_containers_are_added(call: Calls) -> None:
    quota(call, requests_cpu="1", limits_memory="1Gi")
    call.made(PODS, pod("one", requests={"cpu": "600m"}, limits={"memory": "512Mi", "cpu": "1"}))
    assert {"requests.cpu": "600m", "limits.memory": "512Mi"} == used(call)
    asked, there = "limits.memory=768Mi,requests.cpu=500m", "limits.memory=512Mi,requests.cpu=600m"
    what = f"exceeded quota: q, requested: {asked}, used: {there}"
    status, said = refusal(call, PODS, pod("two", requests={"cpu": "500m"}, limits={"memory": "768Mi", "cpu": "1"}))
    assert (403, f'pods "two" is forbidden: {what}, limited: limits.memory=1Gi,requests.cpu=1') == (status, said)


def test_refuses_a_container_without_a_request_for_a_counted_resource(call: Calls) -> None:
    quota(call, limits_memory="1Gi", cpu="2")
    what = 'pods "one" is forbidden: failed quota: q: must specify cpu for: a; limits.memory for: a'
    assert (403, what) == refusal(call, PODS, pod("one"))


def test_a_claim_counts_its_size_by_class_too(call: Calls) -> None:
    hard = {"requests.storage": "3Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}
    call.made(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    call.made(CLAIMS, claim("one", "2Gi"))
    assert {"requests.storage": "2Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"} == used(call)
    status, said = refusal(call, CLAIMS, claim("two", "2Gi"))
    assert 403 == status
    assert "requested: fast.storageclass.storage.k8s.io/persistentvolumeclaims=1,requests.storage=2Gi" in said


def test_pods_that_have_ended_and_other_namespaces_count_nothing(call: Calls) -> None:
    call.made("/api/v1/namespaces", {"metadata": {"name": "other"}})
    quota(call, pods="1")
    call.made(PODS, pod("one"))
    call.made("/api/v1/namespaces/other/pods", pod("two"))
    call("PATCH", f"{PODS}/one/status", {"status": {"phase": "Succeeded"}}, content_type="application/merge-patch+json")
    assert {"pods": "0"} == used(call)
    call.made(PODS, pod("three"))


@pytest.mark.parametrize(("scope", "counted"), [("BestEffort", "1"), ("NotBestEffort", "0"), ("Terminating", "0")])
def test_a_scope_chooses_the_pods_that_count(call: Calls, scope: str, counted: str) -> None:
    call.made(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}, "scopes": [scope]}})
    call.made(PODS, pod("one"))
    assert {"pods": counted} == used(call)


def test_any_kind_is_counted_by_its_name(call: Calls) -> None:
    quota(call, configmaps="5", **{"count/configmaps": "1"})
    call.made("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "one"}})
    status, said = refusal(call, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "two"}})
    assert (403, True) == (status, "requested: count/configmaps=1, used: count/configmaps=1, limited: " in said)
