"""Discovery's answers to PD pods (objects.md 10.3, dataplane-apis.md 12, 18.17)."""

from typing import Any

import pytest

from apis.identity import FORCE_PD_BOOTSTRAP
from apis.ordinals import gated
from dataplane.errors import ApiError as PdError
from dataplane.errors import BadTlsMaterial, DataPlaneError, Unavailable
from dataplane.pd import Member, Membership
from discovery.asking import Refused
from discovery.service import Discovery
from ports.transport import ConnectionLost, RequestTimeout
from tests.discovery.worlds import SERVICE, World, address, cluster, member, membership

BEGIN = "--initial-cluster=demo-pd-0=http://demo-pd-0.demo-pd-peer.default.svc:2380"


def told(discovery: Discovery, ordinal: int) -> str:
    """The answer to a pod, or the reason for a refusal."""
    try:
        return discovery.new(address(ordinal), "10.0.0.1")
    except Refused as refused:
        return str(refused)


def join(*ordinals: int) -> str:
    return "--join=" + ",".join(f"http://demo-pd-{n}.demo-pd-peer.default.svc:2379" for n in ordinals)


@pytest.mark.rule("objects-10.3")
def test_the_lowest_ordinal_begins_when_all_have_asked() -> None:
    discovery = World(cluster()).discovery()
    assert "demo-pd-1, demo-pd-2 may hold data" in told(discovery, 0)
    assert "waiting for demo-pd-0 to bootstrap the cluster" in told(discovery, 1)
    assert "waiting for demo-pd-0 to bootstrap the cluster" in told(discovery, 2)
    assert BEGIN == told(discovery, 0)


@pytest.mark.rule("objects-10.3")
def test_a_single_replica_begins_immediately() -> None:
    assert BEGIN == told(World(cluster(pd={"replicas": 1})).discovery(), 0)


@pytest.mark.rule("objects-10.3")
def test_with_OrderedReady_the_first_pod_begins_alone() -> None:
    discovery = World(cluster(podManagementPolicy="OrderedReady")).discovery()
    assert "waiting for demo-pd-0 to bootstrap the cluster" in told(discovery, 1)
    assert BEGIN == told(discovery, 0)


@pytest.mark.rule("objects-10.3")
def test_others_join_all_members_but_themselves() -> None:
    world = World(cluster(), {SERVICE: membership(0, 1, 2)})
    assert join(0, 2) == told(world.discovery(), 1)


@pytest.mark.rule("8.3")
def test_a_pod_that_is_to_leave_does_not_join() -> None:
    world = World(cluster(pd={"replicas": 1}), {SERVICE: membership(0)})
    assert "demo-pd-1 is no longer wanted: the spec asks for demo-pd-0" == told(world.discovery(), 1)


@pytest.mark.rule("8.3")
def test_a_leaving_pod_that_is_wanted_again_does_not_join() -> None:
    world = World(cluster(), {SERVICE: membership(0)}, given_up=frozenset({"default/pd-demo-pd-1"}))
    waits = "demo-pd-1 was about to leave: waiting for its volume to be deleted, and for a new pod"
    assert waits == told(world.discovery(), 1)
    assert join(0) == told(world.discovery(), 2)


@pytest.mark.rule("objects-10.3")
def test_a_member_is_itself_by_name_by_host_and_by_address() -> None:
    host = "demo-pd-1.demo-pd-peer.default.svc"
    members = (member(0), member(1, host), member(1, "another name"), Member("unreachable", 9, (), ()))
    unstarted = Member("", 8, (), ("http://demo-pd-2.demo-pd-peer.default.svc:2380",))
    world = World(cluster(), {SERVICE: Membership(7, (*members, unstarted), None, None)})
    assert join(0) == told(world.discovery(), 1)


@pytest.mark.rule("objects-10.3")
def test_an_empty_list_does_not_count_as_an_answer() -> None:
    world = World(cluster(), {SERVICE: membership(1)})
    assert "PD lists no member other than demo-pd-1" in told(world.discovery(), 1)


@pytest.mark.parametrize(
    ("spec", "domain", "expected"),
    [
        ({"acrossK8s": True}, "", "demo-pd-0.demo-pd-peer.default.svc=http://demo-pd-0.demo-pd-peer.default.svc:2380"),
        (
            {"clusterDomain": "c.local", "tlsCluster": {"enabled": True}},
            ".c.local",
            "demo-pd-0.demo-pd-peer.default.svc.c.local=https://demo-pd-0.demo-pd-peer.default.svc.c.local:2380",
        ),
    ],
)
@pytest.mark.rule("objects-10.3")
def test_members_have_long_names_if_clusters_span_networks(spec: dict[str, Any], domain: str, expected: str) -> None:
    discovery = World(cluster(pd={"replicas": 1}, **spec)).discovery()
    assert f"--initial-cluster={expected}" == discovery.new(address(0, domain), "10.0.0.1")


PEER: dict[str, Any] = {
    "name": "p",
    "id": "1",
    "clientURL": "http://peer-pd-0.peer-pd-peer.base.svc:2379",
    "health": True,
}


@pytest.mark.rule("objects-10.3")
def test_reads_members_from_the_own_pd_then_the_referenced_then_peers() -> None:
    tc = cluster(
        cluster={"name": "main", "namespace": "base"}, acrossK8s=True, status={"pd": {"peerMembers": {"p": PEER}}}
    )
    world = World(tc, {PEER["clientURL"]: membership(0)})
    assert join(0) == told(world.discovery(), 1)
    assert [SERVICE, "http://main-pd-peer.base:2379", PEER["clientURL"]] == [url for url, _ in world.asked]


@pytest.mark.rule("objects-10.3")
def test_a_heterogeneous_cluster_never_begins() -> None:
    world = World(cluster(pd={"replicas": 1}, cluster={"name": "main"}))
    assert "this cluster is part of main" in told(world.discovery(), 0)
    assert [SERVICE, "http://main-pd.default:2379"] == [url for url, _ in world.asked]


@pytest.mark.rule("objects-10.3")
def test_given_addresses_are_joined_by_the_first_pod_before_the_others() -> None:
    discovery = World(cluster(pdAddresses=["http://a:2379", "http://b:2379"])).discovery()
    assert "waiting for demo-pd-0 to join spec.pdAddresses before demo-pd-1" in told(discovery, 1)
    assert told(discovery, 0) == "--join=http://a:2379,http://b:2379"


@pytest.mark.parametrize(
    ("advertised", "reason"),
    [
        ("", "is not an address"),
        ("demo-pd-0.demo-pd-peer.default:2380", "is not an address"),
        ("demo-pd-0.demo-pd-peer.default.cluster:2380", "is not an address"),
        ("demo-pd-0.demo-pd-peer.other.svc:2380", "is in namespace other"),
        ("demo-tikv-0.demo-tikv-peer.default.svc:2380", "is not the address of a PD pod"),
        ("demo-pd-x.demo-pd-peer.default.svc:2380", "is not the address of a PD pod"),
    ],
)
@pytest.mark.rule("objects-10.3")
def test_rejects_strangers(advertised: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        World(cluster()).discovery().new(advertised, "10.0.0.1")


@pytest.mark.rule("F40")
def test_no_pod_begins_once_the_cluster_has_an_id() -> None:
    discovery = World(cluster(pd={"replicas": 1}, status={"clusterID": "7"})).discovery()
    assert "cluster 7 exists, but none of its members answers" in told(discovery, 0)


@pytest.mark.parametrize(("value", "begins"), [("7", True), ("8", False), ("true", False)])
@pytest.mark.rule("F40")
def test_begins_again_if_the_user_gives_up_that_very_cluster(value: str, begins: bool) -> None:
    tc = cluster(pd={"replicas": 1}, status={"clusterID": "7"}, annotations={FORCE_PD_BOOTSTRAP: value})
    assert begins is (told(World(tc).discovery(), 0) == BEGIN)


@pytest.mark.parametrize(("value", "begins"), [("7", True), ("8", False)])
@pytest.mark.rule("F40")
def test_no_pod_begins_over_volumes_that_are_labelled_with_a_cluster(value: str, begins: bool) -> None:
    tc = cluster(pd={"replicas": 1}, annotations={FORCE_PD_BOOTSTRAP: value})
    answer = told(World(tc, labelled=frozenset({"7"})).discovery(), 0)
    assert begins is (answer == BEGIN)
    assert begins is ("cluster 7 exists, but none of its members answers" not in answer)


@pytest.mark.rule("F40")
def test_no_pod_begins_over_volumes_of_two_clusters() -> None:
    tc = cluster(pd={"replicas": 1}, annotations={FORCE_PD_BOOTSTRAP: "7"})
    world = World(tc, labelled=frozenset({"7", "8"}))
    assert "there are volumes of clusters 7, 8" in told(world.discovery(), 0)


def test_lists_claims_only_if_nothing_else_keeps_a_pod_from_beginning() -> None:
    world = World(cluster(), labelled=frozenset({"7"}))
    discovery = world.discovery()
    assert "demo-pd-1, demo-pd-2 may hold data" in told(discovery, 0)
    for ordinal in (1, 2):
        assert "waiting for demo-pd-0" in told(discovery, ordinal)
    assert 0 == world.lists
    assert "cluster 7 exists" in told(discovery, 0)
    assert 1 == world.lists


@pytest.mark.rule("F40")
def test_no_pod_begins_while_stores_are_known() -> None:
    stores = {"1": {"id": "1", "podName": "demo-tikv-0", "ip": "", "leaderCount": 0, "state": "Up"}}
    tc = cluster(pd={"replicas": 1}, status={"tikv": {"stores": stores}})
    assert "the cluster has the stores 1, but none of its PD members answers" in told(World(tc).discovery(), 0)


@pytest.mark.rule("F40")
def test_the_pods_of_an_abandoned_cluster_join_its_successor() -> None:
    tc = cluster(status={"clusterID": "7"}, annotations={FORCE_PD_BOOTSTRAP: "7"})
    world = World(tc, {SERVICE: membership(0, cluster_id=8)})
    assert join(0) == told(world.discovery(), 1)


@pytest.mark.rule("I7")
def test_does_not_join_members_of_another_cluster() -> None:
    world = World(cluster(status={"clusterID": "7"}), {SERVICE: membership(0, cluster_id=8)})
    assert "PD reports cluster id 8, but this cluster is 7" in told(world.discovery(), 1)


def test_members_elsewhere_prove_that_the_cluster_exists() -> None:
    tc = cluster(pd={"replicas": 1}, acrossK8s=True, status={"pd": {"peerMembers": {"p": PEER}}})
    assert "members in other Kubernetes clusters" in told(World(tc).discovery(), 0)


def lost(url: str = SERVICE) -> Unavailable:
    return Unavailable("GET", url, "reset", ConnectionLost("GET", url, "reset"))


def silent(url: str = SERVICE) -> Unavailable:
    return Unavailable("GET", url, "timeout", RequestTimeout("GET", url, "timeout"))


@pytest.mark.parametrize(
    "sign",
    [
        lost(),
        Unavailable("GET", SERVICE, "error response 503"),
        PdError("GET", SERVICE, 500, b"no leader"),
        BadTlsMaterial("no Secret"),
    ],
)
def test_a_pd_that_answers_with_an_error_is_alive(sign: DataPlaneError) -> None:
    world = World(cluster(pd={"replicas": 1}), {SERVICE: sign})
    assert "a PD that cannot list its members may be running" in told(world.discovery(), 0)


def test_a_service_that_drops_connections_proves_nothing() -> None:
    assert BEGIN == told(World(cluster(pd={"replicas": 1}), {SERVICE: silent()}).discovery(), 0)


@pytest.mark.parametrize("sign", [lost(), silent(), PdError("GET", "x", 500, b"x"), membership(1)])
def test_with_OrderedReady_signs_of_life_of_another_pod_forbid_to_begin(sign: Membership | DataPlaneError) -> None:
    own_address = "http://demo-pd-1.demo-pd-peer.default.svc:2379"
    world = World(cluster(podManagementPolicy="OrderedReady"), {own_address: sign})
    assert "other members may be running: demo-pd-1" in told(world.discovery(), 0)


def test_a_beginner_that_crashed_without_data_gets_the_same_answer() -> None:
    discovery = World(cluster()).discovery()
    for ordinal in (1, 2):
        told(discovery, ordinal)
    assert [BEGIN, BEGIN] == [told(discovery, 0), told(discovery, 0)]


def test_a_question_proves_nothing_after_a_minute() -> None:
    world = World(cluster())
    discovery = world.discovery()
    told(discovery, 1)
    world.clock.step(40)
    told(discovery, 2)
    world.clock.step(21)
    assert "demo-pd-1 may hold data" in told(discovery, 0)


def test_a_pod_that_may_join_may_hold_data() -> None:
    world = World(cluster())
    discovery = world.discovery()
    for ordinal in (2, 1):
        told(discovery, ordinal)
    world.answers[SERVICE] = membership(0)
    assert join(0) == told(discovery, 1)
    world.answers.clear()
    assert "demo-pd-1 may hold data" in told(discovery, 0)


def test_after_a_restart_all_must_ask_again() -> None:
    world = World(cluster())
    for ordinal in (1, 2, 0):
        told(world.discovery(), ordinal)
    assert "demo-pd-1, demo-pd-2 may hold data" in told(world.discovery(), 0)


def test_a_recreated_cluster_is_another_one() -> None:
    world = World(cluster())
    discovery = world.discovery()
    told(discovery, 1)
    told(discovery, 2)
    again = cluster()
    again.metadata.uid = "u2"
    world.tc = again
    assert "demo-pd-1, demo-pd-2 may hold data" in told(discovery, 0)


def test_only_the_pod_with_the_permission_may_begin() -> None:
    world = World(cluster(pd={"replicas": 1}))
    discovery = world.discovery()
    assert BEGIN == told(discovery, 0)
    slots = {"pd.tidb.pingcap.com/delete-slots": "[0]"}
    world.tc = gated(cluster(pd={"replicas": 1}, annotations=slots), True)
    assert "waiting for demo-pd-0, which was allowed to bootstrap the cluster" in told(discovery, 1)
    assert "the spec no longer requests demo-pd-0" in told(discovery, 0)
    assert "--initial-cluster=demo-pd-1=" in told(discovery, 1)


def test_answers_before_scripts_time_out() -> None:
    black_hole: dict[str, Membership | DataPlaneError] = {
        f"http://demo-pd-{pod}.demo-pd-peer.default.svc:2379": silent() for pod in range(5)
    }
    tc = cluster(podManagementPolicy="OrderedReady", pd={"replicas": 5})
    black_hole[SERVICE] = silent()
    world = World(tc, black_hole, each_read_takes=5)
    assert "other members may be running: demo-pd-1" in told(world.discovery(), 0)
    assert 2.4 == pytest.approx(world.clock.now())
