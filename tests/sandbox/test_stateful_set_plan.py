"""The next actions for a StatefulSet."""

from dataclasses import replace

from kube.objects import Json
from sandbox.controllers.stateful_set_plan import Snapshot, plan, status_of

OLD, NEW = "web-old", "web-new"


def pod(ordinal: int, revision: str = NEW, *, ready: bool = True, deleted: bool = False) -> Json:
    metadata: Json = {"name": f"web-{ordinal}", "labels": {"controller-revision-hash": revision}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "status": {"phase": "Running", "conditions": [condition]}}


def snapshot(pods: dict[int, Json], replicas: int = 3, current: str = NEW, **spec: object) -> Snapshot:
    stateful_set: Json = {"metadata": {"name": "web", "generation": 1}, "spec": {"replicas": replicas, **spec}}
    return Snapshot(stateful_set, pods, current, NEW, now=1_900_000_000.0)


def deleted(planned: Snapshot) -> list[str]:
    return [each["metadata"]["name"] for each in plan(planned).delete]


def test_parallel_creates_all_missing_pods() -> None:
    assert {0: NEW, 2: NEW} == plan(snapshot({1: pod(1)}, podManagementPolicy="Parallel")).create


def test_ordered_ready_creates_one_after_the_other() -> None:
    assert {0: NEW} == plan(snapshot({})).create
    assert {} == plan(snapshot({0: pod(0, ready=False)})).create
    assert {1: NEW} == plan(snapshot({0: pod(0)})).create


def test_scaling_in_removes_the_highest_ordinals() -> None:
    pods = {ordinal: pod(ordinal) for ordinal in range(4)}

    assert ["web-3"] == deleted(snapshot(pods, 2))
    assert ["web-3", "web-2"] == deleted(snapshot(pods, 2, podManagementPolicy="Parallel"))


def test_scaling_in_in_order_waits_for_lower_pods_that_are_not_ready() -> None:
    pods = {0: pod(0), 1: pod(1, ready=False), 2: pod(2)}
    assert ["web-2"] == deleted(snapshot(pods, 1))
    pods[2] = pod(2, ready=False)
    assert [] == deleted(snapshot(pods, 1))
    pods[1] = pod(1)
    assert ["web-2"] == deleted(snapshot(pods, 1))


def test_with_one_unavailable_pod_at_most_no_other_is_replaced() -> None:
    pods = {ordinal: pod(ordinal, OLD, ready=ordinal != 1) for ordinal in range(3)}
    as_ever = snapshot(pods, current=OLD, podManagementPolicy="Parallel")
    assert ["web-2"] == deleted(as_ever)
    assert [] == deleted(replace(as_ever, one_at_most=True))
    pods[1] = pod(1, OLD)
    assert ["web-2"] == deleted(replace(as_ever, one_at_most=True))


def test_an_ended_pod_counts_until_it_is_deleted() -> None:
    ended = pod(1, ready=False) | {"status": {"phase": "Failed"}}
    whole = snapshot({0: pod(0), 1: ended}, 2, podManagementPolicy="Parallel")
    assert (["web-1"], 2) == (deleted(whole), status_of(whole, {})["replicas"])


def test_a_rolling_update_proceeds_to_the_partition_one_healthy_pod_at_a_time() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    pods = {ordinal: pod(ordinal, OLD) for ordinal in range(3)}
    assert ["web-2"] == deleted(snapshot(pods, current=OLD, updateStrategy=strategy))

    pods[2] = pod(2, ready=False)
    assert [] == deleted(snapshot(pods, current=OLD, updateStrategy=strategy))

    pods[2] = pod(2)
    assert ["web-1"] == deleted(snapshot(pods, current=OLD, updateStrategy=strategy))

    pods[1] = pod(1)
    assert [] == deleted(snapshot(pods, current=OLD, updateStrategy=strategy))


def test_a_pod_below_the_partition_is_recreated_on_the_current_revision() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    planned = plan(snapshot({2: pod(2)}, current=OLD, updateStrategy=strategy, podManagementPolicy="Parallel"))

    assert {0: OLD, 1: OLD} == planned.create


def test_on_delete_replaces_nothing_by_itself() -> None:
    pods = {ordinal: pod(ordinal, OLD) for ordinal in range(3)}

    assert [] == deleted(snapshot(pods, current=OLD, updateStrategy={"type": "OnDelete"}))


def test_the_status_completes_when_all_pods_are_updated_and_ready() -> None:
    half = snapshot({0: pod(0, OLD), 1: pod(1), 2: pod(2)}, current=OLD)
    whole = snapshot({ordinal: pod(ordinal) for ordinal in range(3)}, current=OLD)

    assert (OLD, 1, 2) == tuple(status_of(half, {})[key] for key in _COUNTED)
    assert (NEW, 3, 3) == tuple(status_of(whole, {})[key] for key in _COUNTED)


_COUNTED = ("currentRevision", "currentReplicas", "updatedReplicas")


def test_the_status_of_an_advanced_set_completes_although_pods_are_missing() -> None:
    native = snapshot({0: pod(0), 1: pod(1)}, current=OLD)
    advanced = replace(native, stateful_set=native.stateful_set | {"apiVersion": "apps.pingcap.com/v1"})
    assert OLD == status_of(native, {})["currentRevision"]
    assert NEW == status_of(advanced, {})["currentRevision"]
