"""The address of PD for TiKV and TiDB (objects.md 10.5, dataplane-apis.md 18.17)."""

import pytest

from discovery.asking import Refused
from kube.errors import Forbidden, NotFound, Status
from ports.transport import RequestTimeout
from tests.discovery.worlds import World, cluster

PEERS = {
    "b": {"name": "b", "id": "2", "clientURL": "http://pd-0.pd.pingcap.cluster2.com:2379", "health": True},
    "a": {"name": "a", "id": "1", "clientURL": "http://sick:2379", "health": False},
}
PEER = "pd-0.pd.pingcap.cluster2.com:2379"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("demo-pd:2379", f"demo-pd:2379,{PEER}"),
        ("demo-pd:2379\n", f"demo-pd:2379,{PEER}"),
        ("demo-pd", f"demo-pd,{PEER}"),
        ("http://demo-pd:2379", f"http://demo-pd:2379,http://{PEER}"),
    ],
)
@pytest.mark.rule("objects-10.5")
def test_healthy_peers_are_added(asked: str, expected: str) -> None:
    world = World(cluster(status={"pd": {"peerMembers": PEERS}}))
    assert expected == world.discovery().verify(asked)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("demo-pd:2379", "main-pd-peer.base.svc.m.local:2379"),
        ("https://demo-pd", "https://main-pd-peer.base.svc.m.local:2379"),
    ],
)
@pytest.mark.rule("objects-10.5")
def test_without_its_own_pd_the_referenced_cluster_is_returned(asked: str, expected: str) -> None:
    tc = cluster(pd=None, cluster={"name": "main", "namespace": "base", "clusterDomain": "m.local"})
    assert expected == World(tc).discovery().verify(asked)


@pytest.mark.parametrize("asked", ["", "demo:2379", "-pd:2379", "http://"])
@pytest.mark.rule("objects-10.5")
def test_rejects_other_names(asked: str) -> None:
    with pytest.raises(Refused, match="is not an address"):
        World(cluster()).discovery().verify(asked)


@pytest.mark.parametrize("failure", [RequestTimeout("GET", "/x", "late"), Forbidden(Status(code=403))])
@pytest.mark.rule("dataplane-apis-18.17")
def test_returns_the_argument_while_the_cluster_is_unreadable(failure: Exception) -> None:
    assert "demo-pd:2379" == World(failure).discovery().verify("demo-pd:2379\n")


@pytest.mark.rule("objects-10.5")
def test_an_unknown_cluster_is_an_error() -> None:
    with pytest.raises(NotFound):
        World(NotFound(Status(code=404))).discovery().verify("demo-pd:2379")
