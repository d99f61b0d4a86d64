"""TiProxy in a cluster that works (lifecycle.md 5.7, 6.3, 7.8, 7.9, 8.7)."""

import json
from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS, SERVICES, STATEFUL_SETS
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from tests.certificates import Authority
from tests.controllers.tidbcluster.test_tls import TlsWorld
from tests.operator_world import OperatorWorld, sample


def with_proxies(**fields: object) -> Json:
    cluster = sample("basic")
    cluster["spec"]["tiproxy"] = {"baseImage": "pingcap/tiproxy", "replicas": 2, "version": "v1.3.0", **fields}
    return cluster


@pytest.fixture(name="basic")
def _basic(clock: FakeClock) -> Iterator[OperatorWorld]:
    world = OperatorWorld(clock=clock)
    world.apply(with_proxies())
    world.run_until_ready()
    world.forget()
    yield world
    world.stop()


def members(world: OperatorWorld) -> Json:
    found: Json = world.cluster()["status"]["tiproxy"]["members"]
    return found


def images(world: OperatorWorld) -> list[str]:
    pods = sorted(world.every(PODS), key=lambda pod: str(pod["metadata"]["name"]))
    return [each["spec"]["containers"][0]["image"] for each in pods if "-tiproxy-" in each["metadata"]["name"]]


def sent(world: OperatorWorld) -> list[bytes]:
    """The labels that proxies received."""
    return [each.body or b"" for each in world.operator.dataplane.writes() if each.url.endswith("/api/admin/config/")]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.7")
def test_the_status_shows_health_and_configuration_of_members(basic: OperatorWorld) -> None:
    found = members(basic)
    assert ["basic-tiproxy-0", "basic-tiproxy-1"] == list(found)
    for member in found.values():
        assert member["health"]
        assert "config_checksum" in json.loads(member["info"])
        assert member["info"].endswith("\n")
    assert "NodePort" == basic.get(SERVICES, "basic-tiproxy")["spec"]["type"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.7")
def test_a_closing_proxy_is_not_healthy(basic: OperatorWorld) -> None:
    told = members(basic)["basic-tiproxy-1"]
    basic.world.data_plane.network.inject(
        Fault(Trouble.ANSWER, target="default/basic-tiproxy-1", status=502, body=b'{"config_checksum": 1}')
    )
    basic.run_until(lambda: not members(basic)["basic-tiproxy-1"].get("health"))
    assert told["info"] == members(basic)["basic-tiproxy-1"]["info"]
    basic.run_until(lambda: basic.condition("Ready")["reason"] == "TiProxyUnhealthy")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.7")
def test_a_proxy_is_healthy_while_there_is_no_tidb_server(basic: OperatorWorld) -> None:
    """TiProxy v1.3 answers 502 while it knows no healthy TiDB: a roll must not wait for it then."""
    basic.change(tidb={"replicas": 0})
    basic.run_until(lambda: not basic.exists(PODS, "basic-tidb-0"))
    basic.run(30.0)
    basic.run_until_ready()
    assert all(member["health"] for member in members(basic).values())
    basic.change(tiproxy={"version": "v1.3.1"})
    basic.run_until_ready(within=120.0)
    assert ["pingcap/tiproxy:v1.3.1"] * 2 == images(basic)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.7")
def test_a_proxy_that_does_not_find_the_servers_is_unhealthy(basic: OperatorWorld) -> None:
    basic.world.data_plane.network.inject(Fault(Trouble.REFUSE, target="*/basic-tidb-*", origin="*/basic-tiproxy-1"))
    basic.run_until(lambda: not members(basic)["basic-tiproxy-1"].get("health"))
    assert members(basic)["basic-tiproxy-0"]["health"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.5")
def test_a_new_configuration_changes_the_config_map_and_restarts_no_pod(basic: OperatorWorld) -> None:
    uids = {pod["metadata"]["uid"] for pod in basic.every(PODS)}
    basic.change(tiproxy={"config": "[log]\nlevel = 'warn'\n"}, configUpdateStrategy="RollingUpdate")
    basic.run_until(lambda: "warn" in basic.get(CONFIG_MAPS, "basic-tiproxy")["data"]["config-file"])
    basic.run(30.0)
    assert uids == {pod["metadata"]["uid"] for pod in basic.every(PODS)}


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.8")
def test_restarts_the_next_proxy_when_the_previous_one_serves(basic: OperatorWorld) -> None:
    silent = Fault(Trouble.REFUSE, target="default/basic-tiproxy-1", port=3080)
    basic.world.data_plane.network.inject(silent)
    basic.change(tiproxy={"version": "v1.3.1"})
    basic.run_until(lambda: "until pod basic-tiproxy-1 serves" in basic.condition("Progressing")["message"])
    basic.run(30.0)
    assert ["pingcap/tiproxy:v1.3.0", "pingcap/tiproxy:v1.3.1"] == images(basic)
    basic.world.data_plane.network.heal(silent)
    basic.run_until_ready(within=120.0)
    assert ["pingcap/tiproxy:v1.3.1"] * 2 == images(basic)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.2")
def test_tiproxy_waits_for_no_other_component(basic: OperatorWorld) -> None:
    """TiKV's roll can't continue, since one of its pods can't start."""
    basic.change(tikv={"version": "v0.0.0-missing"}, tiproxy={"version": "v1.3.1"})
    basic.run_until(lambda: images(basic) == ["pingcap/tiproxy:v1.3.1"] * 2, within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.7")
def test_tiproxy_is_scaled_out_and_in(basic: OperatorWorld) -> None:
    basic.change(tiproxy={"replicas": 3})
    basic.run_until_ready()
    assert 3 == len(members(basic))
    basic.change(tiproxy={"replicas": 1})
    basic.run_until_ready()
    assert ["basic-tiproxy-0"] == list(members(basic))
    assert [3, 2, 1] == basic.asked_replicas("tiproxy")


@pytest.mark.rule("lifecycle-7.9")
def test_sets_the_labels_of_proxies_once(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    cluster = with_proxies(replicas=1)
    cluster["spec"]["pd"]["config"] = "[replication]\nlocation-labels = ['zone']\n"
    world.apply(cluster)
    world.run_until_ready()
    world.run_until(lambda: sent(world) != [])
    assert sent(world)[0].startswith(b'[labels]\n"zone" = ')
    world.run(60.0)
    assert 1 == len(sent(world))
    world.stop()


@pytest.mark.rule("lifecycle-1.4")
def test_tiproxy_is_refused_in_a_cluster_across_kubernetes(world: OperatorWorld) -> None:
    cluster = with_proxies()
    cluster["spec"]["acrossK8s"] = True
    world.apply(cluster)
    world.run_until(lambda: world.reason() == "AcrossKubernetes")
    assert "spec.tiproxy is set" in world.condition("Progressing")["message"]
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-tidb"))
    assert not world.exists(STATEFUL_SETS, "basic-tiproxy")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tidb", "layout"),
    [({}, ""), ({"tlsClient": {"enabled": True}}, ""), ({"tlsClient": {"enabled": True}}, "v1")],
    ids=["cluster", "cluster and clients", "layout v1"],
)
@pytest.mark.rule("lifecycle-9.3")
def test_asks_the_api_over_tls(world: OperatorWorld, tidb: Json, layout: str) -> None:
    """With TLS for clients, and without a layout, it presents a certificate for TiDB's name only."""
    tls = TlsWorld(world)
    tls.put_all()
    tls.put("tiproxy")
    cluster = with_proxies(certLayout=layout)
    cluster["spec"]["tlsCluster"] = {"enabled": True}
    cluster["spec"]["tidb"] |= tidb
    world.apply(cluster)
    world.run_until_ready()
    assert [True, True] == [each["health"] for each in members(world).values()]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-9.3")
def test_does_not_trust_an_api_certificate_of_another_authority(world: OperatorWorld) -> None:
    tls = TlsWorld(world)
    tls.put_all()
    tls.put("tiproxy", Authority().of("tiproxy"))
    cluster = with_proxies()
    cluster["spec"]["tlsCluster"] = {"enabled": True}
    world.apply(cluster)
    world.run_until(lambda: world.condition("Ready").get("reason") == "TiProxyUnhealthy")
    world.run(30.0)
    assert [False, False] == [each.get("health", False) for each in members(world).values()]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_tiproxy_is_suspended_after_tidb_and_before_pd(basic: OperatorWorld) -> None:
    basic.change(suspendAction={"suspendStatefulSet": True})
    order: list[str] = []

    def gone() -> bool:
        left = {each["metadata"]["name"].removeprefix("basic-") for each in basic.every(STATEFUL_SETS)}
        order.extend(name for name in ("tidb", "tikv", "tiproxy", "pd") if name not in {*left, *order})
        return not left

    basic.run_until(gone, within=120.0)
    assert ["tidb", "tikv", "tiproxy", "pd"] == order


@pytest.mark.slow
@pytest.mark.rule("TPX-2")
def test_at_0_replicas_the_stateful_set_stays_and_another_volume_makes_it_anew(basic: OperatorWorld) -> None:
    """v1.7 deletes it for that at 0 replicas."""
    basic.change(tiproxy={"replicas": 0})
    basic.run_until(lambda: not images(basic), 120)
    basic.run(30)
    assert 0 == basic.replicas("tiproxy")
    basic.forget()
    basic.run(60)
    assert [] == basic.writes()
    volume = {"name": "work", "storageSize": "1Gi", "mountPath": "/var/lib/tiproxy/work"}
    basic.change(tiproxy={"replicas": 1, "storageVolumes": [volume]})
    basic.run_until(lambda: 1 == len(images(basic)), 120)
    basic.run_until_ready()
    claims = basic.get(STATEFUL_SETS, "basic-tiproxy")["spec"]["volumeClaimTemplates"]
    assert ["tiproxy-work"] == [each["metadata"]["name"] for each in claims]
