"""PD never bootstraps a second cluster while data of the first one exists (F40, R01)."""

from typing import Any

import pytest

from apis.identity import FORCE_PD_BOOTSTRAP
from kube.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS, TIDB_CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld, sample

PD_CLAIM, TIKV_CLAIM = "pd-basic-pd-0", "tikv-basic-tikv-0"


def pd_cluster(world: OperatorWorld) -> Any:
    return world.world.data_plane.pd_cluster(NAMESPACE, "basic")


@pytest.fixture
def without_pd_data(basic: OperatorWorld) -> OperatorWorld:
    """The TidbCluster was deleted with PD's volume, and created again over TiKV's."""
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    basic.run_until(lambda: not basic.exists(STATEFUL_SETS, "basic-pd"))
    basic.run(30)
    basic.admin.delete(PERSISTENT_VOLUME_CLAIMS, PD_CLAIM, NAMESPACE)
    basic.run(5)
    basic.apply(sample("basic"))
    return basic


def cluster_id(world: OperatorWorld) -> str:
    """The id that TiKV's claim is labelled with."""
    return str(world.get(PERSISTENT_VOLUME_CLAIMS, TIKV_CLAIM)["metadata"]["labels"]["tidb.pingcap.com/cluster-id"])


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_bootstraps_no_cluster_over_volumes_with_the_id_of_another_one(without_pd_data: OperatorWorld) -> None:
    world = without_pd_data
    world.run(400)

    assert pd_cluster(world) is None
    assert not world.is_ready()
    assert "PDBootstrapRefused" == world.reason()
    assert cluster_id(world) in world.condition("Progressing")["message"]


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_bootstraps_a_cluster_when_the_annotation_abandons_the_data(without_pd_data: OperatorWorld) -> None:
    world, before = without_pd_data, cluster_id(without_pd_data)
    world.run(10)
    annotations = {"metadata": {"annotations": {FORCE_PD_BOOTSTRAP: before}}}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, annotations)
    world.run_until(lambda: world.cluster()["status"].get("clusterID") not in (None, "", before))
    world.admin.delete(PERSISTENT_VOLUME_CLAIMS, TIKV_CLAIM, NAMESPACE)


@pytest.mark.rule("F40")
def test_refuses_a_pd_whose_id_differs_from_the_volumes(basic: OperatorWorld) -> None:
    labels = {"metadata": {"labels": {"tidb.pingcap.com/cluster-id": "7"}}}
    for claim in (PD_CLAIM, TIKV_CLAIM):
        basic.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE, labels)
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"status": {"clusterID": None}}, subresource="status")
    basic.run(40)

    assert "ForeignPDCluster" == basic.reason()
    assert f'{FORCE_PD_BOOTSTRAP}: "7"' in basic.condition("Progressing")["message"]


@pytest.mark.rule("F40", "R27")
def test_restores_an_edited_id_from_the_volumes(basic: OperatorWorld) -> None:
    before = cluster_id(basic)
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"status": {"clusterID": "7"}}, subresource="status")
    basic.run(40)

    assert before == cluster_id(basic)
    assert basic.is_ready()


@pytest.mark.rule("F40")
def test_is_not_ready_while_pd_knows_none_of_the_stores(basic: OperatorWorld) -> None:
    pd = pd_cluster(basic)
    pd.stores.regions.clear()
    basic.run(40)

    assert "StoresUnknown" == basic.reason()
    assert not basic.is_ready()
    assert "1" in basic.cluster()["status"]["tikv"]["stores"]
