"""Services (objects.md 2)."""

from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member import discovery
from member.objects.services import keep_allocated
from member.pd import desired as pd
from member.tidb import desired as tidb
from member.tikv import desired as tikv
from tests.member.clusters import cluster, names

USED_BY = "app.kubernetes.io/used-by"


def _port(name: str, number: int, **more: int) -> Json:
    return {"name": name, "port": number, "targetPort": number, "protocol": "TCP"} | more


def _tidb_service(**fields: Any) -> Json:
    return tidb.services(cluster(tidb={"service": fields}))[0]


@pytest.mark.parametrize(
    ("service", "name", "ports"),
    [
        (pd.services(cluster())[1], "demo-pd-peer", [_port("tcp-peer-2380", 2380), _port("tcp-peer-2379", 2379)]),
        (tikv.services(cluster())[0], "demo-tikv-peer", [_port("peer", 20160)]),
        (tidb.services(cluster())[0], "demo-tidb-peer", [_port("status", 10080)]),
    ],
)
@pytest.mark.rule("objects-2")
def test_peer_services_are_headless_and_show_pods_early(service: Json, name: str, ports: list[Json]) -> None:
    assert name == service["metadata"]["name"]
    assert "peer" == service["metadata"]["labels"][USED_BY]
    assert {
        "clusterIP": "None",
        "ports": ports,
        "publishNotReadyAddresses": True,
        "selector": {k: v for k, v in service["metadata"]["labels"].items() if k != USED_BY},
    } == service["spec"]


@pytest.mark.rule("objects-2")
def test_preferring_ipv6_makes_every_service_dual_stack() -> None:
    tc = cluster(preferIPv6=True, tidb={"service": {}})
    made = [*pd.services(tc), *tikv.services(tc), *tidb.services(tc), discovery.service(tc)]
    assert ["PreferDualStack"] * 6 == [service["spec"].get("ipFamilyPolicy") for service in made]


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), "ClusterIP"),
        (cluster(services=[{"name": "pd", "type": "NodePort"}]), "NodePort"),
        (cluster(services=[{"name": "pd", "type": "ExternalName"}]), "ClusterIP"),
        (
            cluster(services=[{"name": "pd", "type": "NodePort"}], pd={"service": {"type": "LoadBalancer"}}),
            "LoadBalancer",
        ),
    ],
)
@pytest.mark.rule("objects-2.1")
def test_type_of_the_pd_service(tc: TidbCluster, expected: str) -> None:
    assert expected == pd.services(tc)[0]["spec"]["type"]


@pytest.mark.rule("objects-2.1")
def test_options_of_the_pd_service() -> None:
    options = {
        "annotations": {"a": "b"},
        "labels": {"own": "x", USED_BY: "mine"},
        "loadBalancerIP": "1.2.3.4",
        "clusterIP": "10.0.0.1",
        "portName": "pd",
        "port": 1,
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
    }
    service = pd.services(cluster(pd={"service": options}))[0]
    assert {"a": "b"} == service["metadata"]["annotations"]
    assert ("x", "end-user") == (service["metadata"]["labels"]["own"], service["metadata"]["labels"][USED_BY])
    spec = service["spec"]
    assert ("1.2.3.4", "10.0.0.1", [_port("pd", 2379)]) == (spec["loadBalancerIP"], spec["clusterIP"], spec["ports"])
    assert "loadBalancerSourceRanges" not in spec


@pytest.mark.rule("objects-2.2")
def test_without_a_description_tidb_has_only_its_peer_service() -> None:
    assert ["demo-tidb-peer"] == names(tidb.services(cluster()))
    assert ["demo-tidb", "demo-tidb-peer"] == names(tidb.services(cluster(tidb={"service": {}})))


@pytest.mark.rule("objects-2.2")
def test_ports_of_the_tidb_service_in_order() -> None:
    extra = {"name": "extra", "port": 1}
    service = _tidb_service(
        port=3306, portName="sql", mysqlNodePort=30001, statusNodePort=30002, additionalPorts=[extra]
    )
    assert [
        {"name": "sql", "port": 3306, "targetPort": 4000, "protocol": "TCP", "nodePort": 30001},
        extra,
        _port("status", 10080, nodePort=30002),
    ] == service["spec"]["ports"]
    assert [_port("mysql-client", 4000)] == _tidb_service(exposeStatus=False)["spec"]["ports"]


@pytest.mark.rule("objects-2.2")
def test_load_balancer_fields_only_for_load_balancers() -> None:
    fields = {"loadBalancerIP": "1.2.3.4", "loadBalancerSourceRanges": ["10.0.0.0/8"], "loadBalancerClass": "c"}
    balanced = _tidb_service(type="LoadBalancer", externalTrafficPolicy="Local", **fields)["spec"]
    assert fields | {"externalTrafficPolicy": "Local"} == {k: balanced[k] for k in [*fields, "externalTrafficPolicy"]}
    assert fields.keys().isdisjoint(_tidb_service(type="NodePort", **fields)["spec"])


@pytest.mark.rule("objects-2.3")
def test_node_ports_that_kubernetes_chose_stay() -> None:
    desired = _tidb_service(type="NodePort", statusNodePort=30002)
    live_ports = [{"port": 4000, "nodePort": 31000}, {"port": 10080, "protocol": "TCP", "nodePort": 31001}]
    kept = keep_allocated(desired, {"spec": {"ports": live_ports, "healthCheckNodePort": 32000}})["spec"]
    assert [31000, 30002] == [port["nodePort"] for port in kept["ports"]]
    assert 32000 == kept["healthCheckNodePort"]
    plain = _tidb_service(type="ClusterIP")
    assert plain == keep_allocated(plain, {"spec": {"ports": live_ports}})
