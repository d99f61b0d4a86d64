"""PD's first start, and the loss of all its volumes, with the real Discovery (objects.md 10.3, F40)."""

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member.labels import COMPONENT
from ports.transport import Request, TransportError
from tests.operator_world import NAMESPACE, OperatorWorld, sample


@pytest.fixture
def three(world: OperatorWorld) -> OperatorWorld:
    """A cluster with three PD members, Ready."""
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = 3
    world.apply(cluster)
    world.run_until_ready()
    return world


def members(world: OperatorWorld) -> Json:
    """PD's members as the status shows them."""
    found: Json = world.cluster()["status"]["pd"]["members"]
    return found


@pytest.mark.slow
@pytest.mark.rule("objects-10.3")
def test_three_members_bootstrap_one_cluster(three: OperatorWorld) -> None:
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-2"] == sorted(members(three))
    assert all(member["health"] for member in members(three).values())


@pytest.mark.slow
@pytest.mark.rule("objects-10.3")
def test_a_fourth_member_joins(three: OperatorWorld) -> None:
    cluster_id = three.cluster()["status"]["clusterID"]
    three.change(pd={"replicas": 4})
    three.run_until_ready()
    assert 4 == len(members(three))
    assert cluster_id == three.cluster()["status"]["clusterID"]


@pytest.mark.slow
@pytest.mark.rule("F51", "#3612")
def test_a_tikv_that_never_started_gets_the_corrected_spec(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["tikv"] |= {"replicas": 3, "nodeSelector": {"no": "such-node"}}
    world.apply(cluster)
    world.run(60.0)
    assert not world.cluster()["status"]["tikv"].get("bootStrapped")
    world.change(tikv={"replicas": 2, "nodeSelector": None})
    world.run_until_ready()
    assert (2, 2) == (world.replicas("tikv"), len(world.cluster()["status"]["tikv"]["stores"]))


@pytest.mark.slow
@pytest.mark.rule("objects-7.3")
def test_rolls_pd_before_the_first_tikv_has_started(world: OperatorWorld) -> None:
    """Its leader never becomes ready then (PD v8.5.2): there are no regions to load."""
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = 3
    cluster["spec"]["tikv"]["nodeSelector"] = {"no": "such-node"}
    world.apply(cluster)
    world.run_until(lambda: 3 == len(world.cluster().get("status", {}).get("pd", {}).get("members", {})))
    world.run(30.0)
    world.change(pd={"version": "v8.5.3"})
    world.run_until(
        lambda: all("v8.5.3" in str(world.get(PODS, f"basic-pd-{each}")["spec"]) for each in range(3)), 200.0
    )
    assert not world.cluster()["status"]["tikv"].get("bootStrapped")


@pytest.mark.slow
@pytest.mark.rule("F54", "#6405")
def test_a_deleted_pd_leader_recovers_without_help(three: OperatorWorld) -> None:
    """It hands over to no member; the other members elect another leader."""
    leader, before = three.cluster()["status"]["pd"]["leader"]["name"], members(three)
    uid = three.get(PODS, leader)["metadata"]["uid"]
    three.forget()
    three.admin.delete(PODS, leader, NAMESPACE)
    three.run_until(lambda: three.exists(PODS, leader) and uid != three.get(PODS, leader)["metadata"]["uid"])
    three.run_until_ready()
    assert [] == three.operator.dataplane.writes()
    assert {name: each["id"] for name, each in before.items()} == {
        name: each["id"] for name, each in members(three).items()
    }
    assert leader != three.cluster()["status"]["pd"]["leader"]["name"]


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_bootstraps_nothing_when_a_known_cluster_has_lost_every_volume(three: OperatorWorld) -> None:
    cluster_id = three.cluster()["status"]["clusterID"]
    lose_every_volume_of_pd(three)
    three.run(120.0)

    pods = [pod for pod in three.every(PODS) if pod["metadata"]["labels"][COMPONENT] == "pd"]
    assert 3 == len(pods), "the pods are there again, on empty volumes"
    with pytest.raises(TransportError):
        ask_pd(three)
    assert cluster_id == three.cluster()["status"]["clusterID"]
    assert "False" == three.condition("Ready")["status"]


def lose_every_volume_of_pd(world: OperatorWorld) -> None:
    """Delete the claims with the data, and the pods, which keep the claims."""
    for claim in world.every(PERSISTENT_VOLUME_CLAIMS):
        if claim["metadata"]["labels"][COMPONENT] == "pd":
            world.admin.delete(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], NAMESPACE)
    for pod in world.every(PODS):
        if pod["metadata"]["labels"][COMPONENT] == "pd":
            world.admin.delete(PODS, pod["metadata"]["name"], NAMESPACE)


def ask_pd(world: OperatorWorld) -> None:
    """Ask PD's Service for its members."""
    url = f"http://basic-pd.{NAMESPACE}:2379/pd/api/v1/members"
    world.world.data_plane_transport().request(Request("GET", url, timeout=5.0))
