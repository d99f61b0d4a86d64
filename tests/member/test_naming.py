"""Names and addresses that depend on the spec (objects.md 8; lifecycle.md 4.1)."""

import pytest

from apis.tidbcluster import TidbCluster
from member.naming import member_host, ordinal_of, pd_member_name, pd_url, pod_name, pvc_name, tidb_status_url
from tests.member.clusters import TLS, cluster


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), "demo-pd-0"),
        (cluster(acrossK8s=True), "demo-pd-0.demo-pd-peer.ns.svc"),
        (cluster(clusterDomain="d.local"), "demo-pd-0.demo-pd-peer.ns.svc.d.local"),
    ],
)
@pytest.mark.rule("4.1")
def test_pd_members_have_long_names_where_networks_meet(tc: TidbCluster, expected: str) -> None:
    assert expected == pd_member_name(tc, "demo-pd-0")


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), "http://demo-pd.ns:2379"),
        (cluster(tlsCluster=TLS, clusterDomain="d.local"), "https://demo-pd.ns.svc.d.local:2379"),
        (cluster(cluster={"name": "base"}), "http://demo-pd.ns:2379"),
        (cluster(without=("pd",), cluster={"name": "base"}), "http://base-pd.ns:2379"),
        (
            cluster(without=("pd",), acrossK8s=True, cluster={"name": "b", "namespace": "o", "clusterDomain": "d"}),
            "http://b-pd-peer.o.svc.d:2379",
        ),
    ],
)
@pytest.mark.rule("8")
def test_the_operator_reaches_pd_at_its_service(tc: TidbCluster, expected: str) -> None:
    assert expected == pd_url(tc)


@pytest.mark.rule("8")
def test_the_operator_reaches_a_tidb_at_its_headless_service() -> None:
    assert "http://demo-tidb-1.demo-tidb-peer.ns:10080" == tidb_status_url(cluster(), "demo-tidb-1")


@pytest.mark.rule("4.1")
def test_names_of_pods_and_claims() -> None:
    pod = pod_name(cluster(), "tikv", 12)
    assert ("demo-tikv-12", 12, "tikv-wal-demo-tikv-12") == (pod, ordinal_of(pod), pvc_name("tikv-wal", pod))
    assert "demo-tikv-12.demo-tikv-peer.ns.svc" == member_host(cluster(), "tikv", pod)
