"""Jobs run pods to their end, in both worlds."""

from typing import Any

import pytest

from kube.errors import Invalid
from kube.objects import Json
from kube.resources import JOBS, PODS
from sandbox.apiserver.kinds import INGRESSES
from sandbox.conditions import holds
from tests.contract.bodies import CONTAINER, ingress, job
from tests.contract.worlds import Side, eventually


def script(name: str, text: str, **spec: Any) -> Json:
    """A Job whose pods run a script."""
    body = job(name, **spec)
    body["spec"]["template"]["spec"]["containers"] = [CONTAINER | {"command": ["sh", "-c", text]}]
    return body


def ended(world: Side, namespace: str, body: Json, kind: str) -> Json:
    """The status of a Job once it has ended that way."""
    name = body["metadata"]["name"]
    world.client.create(JOBS, body, namespace)

    def status() -> Json:
        found: Json = world.client.get(JOBS, name, namespace).decode()
        return found if holds(found, kind) else {}

    found: Json = eventually(status)["status"]
    return found


def conditions(status: Json) -> list[tuple[str, str, str]]:
    """Type, reason and message of all conditions."""
    return [(each["type"], each["reason"], each["message"]) for each in status["conditions"]]


def test_a_job_completes_when_enough_pods_have_succeeded(world: Side, namespace: str) -> None:
    status = ended(world, namespace, script("a", "echo done", completions=3, parallelism=2), "Complete")

    why = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert [("SuccessCriteriaMet", *why), ("Complete", *why)] == conditions(status)
    assert (3, 0, 0) == (status["succeeded"], status.get("failed", 0), status.get("active", 0))
    assert {"startTime", "completionTime"} <= status.keys()
    pods = [each.decode() for each in world.client.list_page(PODS, namespace, label_selector="job-name=a").items]
    assert ["Succeeded"] * 3 == [each["status"]["phase"] for each in pods]
    assert [0] * 3 == [each["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for each in pods]


@pytest.mark.slow
def test_a_job_fails_when_too_many_pods_have(world: Side, namespace: str) -> None:
    status = ended(world, namespace, script("a", "exit 3", backoffLimit=1), "Failed")

    why = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert [("FailureTarget", *why), ("Failed", *why)] == conditions(status)
    assert (2, 0) == (status["failed"], status.get("succeeded", 0))


def test_a_job_fails_when_it_takes_too_long(world: Side, namespace: str) -> None:
    status = ended(world, namespace, script("a", "sleep 3600", activeDeadlineSeconds=1), "Failed")

    why = ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert [("FailureTarget", *why), ("Failed", *why)] == conditions(status)


def test_a_finished_job_is_deleted_after_its_time_to_live(world: Side, namespace: str) -> None:
    world.client.create(JOBS, script("a", "true", ttlSecondsAfterFinished=0), namespace)
    eventually(lambda: not world.exists(JOBS, "a", namespace))
    eventually(lambda: not world.client.list_page(PODS, namespace).items)


def pods_of(world: Side, namespace: str, name: str = "a") -> list[Json]:
    """The pods of a Job."""
    return [each.decode() for each in world.client.list_page(PODS, namespace, label_selector=f"job-name={name}").items]


def running(world: Side, namespace: str, body: Json) -> Json:
    """The one pod of a Job, once it runs."""
    world.client.create(JOBS, body, namespace)

    def found() -> Json:
        pods = pods_of(world, namespace)
        return pods[0] if pods and pods[0]["status"].get("phase") == "Running" else {}

    pod: Json = eventually(found)
    return pod


def test_a_pod_names_its_owner(world: Side, namespace: str) -> None:
    body = script("a", "sleep 3600")
    body["spec"]["template"]["metadata"] = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    pod = running(world, namespace, body)
    job_ = world.client.get(JOBS, "a", namespace).decode()

    uid = job_["metadata"]["uid"]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": uid}
    assert [reference | {"controller": True, "blockOwnerDeletion": True}] == pod["metadata"]["ownerReferences"]
    expected = {"app": "x", "job-name": "a", "batch.kubernetes.io/job-name": "a"}
    expected |= {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    assert expected.items() <= pod["metadata"]["labels"].items()
    assert {"note": "y"} == pod["metadata"]["annotations"]
    assert ["batch.kubernetes.io/job-tracking"] == pod["metadata"]["finalizers"]
    assert {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}} == job_["spec"]["selector"]
    assert (1, 0) == (job_["status"]["active"], job_["status"].get("failed", 0))


@pytest.mark.slow
def test_a_pod_that_is_deleted_has_failed(world: Side, namespace: str) -> None:
    """A node and a user who delete the pod have the same effect: with a limit of 0 the Job has failed."""
    pod = running(world, namespace, script("a", "sleep 3600", backoffLimit=0))
    world.client.delete(PODS, pod["metadata"]["name"], namespace)

    def status() -> Json:
        found: Json = world.client.get(JOBS, "a", namespace).decode()
        return found if holds(found, "Failed") else {}

    found: Json = eventually(status)["status"]
    assert ("FailureTarget", "BackoffLimitExceeded") == conditions(found)[0][:2]
    assert 1 == found["failed"]
    eventually(lambda: not pods_of(world, namespace))
    eventually(lambda: not world.client.get(JOBS, "a", namespace).decode()["status"]["uncountedTerminatedPods"])


@pytest.mark.slow
def test_a_pod_that_is_deleted_is_replaced_within_the_limit(world: Side, namespace: str) -> None:
    pod = running(world, namespace, script("a", "sleep 3600", backoffLimit=3))
    world.client.delete(PODS, pod["metadata"]["name"], namespace)

    def replaced() -> bool:
        names = [each["metadata"]["name"] for each in pods_of(world, namespace) if each["status"]["phase"] == "Running"]
        return bool(names) and pod["metadata"]["name"] not in names

    eventually(replaced)
    assert 1 == world.client.get(JOBS, "a", namespace).decode()["status"]["failed"]


@pytest.mark.slow
def test_a_job_deleted_in_the_foreground_is_removed_after_its_pods(world: Side, namespace: str) -> None:
    pod = running(world, namespace, script("a", "sleep 3600"))
    world.client.delete(JOBS, "a", namespace, propagation="Foreground")
    left = world.client.find(JOBS, "a", namespace)
    assert left is None or left.metadata.deletion_timestamp

    def order() -> bool:
        job_ = world.exists(
            JOBS, "a", namespace
        )  # read first: the Job may be deleted in between, and its pod not after it
        return not job_ and not world.exists(PODS, pod["metadata"]["name"], namespace)

    eventually(order)
    assert [] == pods_of(world, namespace)


def test_a_container_is_started_again_in_its_pod_where_the_policy_says_so(world: Side, namespace: str) -> None:
    body = script("a", "exit 3", backoffLimit=1)
    body["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    status = ended(world, namespace, body, "Failed")
    assert ("FailureTarget", "BackoffLimitExceeded") == conditions(status)[0][:2]


def test_a_suspended_job_has_no_pods(world: Side, namespace: str) -> None:
    status = ended(world, namespace, script("a", "true", suspend=True), "Suspended")
    assert [("Suspended", "JobSuspended", "Job suspended")] == conditions(status)
    assert [] == world.client.list_page(PODS, namespace).items


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_that_has_ended_well_stays_ended(world: Side, namespace: str, policy: str) -> None:
    spec = {"restartPolicy": policy, "containers": [CONTAINER | {"command": ["sh", "-c", "true"]}]}
    world.client.create(PODS, {"metadata": {"name": "one"}, "spec": spec}, namespace)

    def phase() -> str:
        found: str = world.client.get(PODS, "one", namespace).decode()["status"].get("phase", "")
        return found

    eventually(lambda: "Succeeded" == phase())


def test_an_ingress_is_kept(world: Side, namespace: str) -> None:
    backend = {"service": {"name": "a", "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    made = world.client.create(INGRESSES, ingress(rules=[{"host": "a.example", "http": {"paths": [path]}}]), namespace)
    patched = world.client.patch(INGRESSES, "a", namespace, {"spec": {"ingressClassName": "nginx"}}).decode()
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}}
    world.client.patch(INGRESSES, "a", namespace, status, subresource="status")
    found = world.client.get(INGRESSES, "a", namespace).decode()

    assert (1, {"loadBalancer": {}}) == (made.decode()["metadata"]["generation"], made.decode()["status"])
    assert (2, "nginx") == (patched["metadata"]["generation"], patched["spec"]["ingressClassName"])
    assert (2, status["status"]) == (found["metadata"]["generation"], found["status"])
    shown = world.send("GET", INGRESSES.path(namespace), accept="application/json;as=Table;v=v1;g=meta.k8s.io").tree
    assert ["Name", "Class", "Hosts", "Address", "Ports"] == [each["name"] for each in shown["columnDefinitions"]][:5]
    assert ["a", "nginx", "a.example", "10.0.0.1", "80"] == shown["rows"][0]["cells"][:5]
    world.client.delete(INGRESSES, "a", namespace)
    assert not world.exists(INGRESSES, "a", namespace)


def shards(text: str, **spec: Any) -> Json:
    """An Indexed Job whose three pods run a script, each index retried by itself."""
    policy = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "maxFailedIndexes": 3}
    return script("a", text, **policy, **{"backoffLimitPerIndex": 0, **spec})


def test_each_pod_of_an_indexed_job_has_its_index(world: Side, namespace: str) -> None:
    status = ended(world, namespace, shards("test $JOB_COMPLETION_INDEX -lt 3"), "Complete")

    why = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert [("SuccessCriteriaMet", *why), ("Complete", *why)] == conditions(status)
    assert ("0-2", "", 3) == (status["completedIndexes"], status["failedIndexes"], status["succeeded"])
    pods = sorted(pods_of(world, namespace), key=lambda each: str(each["metadata"]["name"]))
    key = "batch.kubernetes.io/job-completion-index"
    assert ["0", "1", "2"] == [each["metadata"]["labels"][key] for each in pods]
    assert ["0", "1", "2"] == [each["metadata"]["annotations"][key] for each in pods]
    assert ["a-0", "a-1", "a-2"] == [each["spec"]["hostname"] for each in pods]
    assert ["a-0-", "a-1-", "a-2-"] == [each["metadata"]["generateName"] for each in pods]
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{key}']"}}
    assert [{"name": "JOB_COMPLETION_INDEX", "valueFrom": source}] == pods[0]["spec"]["containers"][0]["env"]
    assert 2**31 - 1 == world.client.get(JOBS, "a", namespace).decode()["spec"]["backoffLimit"]


@pytest.mark.slow
def test_a_failed_index_stops_no_other_and_fails_the_job_at_the_end(world: Side, namespace: str) -> None:
    body = shards('test "$JOB_COMPLETION_INDEX" -ne 1', backoffLimitPerIndex=1)
    status = ended(world, namespace, body, "Failed")

    why = ("FailedIndexes", "Job has failed indexes")
    assert [("FailureTarget", *why), ("Failed", *why)] == conditions(status)
    assert ("0,2", "1", 2, 2) == (
        status["completedIndexes"],
        status["failedIndexes"],
        status["succeeded"],
        status["failed"],
    )
    counts = [
        each["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
        for each in pods_of(world, namespace)
        if each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    ]
    assert ["0", "1"] == sorted(counts)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"completionMode": "NonIndexed"}, "spec.backoffLimitPerIndex"),
        ({"backoffLimitPerIndex": -1}, "spec.backoffLimitPerIndex"),
        ({"backoffLimitPerIndex": None}, "spec.backoffLimitPerIndex"),
        ({"maxFailedIndexes": -1}, "spec.maxFailedIndexes"),
    ],
)
def test_a_limit_for_each_index_needs_indexes(world: Side, namespace: str, spec: Json, field: str) -> None:
    body = shards("true")
    body["spec"] = {key: value for key, value in (body["spec"] | spec).items() if value is not None}
    with pytest.raises(Invalid, match=field.replace(".", r"\.")):
        world.client.create(JOBS, body, namespace)
