"""What v1.6 has begun is finished where it stands, and nothing is done twice (issue 16; lifecycle.md 7 to 14)."""

from collections.abc import Callable, Iterator

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE
from tests.takeover.halfway import NAME, Halfway

pytestmark = pytest.mark.slow

BEGUN = "evictLeaderBeginTime"
DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"


def to(version: str, partition: int) -> Callable[[Json], None]:
    """The update of a StatefulSet of TiKV to another version, as far as that partition."""

    def edit(spec: Json) -> None:
        spec["template"]["spec"]["containers"][-1]["image"] = f"pingcap/tikv:{version}"
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}

    return edit


@pytest.fixture
def at_rest(clock: FakeClock) -> Iterator[Halfway]:
    """3/3/2, nothing begun."""
    made = Halfway(clock)
    yield made
    made.world.stop()


def test_3_5_a_cluster_at_rest_stays_so(at_rest: Halfway) -> None:
    assert set() == at_rest.take_over()
    assert [] == [each for each in at_rest.world.writes() if "statefulsets" in each or "configmaps" in each]


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_7_4_a_roll_of_tikv_goes_on_with_the_next_pod(at_rest: Halfway, moved: int) -> None:
    version = "v8.5.3"
    at_rest.world.change(tikv={"version": version})
    at_rest.update("tikv", to(version, 3 - moved))
    at_rest.world.world.run_until_settled()
    store = at_rest.store("basic-tikv-1")
    if moved == 1:
        # it waits for the leaders of the next one
        at_rest.annotate_pod("basic-tikv-1", {BEGUN: at_rest.now()})
        at_rest.evict(store)
    at_rest.set_status({"tikv": {"phase": "Upgrade", "stores": {store: {"leaderCountBeforeUpgrade": 10}}}})
    expected = {f"basic-tikv-{ordinal}" for ordinal in range(3 - moved)}
    assert expected == at_rest.take_over()
    assert set() == at_rest.evicted()
    pods = [at_rest.world.get(PODS, f"basic-tikv-{ordinal}") for ordinal in range(3)]
    assert {f"pingcap/tikv:{version}"} == {pod["spec"]["containers"][-1]["image"] for pod in pods}
    assert {None} == {(pod["metadata"].get("annotations") or {}).get(BEGUN) for pod in pods}


def test_8_3_a_scale_in_of_pd_whose_member_is_gone_already(clock: FakeClock) -> None:
    halfway = Halfway(clock, pd=5)
    halfway.world.change(pd={"replicas": 3})
    halfway.ask_pd("DELETE", "members/name/basic-pd-4")
    halfway.defer("pd-basic-pd-4")
    halfway.set_status({"pd": {"phase": "Scale"}})
    claims = halfway.claims()
    assert set() == halfway.take_over()
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-2"] == sorted(halfway.world.cluster()["status"]["pd"]["members"])
    assert 3 == halfway.world.replicas("pd")
    assert claims == halfway.claims()
    halfway.world.stop()


@pytest.mark.parametrize("gone", [False, True], ids=["Offline", "Tombstone"])
def test_8_5_a_scale_in_of_tikv_whose_store_goes_or_is_gone(clock: FakeClock, gone: bool) -> None:
    halfway = Halfway(clock, tikv=4)
    store = halfway.store("basic-tikv-3")
    halfway.world.change(tikv={"replicas": 3})
    halfway.annotate_pod("basic-tikv-3", {"tidb.pingcap.com/scale-in-time": halfway.now()})
    halfway.evict(store)
    halfway.ask_pd("DELETE", f"store/{store}")
    halfway.set_status({"tikv": {"phase": "Scale", "stores": {store: {"state": "Offline"}}}})
    if gone:
        halfway.world.world.advance(30.0)
        there = halfway.world.cluster()["status"]["tikv"]["stores"][store] | {"state": "Tombstone"}
        halfway.set_status({"tikv": {"stores": {store: None}, "tombstoneStores": {store: there}}})
        halfway.defer("tikv-basic-tikv-3")
    claims = halfway.claims()
    assert set() == halfway.take_over()
    assert (3, set()) == (halfway.world.replicas("tikv"), halfway.evicted())
    assert claims == halfway.claims()
    kept = halfway.world.get(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-3")
    assert DEFERRED in kept["metadata"]["annotations"]
    halfway.world.stop()


def test_8_9_a_deferred_claim_is_deleted_before_its_ordinal_comes_back(clock: FakeClock) -> None:
    halfway = Halfway(clock, tikv=4)
    store = halfway.store("basic-tikv-3")
    halfway.ask_pd("DELETE", f"store/{store}")
    halfway.world.world.advance(30.0)
    halfway.defer("tikv-basic-tikv-3")
    halfway.update("tikv", lambda spec: spec.update(replicas=3))
    halfway.set_status({"tikv": {"stores": {store: None}}})
    halfway.world.world.run_until_settled()
    before = halfway.claims()
    halfway.take_over()
    assert "tikv-basic-tikv-3" in before
    assert before["tikv-basic-tikv-3"] != halfway.claims()["tikv-basic-tikv-3"]
    assert 4 == len(halfway.world.cluster()["status"]["tikv"]["stores"])
    halfway.world.stop()


def test_9_3_a_substitute_of_tikv_that_is_half_there(clock: FakeClock) -> None:
    halfway = Halfway(clock, {"tikv": {"recoverFailover": True}})
    store, world = halfway.store("basic-tikv-2"), halfway.world
    uid = halfway.claims()["tikv-basic-tikv-2"]
    record = {"podName": "basic-tikv-2", "storeID": store, "pvcUIDSet": {uid: {}}, "createdAt": halfway.now()}
    halfway.set_status({"tikv": {"failureStores": {store: record}, "failoverUID": "a-uid-of-v16"}})
    halfway.update("tikv", lambda spec: spec.update(replicas=4))
    claims = halfway.claims()
    world.world.settle()
    assert set() == halfway.take_over()
    # the store came back, and `recoverFailover` takes the substitute away
    assert (3, {}) == (world.replicas("tikv"), world.cluster()["status"]["tikv"].get("failureStores") or {})
    assert claims.items() <= halfway.claims().items()
    world.stop()


def test_9_2_a_member_of_pd_that_was_marked_and_came_back(at_rest: Halfway) -> None:
    uid = at_rest.claims()["pd-basic-pd-1"]
    record = {"podName": "basic-pd-1", "memberID": at_rest.member("basic-pd-1"), "pvcUIDSet": {uid: {}}}
    at_rest.set_status({"pd": {"failureMembers": {"basic-pd-1": record | {"createdAt": at_rest.now()}}}})
    claims = at_rest.claims()
    assert set() == at_rest.take_over()
    assert (3, claims) == (at_rest.world.replicas("pd"), at_rest.claims())
    assert not at_rest.world.cluster()["status"]["pd"].get("failureMembers")


def test_9_2_a_member_of_pd_that_was_deleted_and_not_replaced_yet(at_rest: Halfway) -> None:
    uid, member = at_rest.claims()["pd-basic-pd-1"], at_rest.member("basic-pd-1")
    record = {"podName": "basic-pd-1", "memberID": member, "pvcUIDSet": {uid: {}}, "memberDeleted": True}
    at_rest.ask_pd("DELETE", f"members/id/{member}")
    for resource, name in ((PODS, "basic-pd-1"), (PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-1")):
        at_rest.admin.delete(resource, name, NAMESPACE)
    failures = {"basic-pd-1": record | {"createdAt": at_rest.now()}}
    at_rest.set_status({"pd": {"failureMembers": failures, "members": {"basic-pd-1": None}}})
    others = {name: each for name, each in at_rest.claims().items() if name != "pd-basic-pd-1"}
    at_rest.take_over()
    members = at_rest.world.cluster()["status"]["pd"]["members"]
    assert {"basic-pd-0", "basic-pd-1", "basic-pd-2"} == set(members)
    assert (3, {True}) == (at_rest.world.replicas("pd"), {each["health"] for each in members.values()})
    assert others.items() <= at_rest.claims().items()


def test_9_4_a_failed_tidb_that_has_a_substitute(at_rest: Halfway) -> None:
    record = {"podName": "basic-tidb-1", "createdAt": at_rest.now()}
    at_rest.set_status({"tidb": {"failureMembers": {"basic-tidb-1": record}}})
    at_rest.update("tidb", lambda spec: spec.update(replicas=3))
    assert set() == at_rest.take_over()
    assert 2 == at_rest.world.replicas("tidb")


def test_13_leaders_that_a_user_has_moved_away_stay_away_until_he_takes_it_back(at_rest: Halfway) -> None:
    store, now = at_rest.store("basic-tikv-0"), at_rest.now()
    at_rest.annotate_pod("basic-tikv-0", {"tidb.pingcap.com/evict-leader": "none"})
    created = at_rest.world.get(PODS, "basic-tikv-0")["metadata"]["creationTimestamp"]
    entry = {"podCreateTime": created, "beginTime": now, "value": "none"}
    at_rest.set_status({"tikv": {"evictLeader": {"basic-tikv-0": entry}}})
    at_rest.evict(store)
    assert set() == at_rest.take_over()
    assert {store} == at_rest.evicted()
    assert entry == at_rest.world.cluster()["status"]["tikv"]["evictLeader"]["basic-tikv-0"]
    at_rest.annotate_pod("basic-tikv-0", {"tidb.pingcap.com/evict-leader": None})
    at_rest.world.run_until(lambda: not at_rest.evicted(), within=120.0)
    at_rest.world.run_until(lambda: not at_rest.world.cluster()["status"]["tikv"].get("evictLeader"), within=60.0)


def test_10_2_volumes_that_grow_while_their_stateful_set_is_gone(at_rest: Halfway) -> None:
    body = at_rest.world.get(STATEFUL_SETS, "basic-tikv")
    volumes = body["spec"]["template"]["spec"]["volumes"]
    (in_use,) = {each["configMap"]["name"] for each in volumes if "configMap" in each}
    at_rest.world.change(tikv={"requests": {"storage": "2Gi"}})
    at_rest.admin.patch(
        TIDB_CLUSTERS,
        NAME,
        NAMESPACE,
        {"metadata": {"annotations": {"tidb.pingcap.com/configmap-name-before-delete-tikv": in_use}}},
    )
    asked = {"spec.tidb.pingcap.com/revision": "1", "spec.tidb.pingcap.com/storage-size": "2Gi"}
    begun = asked | {"status.tidb.pingcap.com/last-transition-timestamp": at_rest.now()}
    first = {"metadata": {"annotations": begun}, "spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    at_rest.admin.patch(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-0", NAMESPACE, first)
    at_rest.admin.delete(STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    at_rest.world.world.run_until_settled()
    claims = at_rest.claims()
    at_rest.left.items = [each for each in at_rest.left.items if each["metadata"]["name"] != "basic-tikv"]
    assert set() == at_rest.take_over()
    assert claims == at_rest.claims()
    sizes = [at_rest.world.get(PERSISTENT_VOLUME_CLAIMS, f"tikv-basic-tikv-{n}") for n in range(3)]
    assert {"2Gi"} == {each["spec"]["resources"]["requests"]["storage"] for each in sizes}


def test_8_3_pd_has_been_scaled_out_and_its_pod_is_not_there(at_rest: Halfway) -> None:
    at_rest.world.change(pd={"replicas": 5})
    at_rest.update("pd", lambda spec: spec.update(replicas=4))
    at_rest.set_status({"pd": {"phase": "Scale"}})
    assert set() == at_rest.take_over()
    assert 5 == len(at_rest.world.cluster()["status"]["pd"]["members"])


def test_12_a_suspension_that_has_come_to_tikv(at_rest: Halfway) -> None:
    at_rest.world.change(suspendAction={"suspendStatefulSet": True})
    at_rest.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE, propagation="Foreground")
    at_rest.world.world.run_until_settled()
    at_rest.set_status(
        {"tidb": {"phase": "Suspend", "statefulSet": None, "members": None}, "tikv": {"phase": "Suspend"}}
    )
    claims = at_rest.claims()
    at_rest.world.run_until(lambda: at_rest.world.reason() == "Suspended", within=120.0)
    assert ([], claims) == ([each["metadata"]["name"] for each in at_rest.world.every(STATEFUL_SETS)], at_rest.claims())
    at_rest.world.change(suspendAction=None)
    at_rest.world.run_until_ready(within=180.0)
    assert claims == at_rest.claims()
