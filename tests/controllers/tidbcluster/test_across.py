"""One TiDB cluster in two Kubernetes clusters, each with its own operator (objects.md 8)."""

from collections.abc import Iterable, Iterator

import pytest

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import SECRETS, STATEFUL_SETS, TIDB_CLUSTERS
from member.context import FailoverSettings, Settings
from meta.certificate_needs import all_hosts, needs
from ports.clock import FakeClock
from tests.certificates import Authority
from tests.joined_worlds import NORTH, SOUTH, JoinedWorlds, across
from tests.operator_world import NAMESPACE, OperatorWorld

_HASTY = Settings("tidb-operator-py:test", FailoverSettings(pd_period=30.0, tikv_period=30.0, tidb_period=30.0))
_BASIC_PD = {f"basic-pd-{each}.basic-pd-peer.default.svc.{NORTH}" for each in range(3)}


@pytest.fixture
def worlds(clock: FakeClock) -> Iterator[JoinedWorlds]:
    """Two Kubernetes clusters whose operators fail over within half a minute."""
    made = JoinedWorlds(clock=clock, settings=_HASTY)
    yield made
    made.stop()


def join(worlds: JoinedWorlds, name: str = "guest", *, pd: int, tikv: int = 2) -> None:
    """Create three PDs and three stores in the north, and in the south `pd` PDs and `tikv` stores that join them."""
    worlds.north.apply(across("basic", NORTH, pd=3, tikv=3, tidb=1))
    worlds.run_until_ready()
    worlds.south.apply(across(name, SOUTH, NORTH, pd=pd, tikv=tikv, tidb=1))
    worlds.run_until_ready()
    # no event reports changes of the others
    worlds.run(31.0)
    worlds.north.forget()
    worlds.south.forget()


def destroyed(world: OperatorWorld) -> list[str]:
    """The operator's actions that remove pods or data."""
    kinds = ("delete ", "patch statefulsets.apps")
    data_plane = [f"{each.method} {each.url}" for each in world.operator.dataplane.requests if each.method == "DELETE"]
    return [each for each in world.writes() if each.startswith(kinds)] + data_plane


def status(world: OperatorWorld, component: str, name: str = "basic") -> Json:
    found: Json = world.cluster(name)["status"].get(component) or {}
    return found


def said(world: OperatorWorld, name: str = "basic") -> str:
    return str(world.condition("Progressing", name)["message"])


def pods_of(stores: Json | None) -> set[str]:
    return {each["podName"] for each in (stores or {}).values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["guest", "basic"])
@pytest.mark.rule("objects-8")
def test_members_and_stores_of_both_sides_form_one_cluster(worlds: JoinedWorlds, name: str) -> None:
    join(worlds, name, pd=2)
    south_pd = {f"{name}-pd-{each}.{name}-pd-peer.default.svc.{SOUTH}" for each in range(2)}
    north, south = status(worlds.north, "pd"), status(worlds.south, "pd", name)
    assert (_BASIC_PD, south_pd) == (north["members"].keys(), north["peerMembers"].keys())
    assert (south_pd, _BASIC_PD) == (south["members"].keys(), south["peerMembers"].keys())
    north, south = status(worlds.north, "tikv"), status(worlds.south, "tikv", name)
    assert (south["stores"].keys(), south["peerStores"].keys()) == (north["peerStores"].keys(), north["stores"].keys())
    assert (3, 2) == (len(north["stores"]), len(south["stores"]))
    assert worlds.north.cluster()["status"]["clusterID"] == worlds.south.cluster(name)["status"]["clusterID"]


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_stores_join_across_kubernetes_without_a_local_pd(worlds: JoinedWorlds) -> None:
    join(worlds, pd=0)
    assert {"guest-tikv-0", "guest-tikv-1"} == pods_of(status(worlds.north, "tikv")["peerStores"])
    assert worlds.north.cluster()["status"]["clusterID"] == worlds.south.cluster("guest")["status"]["clusterID"]
    assert not worlds.south.exists(STATEFUL_SETS, "guest-pd")

    worlds.south.world.faults.kubernetes_cut_off()
    worlds.run(60.0)
    assert "PDUnreachable" == worlds.south.reason("guest")
    assert f"PD belongs to TidbCluster default/basic at {NORTH}; GET http" in said(worlds.south, "guest")
    assert [] == destroyed(worlds.south)


@pytest.mark.slow
@pytest.mark.rule("objects-8", "I9")
def test_a_quorum_counts_the_members_of_both_sides(worlds: JoinedWorlds) -> None:
    join(worlds, pd=2)
    worlds.south.world.faults.kubernetes_cut_off()
    worlds.run(30.0)
    worlds.north.change(version="v8.5.3")
    worlds.run(120.0)
    assert "PDQuorum" == worlds.north.reason()
    peers = ", ".join(f"guest-pd-{each}.guest-pd-peer.default.svc.{SOUTH}" for each in range(2))
    expected = "without pod basic-pd-2, only 2 of PD's 5 members would be healthy, but a quorum needs 3; waiting for "
    assert f"pd: {expected}{peers}" == said(worlds.north)
    worlds.south.world.faults.heal()
    worlds.run_until(lambda: worlds.north.reason() == "Done", within=300.0)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"version": "v8.5.3"}, {"pd": {"replicas": 1}, "tikv": {"replicas": 1}}])
@pytest.mark.rule("objects-8", "I4")
def test_the_side_without_a_majority_changes_nothing(worlds: JoinedWorlds, change: Json) -> None:
    join(worlds, pd=2)
    worlds.south.world.faults.kubernetes_cut_off()
    worlds.run(30.0)
    assert ("False", "PDUnreachable") == tuple(worlds.south.condition("Ready", "guest")[key] for key in _SAYS)
    assert f"nor do its members in other clusters answer: {', '.join(sorted(_BASIC_PD))}" in said(worlds.south, "guest")
    assert status(worlds.south, "pd", "guest").get("synced", False) is False

    worlds.south.change("guest", **change)
    worlds.run(300.0)
    assert [] == destroyed(worlds.south)
    assert "PDUnknown" == worlds.south.reason("guest")

    worlds.south.world.faults.heal()
    worlds.run_until_ready(within=300.0)
    assert [] != destroyed(worlds.south)


_SAYS = ("status", "reason")


@pytest.mark.slow
@pytest.mark.parametrize("gone", [pytest.param(False, marks=pytest.mark.thorough), True])
@pytest.mark.rule("objects-8", "F31")
def test_reports_the_loss_of_a_whole_side_and_replaces_nothing(worlds: JoinedWorlds, gone: bool) -> None:
    join(worlds, pd=2)
    worlds.south.world.faults.kubernetes_cut_off()
    if gone:
        worlds.south.world.faults.node_gone("*")
    worlds.run(2400.0)
    assert worlds.north.is_ready()
    assert {False} == {each["health"] for each in status(worlds.north, "pd")["peerMembers"].values()}
    assert {"Down"} == {each["state"] for each in status(worlds.north, "tikv")["peerStores"].values()}
    for each, name in ((worlds.north, "basic"), (worlds.south, "guest")):
        assert [] == destroyed(each)
        for component in ("pd", "tikv"):
            assert {} == _failures(status(each, component, name))
    worlds.south.world.faults.heal()
    worlds.run_until(lambda: _all_serve(worlds), within=600.0)
    worlds.run_until_ready()


def _failures(found: Json) -> Json:
    return {key: found[key] for key in ("failureMembers", "failureStores") if found.get(key)}


def _all_serve(worlds: JoinedWorlds) -> bool:
    stores = status(worlds.north, "tikv")["peerStores"].values()
    members = status(worlds.north, "pd")["peerMembers"].values()
    return {"Up"} == {each["state"] for each in stores} and all(each["health"] for each in members)


@pytest.mark.slow
@pytest.mark.rule("objects-8", "F40")
def test_a_joining_side_bootstraps_no_cluster_while_it_reaches_none(worlds: JoinedWorlds) -> None:
    worlds.north.apply(across("basic", NORTH, pd=1, tikv=1, tidb=1))
    worlds.run_until_ready()
    worlds.south.world.faults.kubernetes_cut_off()
    worlds.south.apply(across("guest", SOUTH, NORTH, pd=1, tikv=1, tidb=1))
    worlds.run(60.0)
    assert "PDNotAnswering" == worlds.south.reason("guest")
    assert f"which is to join the PD of TidbCluster default/basic at {NORTH}: GET http" in said(worlds.south, "guest")
    assert worlds.south.world.data_plane.pd_cluster(NAMESPACE, "guest") is None
    worlds.south.world.faults.heal()
    worlds.run_until_ready()
    assert worlds.north.cluster()["status"]["clusterID"] == worlds.south.cluster("guest")["status"]["clusterID"]


@pytest.mark.slow
@pytest.mark.rule("objects-8", "F40")
def test_a_side_that_lost_the_volumes_of_pd_bootstraps_no_cluster(worlds: JoinedWorlds) -> None:
    join(worlds, pd=2)
    worlds.south.world.faults.kubernetes_cut_off()
    for pod in ("guest-pd-0", "guest-pd-1"):
        worlds.south.world.faults.disk_lost(NAMESPACE, f"pd-{pod}")
        worlds.south.world.faults.pod_crash(f"{NAMESPACE}/{pod}")
    worlds.run(200.0)
    assert worlds.south.world.data_plane.pd_cluster(NAMESPACE, "guest") is None
    assert [] == destroyed(worlds.south)


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_scales_a_side_to_0_without_touching_the_data_of_the_other(worlds: JoinedWorlds) -> None:
    join(worlds, pd=2)
    kept = pods_of(status(worlds.north, "tikv")["stores"])
    worlds.south.change("guest", tidb={"replicas": 0}, tikv={"replicas": 0}, pd={"replicas": 0})
    worlds.run_until_ready(within=400.0)
    worlds.run(31.0)
    assert _BASIC_PD == status(worlds.north, "pd")["members"].keys()
    assert "peerMembers" not in status(worlds.north, "pd")
    assert "peerStores" not in status(worlds.north, "tikv")
    worlds.south.admin.delete(TIDB_CLUSTERS, "guest", NAMESPACE)
    worlds.run(60.0)
    assert (True, kept) == (worlds.north.is_ready(), pods_of(status(worlds.north, "tikv")["stores"]))
    assert [] == destroyed(worlds.north)


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_the_side_that_bootstrapped_the_cluster_can_leave(worlds: JoinedWorlds) -> None:
    join(worlds, pd=3, tikv=3)
    cluster_id = worlds.north.cluster()["status"]["clusterID"]
    for each in ("tidb", "tikv", "pd"):
        worlds.north.change(**{each: {"replicas": 0}})
        worlds.run_until_ready(within=400.0)
    worlds.south.change("guest", cluster=None)
    worlds.north.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    worlds.run(60.0)
    assert [] == destroyed(worlds.south)
    worlds.south.change("guest", version="v8.5.3")
    worlds.run(1.0)
    worlds.run_until_ready(within=600.0)
    assert cluster_id == worlds.south.cluster("guest")["status"]["clusterID"]
    assert 3 == len(status(worlds.south, "tikv", "guest")["stores"])


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("pd", [0, 2])
@pytest.mark.rule("8.9")
def test_every_component_serves_across_kubernetes_with_tls(worlds: JoinedWorlds, pd: int) -> None:
    authority = Authority()
    north = _complete(across("basic", NORTH, pd=3, tikv=3, tidb=1))
    south = _complete(across("guest", SOUTH, NORTH, pd=pd, tikv=2, tidb=1))
    for world, cluster in ((worlds.north, north), (worlds.south, south)):
        for secret in _secrets(cluster, authority):
            world.admin.create(SECRETS, secret, NAMESPACE)
    worlds.north.apply(north)
    worlds.run_until_ready()
    worlds.south.apply(south)
    worlds.run_until_ready()
    for each, name in ((worlds.north, "basic"), (worlds.south, "guest")):
        each.change(name, version="v8.5.3")
    worlds.run(1.0)
    worlds.run_until_ready(within=1200.0)


def _complete(cluster: Json) -> Json:
    storage: Json = {"requests": {"storage": "1Gi"}}
    cluster["spec"] |= {
        "tlsCluster": {"enabled": True},
        "tiflash": {"baseImage": "pingcap/tiflash", "replicas": 1, "storageClaims": [{"resources": storage}]},
        "ticdc": {"baseImage": "pingcap/ticdc", "replicas": 1, "config": {}},
        "pump": {"replicas": 1, "config": {}} | storage,
    }
    cluster["spec"]["tidb"]["tlsClient"] = {"enabled": True}
    return cluster


def _secrets(cluster: Json, authority: Authority) -> Iterable[Json]:
    metadata = cluster["metadata"] | {"namespace": NAMESPACE}
    tc = with_defaults(decode({**cluster, "metadata": metadata}, TidbCluster))
    for name, need in needs(tc).items():
        yield authority.pair(*all_hosts(tc, need)).secret(name)
