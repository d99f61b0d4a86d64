"""Several TidbClusters of one Kubernetes that are one TiDB cluster (objects.md 8)."""

import pytest

from apis.consent import ALLOWED_FROM
from apis.identity import FORCE_PD_BOOTSTRAP
from kube.objects import Json
from kube.resources import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS, TIDB_CLUSTERS
from member.labels import with_annotation
from member.observed import referenced_cluster
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_ELSEWHERE = "elsewhere"


def host() -> Json:
    cluster = sample("basic")
    for component in ("pd", "tikv"):
        cluster["spec"][component]["replicas"] = 3
    return cluster


def guest(*without: str, pd: int = 1, tikv: int = 1) -> Json:
    """A cluster that joins `basic`, without some of the components."""
    cluster = sample("basic")
    cluster["metadata"]["name"] = "guest"
    cluster["spec"]["cluster"] = {"name": "basic", "namespace": NAMESPACE}
    cluster["spec"]["pd"]["replicas"], cluster["spec"]["tikv"]["replicas"] = pd, tikv
    for component in without:
        del cluster["spec"][component]
    return cluster


def join(world: OperatorWorld, cluster: Json) -> None:
    """A cluster of three PDs and three stores, and one that joins it."""
    world.apply(host())
    world.run_until_ready()
    world.apply(cluster)
    world.run_until_ready("guest")
    # no event reports changes of the others
    world.run(31.0)


def names(world: OperatorWorld, name: str, component: str, field: str) -> set[str]:
    """The members of a status, or the pods of its stores."""
    found: Json = (world.cluster(name)["status"].get(component) or {}).get(field) or {}
    return {each.get("podName", key) for key, each in found.items()}


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_members_and_stores_of_other_clusters_are_peers(world: OperatorWorld) -> None:
    join(world, guest())
    own, others = {f"basic-pd-{each}" for each in range(3)}, {"guest-pd-0"}
    assert (own, others) == (names(world, "basic", "pd", "members"), names(world, "basic", "pd", "peerMembers"))
    assert (others, own) == (names(world, "guest", "pd", "members"), names(world, "guest", "pd", "peerMembers"))
    own, others = {f"basic-tikv-{each}" for each in range(3)}, {"guest-tikv-0"}
    assert (own, others) == (names(world, "basic", "tikv", "stores"), names(world, "basic", "tikv", "peerStores"))
    assert (others, own) == (names(world, "guest", "tikv", "stores"), names(world, "guest", "tikv", "peerStores"))
    assert world.cluster()["status"]["clusterID"] == world.cluster("guest")["status"]["clusterID"]


@pytest.mark.slow
@pytest.mark.parametrize("without", [("pd",), ("pd", "tidb"), ("pd", "tikv")])
@pytest.mark.rule("objects-8")
def test_a_cluster_without_pd_uses_the_pd_of_the_other(world: OperatorWorld, without: tuple[str, ...]) -> None:
    join(world, guest(*without))
    assert world.cluster()["status"]["clusterID"] == world.cluster("guest")["status"]["clusterID"]
    assert not world.exists(STATEFUL_SETS, "guest-pd")
    assert ({"guest-tikv-0"} if "tikv" not in without else set()) == names(world, "basic", "tikv", "peerStores")


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_reaches_the_pd_of_another_namespace_by_its_full_name(world: OperatorWorld) -> None:
    world.apply(with_annotation(host(), ALLOWED_FROM, _ELSEWHERE))
    world.run_until_ready()
    world.admin.create(NAMESPACES, {"metadata": {"name": _ELSEWHERE}})
    world.admin.create(TIDB_CLUSTERS, guest("pd"), _ELSEWHERE)

    def is_ready() -> bool:
        found = world.admin.get(TIDB_CLUSTERS, "guest", _ELSEWHERE).decode()
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    world.run_until(is_ready)
    world.run_until(lambda: names(world, "basic", "tikv", "peerStores") == {"guest-tikv-0"})


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_upgrades_both_clusters_at_the_same_time(world: OperatorWorld) -> None:
    join(world, guest(pd=2, tikv=2))
    for each in ("basic", "guest"):
        world.change(each, version="v8.5.3")
    world.run(1.0)
    for each in ("basic", "guest"):
        world.run_until_ready(each, within=600.0)


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_moves_data_to_the_joined_cluster_and_removes_the_first_one(world: OperatorWorld) -> None:
    """The way of scheduler-deployment.md to other machines, with every step at the same time."""
    join(world, guest(pd=3, tikv=3))
    before = world.cluster()["status"]["clusterID"]
    world.change("basic", **{each: {"replicas": 0} for each in ("tidb", "tikv", "pd")})
    world.run(1.0)
    world.run_until_ready("basic", within=600.0)
    world.run_until_ready("guest", within=60.0)
    world.change("guest", cluster=None)
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.run(60.0)
    assert (True, before) == (world.is_ready("guest"), world.cluster("guest")["status"]["clusterID"])
    assert {f"guest-tikv-{each}" for each in range(3)} == names(world, "guest", "tikv", "stores")
    assert set() == names(world, "guest", "tikv", "peerStores")


@pytest.mark.slow
@pytest.mark.rule("objects-8", "I4")
def test_keeps_the_last_pd_while_no_member_of_other_clusters_is_healthy(world: OperatorWorld) -> None:
    join(world, guest(tikv=3))
    world.change("basic", tidb={"replicas": 0}, tikv={"replicas": 0})
    world.run(1.0)
    world.run_until_ready(within=300.0)
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/guest-pd-0")
    world.run(31.0)
    world.change("basic", pd={"replicas": 0})
    world.run(120.0)
    assert 3 == world.replicas("pd")
    assert 3 == len(names(world, "basic", "pd", "members"))
    assert "without a healthy PD in another cluster" in world.condition("Progressing")["message"]


def alone(component: str, section: Json) -> Json:
    """A guest with one component."""
    cluster = guest("pd", "tikv", "tidb")
    cluster["spec"][component] = {"replicas": 1, "config": {}} | section
    return cluster


_GUESTS = {
    "tikv": guest("pd", "tidb"),
    "tikv and tidb": guest("pd"),
    "tidb": guest("pd", "tikv"),
    "tiproxy": alone("tiproxy", {"version": "v1.2.0"}),
    "ticdc": alone("ticdc", {}),
    "tiflash": alone("tiflash", {"storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}]}),
    "pump": alone("pump", {"requests": {"storage": "1Gi"}}),
}


def recreate_host(world: OperatorWorld) -> str:
    """Delete the host with its volumes and create it under the same name; return the id of its first PD cluster."""
    before = str(world.cluster()["status"]["clusterID"])
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.run_until(lambda: not world.exists(STATEFUL_SETS, "basic-tikv"))
    world.run(30.0)
    for claim in world.every(PERSISTENT_VOLUME_CLAIMS):
        if "-basic-" in (name := claim["metadata"]["name"]):
            world.admin.delete(PERSISTENT_VOLUME_CLAIMS, name, NAMESPACE)
    world.run(5.0)
    world.apply(host())
    world.run_until(lambda: world.cluster()["status"].get("clusterID") not in (None, "", before), within=300.0)
    return before


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.thorough] * (what in ("tiflash", "pump"))) for what in _GUESTS]
)
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.rule("F40")
def test_a_cluster_without_pd_refuses_a_recreated_pd(world: OperatorWorld, what: str, forgets: bool) -> None:
    join(world, _GUESTS[what])
    before = recreate_host(world)
    if forgets:
        world.admin.patch(TIDB_CLUSTERS, "guest", NAMESPACE, {"status": {"clusterID": None}}, subresource="status")
    world.run_until(lambda: world.reason("guest") == "ForeignPDCluster")
    message = world.condition("Progressing", "guest")["message"]
    assert ("TidbCluster default/basic" in message, before in message) == (True, True)
    component = what.partition(" ")[0]
    world.forget()
    world.change("guest", **{component: {"replicas": 2}})
    world.run(60.0)
    assert (1, []) == (world.replicas(component, "guest"), [each for each in world.writes() if "guest-" in each])
    assert not world.is_ready("guest")

    world.admin.patch(TIDB_CLUSTERS, "guest", NAMESPACE, {"metadata": {"annotations": {FORCE_PD_BOOTSTRAP: before}}})
    world.run_until(lambda: world.replicas(component, "guest") == 2)
    assert world.cluster()["status"]["clusterID"] == world.cluster("guest")["status"]["clusterID"]


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.rule("F40")
def test_reports_a_guest_that_does_not_know_its_pd_cluster(
    world: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(world, _GUESTS["tikv"])
    monkeypatch.setattr(referenced_cluster, "known_cluster_ids", lambda *_: ())
    recreate_host(world)
    world.change("guest", tikv={"replicas": 2})
    world.run(60.0)
    assert ("ForeignPDCluster", 1) != (world.reason("guest"), world.replicas("tikv", "guest"))
    assert world.cluster()["status"]["clusterID"] == world.cluster("guest")["status"]["clusterID"]
