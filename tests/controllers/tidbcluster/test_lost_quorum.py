"""docs/lost-quorum.md, for a PD without any volume left: TiKV's data is kept, under the id that PD had."""

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld, sample

FORCE = "tidb.pingcap.com/force-pd-bootstrap"
PD_PODS = ("basic-pd-0", "basic-pd-1", "basic-pd-2")


@pytest.mark.slow
@pytest.mark.rule("R29")
def test_the_documented_steps_rebuild_pd_around_the_data_of_tikv(world: OperatorWorld) -> None:
    body = sample("basic")
    body["spec"]["pd"]["replicas"] = body["spec"]["tikv"]["replicas"] = 3
    world.apply(body)
    world.run_until_ready()
    before = world.cluster()["status"]
    stores = {store["podName"]: number for number, store in before["tikv"]["stores"].items()}
    claims = uids(world, "tikv-basic-tikv-")

    # 1 to 3: the operator is stopped, and PD's remaining objects are deleted
    for pod in PD_PODS:
        world.admin.delete(PERSISTENT_VOLUME_CLAIMS, f"pd-{pod}", NAMESPACE)
        world.admin.delete(PODS, pod, NAMESPACE)
    world.world.advance(60.0)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is None

    # 4: a new PD may begin
    annotate(world, before["clusterID"])
    world.world.advance(60.0)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    assert str(pd.id) != before["clusterID"]

    # 5: pd-recover
    pd.id = int(before["clusterID"])
    pd.stores._next_id = 100_000
    for pod in (*PD_PODS, *stores):
        world.admin.delete(PODS, pod, NAMESPACE)
    world.world.advance(120.0)

    # 6: the annotation goes, and the operator runs again
    annotate(world, None)
    world.restart()
    world.run_until_ready(within=300.0)
    after = world.cluster()["status"]
    assert before["clusterID"] == after["clusterID"]
    assert stores == {store["podName"]: number for number, store in after["tikv"]["stores"].items()}
    assert claims == uids(world, "tikv-basic-tikv-")


def annotate(world: OperatorWorld, value: str | None) -> None:
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {FORCE: value}}})


def uids(world: OperatorWorld, prefix: str) -> dict[str, str]:
    metas: list[Json] = [each["metadata"] for each in world.every(PERSISTENT_VOLUME_CLAIMS)]
    return {meta["name"]: meta["uid"] for meta in metas if meta["name"].startswith(prefix)}
