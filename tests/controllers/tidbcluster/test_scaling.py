"""Scaling out, and the obstacles to it (lifecycle.md 8.1 to 8.4)."""

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from member.labels import PVC_DEFER_DELETING
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def leave_a_claim_behind(world: OperatorWorld, name: str, **annotations: str) -> None:
    """The claim that a removed member has left."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    world.admin.create(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.3")
def test_pd_scales_out_one_by_one_while_all_members_are_healthy(basic: OperatorWorld) -> None:
    def healthy() -> int:
        members = basic.cluster()["status"]["pd"]["members"].values()
        assert all(member["health"] for member in members)
        return len(members)

    basic.change(pd={"replicas": 3})
    basic.run_until(lambda: basic.replicas("pd") == 2)
    assert 1 == healthy()
    basic.run_until(lambda: basic.replicas("pd") == 3)
    assert 2 == healthy()
    basic.run_until_ready()
    assert 3 == healthy()

    assert [2, 3] == basic.asked_replicas("pd")
    assert "Normal" == basic.cluster()["status"]["pd"]["phase"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.3")
def test_pd_does_not_scale_out_while_a_member_is_unhealthy(basic: OperatorWorld) -> None:
    basic.change(pd={"replicas": 3})
    basic.run_until_ready()
    basic.world.data_plane.hang(NAMESPACE, "basic-pd-2")
    basic.change(pd={"replicas": 4})
    basic.run(90.0)
    assert 3 == basic.replicas("pd")

    basic.world.data_plane.hang(NAMESPACE, "basic-pd-2", hung=False)
    basic.run_until_ready()
    assert 4 == basic.replicas("pd")


@pytest.mark.slow
@pytest.mark.parametrize(("parallelism", "steps"), [(1, [2, 3, 4, 5]), (3, [4, 5])])
@pytest.mark.rule("lifecycle-8.1")
def test_tikv_grows_by_its_parallelism(basic: OperatorWorld, parallelism: int, steps: list[int]) -> None:
    basic.change(tikv={"replicas": 5, "scalePolicy": {"scaleOutParallelism": parallelism}})
    basic.run_until_ready()

    assert steps == basic.asked_replicas("tikv")
    stores = basic.cluster()["status"]["tikv"]["stores"]
    assert {f"basic-tikv-{ordinal}" for ordinal in range(5)} == {store["podName"] for store in stores.values()}


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.1")
def test_scales_out_tidb_without_restarting_a_pod(basic: OperatorWorld) -> None:
    basic.change(tidb={"replicas": 3})
    basic.run_until_ready()
    stateful_set: Json = basic.get(STATEFUL_SETS, "basic-tidb")
    assert (3, {"partition": 3}) == (
        stateful_set["spec"]["replicas"],
        stateful_set["spec"]["updateStrategy"]["rollingUpdate"],
    )
    assert stateful_set["status"]["currentRevision"] == stateful_set["status"]["updateRevision"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.1")
def test_three_components_scale_out_in_parallel(basic: OperatorWorld) -> None:
    basic.change(pd={"replicas": 3}, tikv={"replicas": 3}, tidb={"replicas": 2})
    basic.run_until_ready()
    assert (3, 3, 2) == (basic.replicas("pd"), basic.replicas("tikv"), basic.replicas("tidb"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "claim"), [("tikv", "tikv-basic-tikv-2"), ("pd", "pd-basic-pd-2"), ("tidb", "tidb-log-basic-tidb-2")]
)
@pytest.mark.rule("F32", "#2709")
def test_deletes_a_marked_claim_before_its_pod_starts(world: OperatorWorld, component: str, claim: str) -> None:
    cluster = sample("basic")
    if component == "tidb":
        cluster["spec"]["tidb"]["storageVolumes"] = [{"name": "log", "storageSize": "1Gi", "mountPath": "/log"}]
    world.apply(cluster)
    world.run_until_ready()
    leave_a_claim_behind(world, claim, **{PVC_DEFER_DELETING: "2026-01-01T00:00:00Z"})
    finalizers = {"metadata": {"finalizers": ["example.com/copying"]}}
    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE, finalizers)
    world.change(**{component: {"replicas": 3}})
    world.run(20.0)
    assert 2 == world.replicas(component), "the pod before it may start"
    assert f"{component}: waiting for PersistentVolumeClaim {claim} to be deleted" in world.progressing
    (event,) = world.events("SuccessfulDelete")
    assert f"delete PersistentVolumeClaim {claim} in TidbCluster basic successful" == event["message"]

    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE, {"metadata": {"finalizers": None}})
    world.run_until_ready()
    assert 3 == world.replicas(component)
    assert PVC_DEFER_DELETING not in (world.get(PERSISTENT_VOLUME_CLAIMS, claim)["metadata"].get("annotations") or {})


@pytest.mark.slow
@pytest.mark.parametrize(("component", "claim"), [("tikv", "tikv-basic-tikv-1"), ("pd", "pd-basic-pd-1")])
@pytest.mark.rule("lifecycle-8.4")
def test_leaves_an_unmarked_claim_to_the_user(basic: OperatorWorld, component: str, claim: str) -> None:
    leave_a_claim_behind(basic, claim)
    basic.change(**{component: {"replicas": 2}})
    basic.run(60.0)

    assert 1 == basic.replicas(component)
    progressing = basic.condition("Progressing")
    assert ("False", "StalePVC") == (progressing["status"], progressing["reason"])
    assert f"PersistentVolumeClaim {claim} exists, but pod basic-{component}-1 is not" in progressing["message"]
    (event,) = basic.events("StalePVC")
    assert progressing["message"] == event["message"]

    basic.admin.delete(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE)
    basic.run_until_ready()


@pytest.mark.rule("lifecycle-8.4")
def test_waits_for_a_terminating_claim(basic: OperatorWorld) -> None:
    leave_a_claim_behind(basic, "tikv-basic-tikv-1")
    finalizers = {"metadata": {"finalizers": ["example.com/copying"]}}
    basic.admin.patch(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-1", NAMESPACE, finalizers)
    basic.admin.delete(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-1", NAMESPACE)
    basic.change(tikv={"replicas": 2})
    basic.run_until(lambda: "to be deleted before starting" in basic.condition("Progressing")["message"])
    assert 1 == basic.replicas("tikv")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.4")
def test_a_pod_gets_the_claim_of_its_registered_member_back(basic: OperatorWorld) -> None:
    """As after a manual decrease of the replicas: store and claim still exist."""
    basic.change(tikv={"replicas": 2})
    basic.run_until_ready()
    basic.admin.patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": {"replicas": 1}})
    basic.run_until(lambda: basic.replicas("tikv") == 2)
    basic.run_until_ready()
    assert 2 == len(basic.cluster()["status"]["tikv"]["stores"])
