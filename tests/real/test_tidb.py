"""A whole real cluster, while a client transfers money."""

import pytest

from kube.objects import Json
from tests.e2e.waiting import eventually
from tests.real.clusters import NAME, Place, RealCluster
from tests.real.test_pd import NEW, OLD, PD
from tests.real.workload import transferring

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("pd-server", "tikv-server", "tidb-server"),
    pytest.mark.timeout(3600),
]

TIKV: Json = {"replicas": 3, "requests": {"storage": "5Gi"}}
TIKV |= {"config": '[storage]\nreserve-space = "0MB"\n[storage.block-cache]\ncapacity = "256MB"\n'}
TIDB = {"replicas": 2}


def whole(place: Place, *, tls: bool = False) -> RealCluster:
    """A cluster of PD, TiKV and TiDB, which soon gives up stores that are down."""
    pd = PD | {"config": '[schedule]\nmax-store-down-time = "30s"\n'}
    cluster = place.create(OLD, tls=tls, pd=pd, tikv=TIKV, tidb=TIDB)
    cluster.waits(within=600.0)
    return cluster


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_cluster_comes_up_and_serves_sql(place: Place, tls: bool) -> None:
    with transferring(whole(place, tls=tls)) as workload:
        eventually(lambda: workload.acknowledged > 20)


def test_an_upgrade_moves_leaders_before_each_restart_of_tikv(place: Place) -> None:
    cluster = whole(place)
    with transferring(cluster) as workload:
        cluster.change(version=NEW)
        cluster.waits(lambda: all(cluster.images(each) == {NEW} for each in ("pd", "tikv", "tidb")), within=900.0)
        eventually(lambda: sum(store.get("leader_count", 0) > 0 for store in cluster.stores()) == 3, 120.0)
        before = workload.acknowledged
        eventually(lambda: workload.acknowledged > before)


def test_each_component_is_scaled_out_and_in(place: Place) -> None:
    cluster = whole(place)
    with transferring(cluster):
        for tikv, tidb in ((4, 3), (3, 1)):
            cluster.change(tikv={"replicas": tikv}, tidb={"replicas": tidb})
            cluster.waits(lambda count=tikv: len(cluster.stores()) == count, within=600.0)  # type: ignore[misc]
            assert tidb == len(cluster.pods("tidb"))


def test_a_setting_of_each_component_reaches_its_servers(place: Place) -> None:
    cluster = whole(place)
    with transferring(cluster):
        before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods("tikv").items()}
        cluster.change(
            tikv={"config": f"{TIKV['config']}[server]\ngrpc-concurrency = 3\n"},
            tidb={"config": "[performance]\nmax-procs = 2\n"},
        )
        cluster.waits(lambda: not before.items() & _uids(cluster, "tikv").items(), within=600.0)


def test_a_store_on_a_lost_machine_is_replaced(place: Place) -> None:
    cluster = whole(place)
    with transferring(cluster):
        heal = cluster.lose_node_of(f"{NAME}-tikv-1")
        eventually(lambda: f"{NAME}-tikv-3" in cluster.pods("tikv"), 300.0, cluster.sentences)
        heal()
        cluster.waits(within=600.0)


def test_a_suspended_cluster_resumes_with_its_data(place: Place) -> None:
    cluster = whole(place)
    with transferring(cluster) as workload:
        eventually(lambda: workload.acknowledged > 20)
    cluster.change(suspendAction={"suspendStatefulSet": True})
    eventually(lambda: not cluster.pods("pd"), 300.0, cluster.sentences)
    cluster.change(suspendAction=None)
    cluster.waits(within=600.0)
    workload.check()


def _uids(cluster: RealCluster, component: str) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in cluster.pods(component).items()}
