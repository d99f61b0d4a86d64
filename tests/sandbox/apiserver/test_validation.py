"""Rejected objects, and the words of the rejection."""

from typing import Any

import pytest

from kube.objects import Json
from tests.sandbox.apiserver.calls import APPS, CORE, Calls, config_map, pod, workload


def _errors(tree: Json) -> list[str]:
    return [f"{cause['field']}: {cause['message']}" for cause in tree["details"]["causes"]]


@pytest.mark.parametrize("name", ["A", "-a", "a_b", "a" * 254])
def test_names_are_subdomains(call: Calls, name: str) -> None:
    answer = call("POST", f"{CORE}/configmaps", config_map(name))
    assert (422, "Invalid") == (answer.code, answer.tree["reason"])
    assert {"metadata.name"} == {cause["field"] for cause in answer.tree["details"]["causes"]}


def test_several_errors_are_listed_in_one_message(call: Calls) -> None:
    answer = call("POST", f"{APPS}/statefulsets", {"metadata": {"name": "s"}, "spec": {"template": {}}})
    expected = (
        'StatefulSet.apps "s" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid '
        "value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]"
    )
    assert expected == answer.tree["message"]


def test_labels_are_checked(call: Calls) -> None:
    answer = call("POST", f"{CORE}/configmaps", {"metadata": {"name": "a", "labels": {"ok": "not ok"}}})
    assert (422, True) == (answer.code, 'metadata.labels: Invalid value: "not ok"' in answer.tree["message"])


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ({"replicas": 3, "minReadySeconds": 5, "updateStrategy": {"rollingUpdate": {"partition": 2}}}, 200),
        ({"revisionHistoryLimit": 2, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}, 200),
        ({"serviceName": "other"}, 422),
        ({"podManagementPolicy": "Parallel"}, 422),
    ],
)
def test_most_of_a_stateful_set_is_immutable(call: Calls, patch: Json, code: int) -> None:
    call.made(f"{APPS}/statefulsets", workload("web", serviceName="web"))
    answer = call.merged(f"{APPS}/statefulsets/web", {"spec": patch})
    assert code == answer.code
    if code == 422:
        assert _errors(answer.tree)[0].startswith("spec: Forbidden: updates to statefulset spec for fields other than")


def test_selectors_are_immutable(call: Calls) -> None:
    call.made(f"{APPS}/deployments", workload("web"))
    change = {"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}}
    answer = call.merged(f"{APPS}/deployments/web", change)
    assert 422 == answer.code
    assert _errors(answer.tree)[0].endswith("field is immutable")


def test_only_images_of_a_pod_may_change(call: Calls) -> None:
    call.made(f"{CORE}/pods", pod("p"))
    image = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    assert 422 == call.merged(f"{CORE}/pods/p", image).code, "a merge patch replaces the list and its defaults"
    changed = call("GET", f"{CORE}/pods/p").tree
    changed["spec"]["containers"][0]["image"] = "other"
    assert 200 == call("PUT", f"{CORE}/pods/p", changed).code
    answer = call.merged(f"{CORE}/pods/p", {"spec": {"dnsPolicy": "Default"}})
    assert (422, ["spec"]) == (answer.code, [cause["field"] for cause in answer.tree["details"]["causes"]])


def _claim(**spec: Any) -> Json:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}


def test_claims_grow_only_when_bound(call: Calls) -> None:
    path = f"{CORE}/persistentvolumeclaims"
    call.made(path, _claim())
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert 422 == call.merged(f"{path}/c", larger).code
    assert 200 == call.merged(f"{path}/c", {"spec": {"volumeName": "v"}}).code
    # the claim's phase is not Bound
    assert 403 == call.merged(f"{path}/c", larger).code
    assert 422 == call.merged(f"{path}/c", {"spec": {"volumeName": "other"}}).code


def test_services_need_ports_with_names(call: Calls) -> None:
    ports = [{"port": 1}, {"port": 2}]
    answer = call("POST", f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    expected = ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"]
    assert expected == _errors(answer.tree)
    answer = call("POST", f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {}})
    assert ["spec.ports: Required value"] == _errors(answer.tree)


def test_a_cluster_ip_cannot_change(call: Calls) -> None:
    call.made(f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    answer = call.merged(f"{CORE}/services/s", {"spec": {"clusterIP": "10.96.3.3", "clusterIPs": None}})
    assert ['spec.clusterIPs[0]: Invalid value: ["10.96.3.3"]: may not change once set'] == _errors(answer.tree)


def test_definitions_are_checked(call: Calls) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    columns = [{"name": "X", "type": "string", "jsonPath": ".spec[?("}]
    version = {"name": "v1", "served": True, "additionalPrinterColumns": columns}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"metadata": {"name": "widget.example.com"}, "spec": spec}
    answer = call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    expected = {
        "metadata.name",
        "spec.versions",
        "spec.versions[0].schema.openAPIV3Schema",
        "spec.versions[0].additionalPrinterColumns[0].jsonPath",
    }
    assert expected == {cause["field"] for cause in answer.tree["details"]["causes"]}
