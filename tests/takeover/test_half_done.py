"""The operator finishes what v1.6 has begun, and does nothing twice (lifecycle.md 7 to 14)."""

import json
from collections.abc import Callable, Iterator, Sequence

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.labels import LAST_APPLIED
from ports.clock import FakeClock
from sandbox.apiserver.refusals import forbidden
from tests.controllers.tidbcluster.test_ticdc import TABLES, tables
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


FLASH: Json = {"replicas": 1, "storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}]}
SCRIPTED: Json = {
    "tiflash": FLASH | {"baseImage": "pingcap/tiflash"},
    "ticdc": {"baseImage": "pingcap/ticdc", "replicas": 1},
    "pump": {"baseImage": "pingcap/tidb-binlog", "replicas": 1, "requests": {"storage": "1Gi"}},
    "tidb": {"version": "v7.5.0"},
}
"""Components with their scripts in their commands."""


@pytest.mark.rule("3.5")
def test_a_cluster_at_rest_stays_so(at_rest: Halfway) -> None:
    def written() -> set[str]:
        return {each for each in at_rest.world.writes() if each.startswith(("patch statefulsets", "patch configmaps"))}

    def generations() -> list[int]:
        return [each["metadata"]["generation"] for each in at_rest.world.every(STATEFUL_SETS)]

    before = generations()
    assert set() == at_rest.take_over()
    # the state at the take-over is noted on each, once
    assert 6 == len(written())
    assert before == generations()
    at_rest.world.restart()
    at_rest.world.forget()
    at_rest.world.run(120.0)
    assert set() == written()


@pytest.mark.parametrize("webhook", ["mirror-everywhere", "variable", "toleration", "pod-label"])
@pytest.mark.rule("3.5")
def test_a_take_over_restarts_no_pod_though_an_admission_webhook_acts_on_each_write(
    at_rest: Halfway, webhook: str
) -> None:
    """The webhook came after v1.6's last write; v1.6 writes nothing where nothing differs."""
    at_rest.world.world.faults.webhook(webhook)
    before = [each["metadata"]["generation"] for each in at_rest.world.every(STATEFUL_SETS)]
    assert set() == at_rest.take_over()
    at_rest.world.run(120.0)
    assert before == [each["metadata"]["generation"] for each in at_rest.world.every(STATEFUL_SETS)]
    assert "Done" == at_rest.world.reason()


@pytest.mark.rule("3.5")
def test_a_take_over_needs_no_write_that_a_policy_refuses(at_rest: Halfway) -> None:
    def policy(of: Resource, tree: Json, old: Json | None) -> None:
        if of == STATEFUL_SETS and old is not None:
            raise forbidden(of, tree["metadata"]["name"], "admission webhook denied the request")

    at_rest.world.world.server.webhooks.append(policy)
    assert set() == at_rest.take_over()
    assert "Done" == at_rest.world.reason()


@pytest.mark.parametrize(
    ("change", "restarted"),
    [
        ({"tidb": {"plugins": ["audit-1"]}}, "tidb"),
        ({"pd": {"startTimeout": 40}}, "pd"),
        ({"enableDynamicConfiguration": False}, "tikv"),
        ({"ticdc": {"config": "gc-ttl = 1000\n"}}, "ticdc"),
        ({"pump": {"config": 'log-level = "debug"\n'}}, "pump"),
        ({"startScriptVersion": "v2"}, "pd tikv tidb tiflash ticdc pump"),
    ],
    ids=["plugins", "timeout", "dynamic", "TiCDC", "Pump", "v2"],
)
@pytest.mark.rule("lifecycle-6.8")
def test_a_change_that_shows_only_in_a_start_script_restarts_pods_after_the_take_over(
    clock: FakeClock, change: Json, restarted: str
) -> None:
    halfway = Halfway(clock, SCRIPTED, pd=1, tikv=1, tidb=1)
    assert set() == halfway.take_over()
    halfway.world.restart()
    pods = halfway.left.pods()
    halfway.world.change(**change)
    halfway.world.run(300.0)
    assert "Done" == halfway.world.reason()
    now = halfway.left.pods()
    assert {f"basic-{each}-0" for each in restarted.split()} == {name for name in pods if now[name] != pods[name]}
    halfway.world.stop()


@pytest.mark.rule("lifecycle-6.5")
def test_in_place_what_shows_in_a_start_script_alone_is_written_and_restarts_no_pod(clock: FakeClock) -> None:
    halfway = Halfway(clock, {"configUpdateStrategy": "InPlace"})
    assert set() == halfway.take_over()
    pods = halfway.left.pods()
    halfway.world.change(tidb={"plugins": ["audit-1"]})
    halfway.world.run(60.0)
    assert "audit-1" in halfway.world.get(CONFIG_MAPS, "basic-tidb")["data"]["startup-script"]
    assert pods == halfway.left.pods()
    halfway.world.stop()


@pytest.mark.parametrize("strategy", ["InPlace", "RollingUpdate"])
@pytest.mark.rule("lifecycle-1.1")
def test_a_configuration_by_helm_stays_until_the_spec_has_one(clock: FakeClock, strategy: str) -> None:
    halfway = Halfway(clock, {"configUpdateStrategy": "InPlace"})
    world, name = halfway.world, "basic-tikv"
    kept = world.get(CONFIG_MAPS, name)["data"] | {"config-file": "[raftstore]\nsync-log = true\n"}
    helm = {"name": name, "labels": {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/component": "tikv"}}
    halfway.admin.delete(CONFIG_MAPS, name, NAMESPACE)
    halfway.admin.create(CONFIG_MAPS, {"metadata": helm, "data": kept}, NAMESPACE)
    world.change(tikv={"config": None}, configUpdateStrategy=strategy)

    assert set() == halfway.take_over()
    world.change(tikv={"replicas": 4})
    world.run(5.0)
    world.run_until_ready(within=120.0)
    before = world.get(CONFIG_MAPS, name)
    assert (kept, helm["labels"], None) == (
        before["data"],
        *(before["metadata"].get(key) for key in ("labels", "ownerReferences")),
    )
    assert 1 == len([each for each in world.every(CONFIG_MAPS) if name in each["metadata"]["name"]])

    pods = halfway.left.pods()
    world.change(tikv={"config": {"log": {"level": "warn"}}})
    world.run(200.0)
    assert before == world.get(CONFIG_MAPS, name)
    restarted = {each for each, uid in halfway.left.pods().items() if uid != pods[each]}
    of_helm = strategy == "InPlace"
    assert ("ForeignOwner" if of_helm else "Done", set() if of_helm else {f"{name}-{n}" for n in range(4)}) == (
        world.reason(),
        restarted,
    )
    world.stop()


@pytest.mark.parametrize("is_recorded", [True, False], ids=["v1.6 wrote it last", "v1.0 did"])
@pytest.mark.rule("lifecycle-11.5")
def test_v10_records_in_pod_templates_stay(at_rest: Halfway, is_recorded: bool) -> None:
    at_rest.note_as_v10("tikv", is_recorded=is_recorded)
    assert LAST_APPLIED in at_rest.annotations(PODS, "basic-tikv-0")
    assert set() == at_rest.take_over()
    # whatever comes next, including a StatefulSet recreated around its pods
    pods = at_rest.left.pods()
    at_rest.world.change(tikv={"requests": {"storage": "2Gi"}}, tidb={"replicas": 3})
    uid = at_rest.world.get(STATEFUL_SETS, "basic-tikv")["metadata"]["uid"]
    at_rest.world.run_until_ready(within=600.0)
    assert uid != at_rest.world.get(STATEFUL_SETS, "basic-tikv")["metadata"]["uid"]
    assert pods.items() <= at_rest.left.pods().items()
    at_rest.world.change(tikv={"version": "v8.5.3"})
    at_rest.world.run_until_ready(within=300.0)
    assert LAST_APPLIED in at_rest.annotations(PODS, "basic-tikv-0")


@pytest.mark.parametrize("moved", [0, 1, 2])
@pytest.mark.rule("lifecycle-7.4")
def test_a_roll_of_tikv_continues_with_the_next_pod(at_rest: Halfway, moved: int) -> None:
    version = "v8.5.3"
    at_rest.world.change(tikv={"version": version})
    at_rest.update("tikv", to(version, 3 - moved))
    at_rest.world.world.run_until_settled()
    store = at_rest.store("basic-tikv-1")
    if moved == 1:
        # it waits for the leaders of the next one
        at_rest.annotate(PODS, "basic-tikv-1", {BEGUN: at_rest.now()})
        at_rest.evict(store)
    at_rest.set_status({"tikv": {"phase": "Upgrade", "stores": {store: {"leaderCountBeforeUpgrade": 10}}}})
    expected = {f"basic-tikv-{ordinal}" for ordinal in range(3 - moved)}
    assert expected == at_rest.take_over()
    assert set() == at_rest.evicted()
    pods = [at_rest.world.get(PODS, f"basic-tikv-{ordinal}") for ordinal in range(3)]
    assert {f"pingcap/tikv:{version}"} == {pod["spec"]["containers"][-1]["image"] for pod in pods}
    assert {None} == {(pod["metadata"].get("annotations") or {}).get(BEGUN) for pod in pods}


@pytest.mark.rule("lifecycle-14")
def test_a_roll_that_an_annotation_holds_continues_when_it_is_removed(at_rest: Halfway) -> None:
    version = "v8.5.3"
    held = {"tidb.pingcap.com/tikv-partition": "2"}
    at_rest.annotate(TIDB_CLUSTERS, NAME, held)
    at_rest.world.change(tikv={"version": version})
    at_rest.update("tikv", to(version, 2))
    at_rest.world.world.run_until_settled()
    at_rest.set_status({"tikv": {"phase": "Upgrade"}})
    pods = at_rest.left.pods()
    at_rest.world.run_until(lambda: at_rest.world.reason() == "HeldBack")
    assert "keeps basic-tikv-0, basic-tikv-1 on the old revision" in at_rest.world.progressing
    at_rest.world.run(35.0)
    assert (pods, set()) == (at_rest.left.pods(), at_rest.evicted())
    at_rest.annotate(TIDB_CLUSTERS, NAME, dict.fromkeys(held))
    at_rest.world.run_until_ready(within=300.0)
    changed = {name for name, uid in at_rest.left.pods().items() if uid != pods[name]}
    assert {"basic-tikv-0", "basic-tikv-1"} == changed


@pytest.mark.rule("lifecycle-14")
def test_v16_notes_on_objects_restart_nothing_and_are_removed_where_they_would_mislead(at_rest: Halfway) -> None:
    now, own = at_rest.now(), "tidb.pingcap.com/"
    upgrade = [f"{own}smooth-upgrade-{each}" for each in ("ddl-paused", "source-version", "target-version")]
    misleading: dict[tuple[Resource, str], Json] = {
        (TIDB_CLUSTERS, NAME): dict.fromkeys(upgrade, "true")
        | {f"{own}smooth-upgrade-started-at": now, f"{own}configmap-name-before-delete-tikv": "basic-tikv-gone"},
        (PODS, "basic-tikv-0"): {
            BEGUN: now,
            f"{own}tikv-evict-leader-end-at": now,
            f"{own}tikv-no-active-store-since": now,
            f"{own}scale-in-time": now,
        },
        (PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-0"): {
            DEFERRED: now,
            f"{own}scale-in-time": now,
            f"{own}pod-scheduling": now,
        },
    }
    records: dict[tuple[Resource, str], Json] = {
        (PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-1"): {
            f"{kind}.{own}{key}": text
            for kind in ("spec", "status")
            for key, text in (("revision", "1"), ("storage-size", "1Gi"))
        },
        (STATEFUL_SETS, "basic-tikv"): {f"{own}sync-timestamp": now, f"{own}owner-generation": "1"},
    }
    for (resource, name), annotations in (misleading | records).items():
        at_rest.annotate(resource, name, annotations)
    at_rest.evict(at_rest.store("basic-tikv-0"))
    claims = at_rest.claims()
    assert set() == at_rest.take_over()
    at_rest.world.run(35.0)
    assert (claims, set()) == (at_rest.claims(), at_rest.evicted())
    kept = {where: noted.keys() & at_rest.annotations(*where) for where, noted in (misleading | records).items()}
    assert {where: set(records.get(where, ())) for where in kept} == kept


@pytest.mark.rule("lifecycle-8.3")
def test_a_scale_in_of_pd_continues_after_the_removal_of_the_member(clock: FakeClock) -> None:
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
@pytest.mark.rule("lifecycle-8.5")
def test_a_scale_in_of_tikv_continues_whether_its_store_is_leaving_or_gone(clock: FakeClock, gone: bool) -> None:
    halfway = Halfway(clock, tikv=4)
    store = halfway.store("basic-tikv-3")
    halfway.world.change(tikv={"replicas": 3})
    halfway.annotate(PODS, "basic-tikv-3", {"tidb.pingcap.com/scale-in-time": halfway.now()})
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


@pytest.mark.rule("lifecycle-8.5")
def test_a_cancelled_scale_in_of_tikv_keeps_the_pod_although_its_store_was_leaving(clock: FakeClock) -> None:
    halfway = Halfway(clock, tikv=4)
    store, pods = halfway.store("basic-tikv-3"), halfway.left.pods()
    halfway.world.world.faults.regions_frozen(f"{NAMESPACE}/{NAME}")
    halfway.ask_pd("DELETE", f"store/{store}")
    halfway.set_status({"tikv": {"phase": "Scale", "stores": {store: {"state": "Offline"}}}})
    for replicas in (3, 4):
        halfway.world.change(tikv={"replicas": replicas})
        halfway.world.run(5.0)
    halfway.world.run_until_ready(within=60.0)
    assert (pods, 4) == (halfway.left.pods(), len(halfway.world.cluster()["status"]["tikv"]["stores"]))
    halfway.world.stop()


@pytest.mark.parametrize("gone", [False, True], ids=["Offline", "Tombstone"])
@pytest.mark.rule("lifecycle-8.6")
def test_a_scale_in_of_tiflash_continues_whether_its_store_is_leaving_or_gone(clock: FakeClock, gone: bool) -> None:
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    halfway = Halfway(clock, {"tiflash": {"baseImage": "pingcap/tiflash", "replicas": 2, "storageClaims": [claim]}})
    store = halfway.store("basic-tiflash-1")
    halfway.world.change(tiflash={"replicas": 1})
    halfway.ask_pd("DELETE", f"store/{store}")
    halfway.set_status({"tiflash": {"phase": "Scale", "stores": {store: {"state": "Offline"}}}})
    if gone:
        halfway.world.world.advance(30.0)
        halfway.set_status({"tiflash": {"stores": {store: None}}})
        halfway.defer("data0-basic-tiflash-1")
    claims = halfway.claims()
    assert set() == halfway.take_over()
    assert (1, claims) == (halfway.world.replicas("tiflash"), halfway.claims())
    kept = halfway.world.get(PERSISTENT_VOLUME_CLAIMS, "data0-basic-tiflash-1")
    assert DEFERRED in kept["metadata"]["annotations"]
    halfway.world.stop()


@pytest.mark.parametrize("taken_over", [False, True], ids=["before the take-over", "after it"])
@pytest.mark.parametrize("gone", [False, True], ids=["Offline", "Tombstone"])
@pytest.mark.rule("lifecycle-8.6")
def test_a_scale_in_of_tiflash_that_is_taken_back(clock: FakeClock, gone: bool, taken_over: bool) -> None:
    halfway = Halfway(clock, {"tiflash": FLASH | {"baseImage": "pingcap/tiflash", "replicas": 2}})
    store, pods = halfway.store("basic-tiflash-1"), halfway.left.pods()
    heal = halfway.world.world.faults.regions_frozen(f"{NAMESPACE}/{NAME}")
    halfway.ask_pd("DELETE", f"store/{store}")
    halfway.set_status({"tiflash": {"phase": "Scale", "stores": {store: {"state": "Offline"}}}})
    if gone:
        heal()
        halfway.world.world.advance(30.0)
    if taken_over:
        halfway.world.change(tiflash={"replicas": 1})
        halfway.world.run(5.0)
        halfway.world.change(tiflash={"replicas": 2})
    halfway.world.run(5.0)
    halfway.world.run_until_ready(within=300.0)
    stores = halfway.world.cluster()["status"]["tiflash"]["stores"]
    # data that PD has moved away never returns
    assert (2, gone) == (len(stores), store not in stores)
    restarted = {name for name, uid in halfway.left.pods().items() if uid != pods[name]}
    assert {"basic-tiflash-1"} == restarted if gone else set() == restarted
    halfway.world.stop()


@pytest.mark.rule("lifecycle-8.8")
def test_a_scale_in_of_ticdc_whose_capture_gives_up_its_tables(clock: FakeClock) -> None:
    halfway = Halfway(clock, {"ticdc": {"baseImage": "pingcap/ticdc", "replicas": 2}})
    halfway.world.world.faults.changefeed(f"{NAMESPACE}/{NAME}", TABLES)
    halfway.world.world.advance(10.0)
    halfway.world.change(ticdc={"replicas": 1})
    leaving = halfway.world.cluster()["status"]["ticdc"]["captures"]["basic-ticdc-1"]
    halfway.annotate(PODS, "basic-ticdc-1", {"tidb.pingcap.com/ticdc-graceful-shutdown-begin-time": halfway.now()})
    drain = "http://basic-ticdc-0.basic-ticdc-peer.default:8301/api/v1/captures/drain"
    halfway.ask("PUT", drain, {"capture_id": leaving["id"]})
    assert set() == halfway.take_over()
    assert (1, {"basic-ticdc-0": TABLES}) == (halfway.world.replicas("ticdc"), tables(halfway.world))
    halfway.world.stop()


@pytest.mark.rule("lifecycle-8.9")
def test_a_deferred_claim_is_deleted_before_its_ordinal_returns(clock: FakeClock) -> None:
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


@pytest.mark.rule("lifecycle-9.3")
def test_removes_a_half_made_substitute_of_tikv_whose_store_came_back(clock: FakeClock) -> None:
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


@pytest.mark.rule("lifecycle-9.2")
def test_a_member_of_pd_that_was_marked_and_came_back(at_rest: Halfway) -> None:
    uid = at_rest.claims()["pd-basic-pd-1"]
    record = {"podName": "basic-pd-1", "memberID": at_rest.member("basic-pd-1"), "pvcUIDSet": {uid: {}}}
    at_rest.set_status({"pd": {"failureMembers": {"basic-pd-1": record | {"createdAt": at_rest.now()}}}})
    claims = at_rest.claims()
    assert set() == at_rest.take_over()
    assert (3, claims) == (at_rest.world.replicas("pd"), at_rest.claims())
    assert not at_rest.world.cluster()["status"]["pd"].get("failureMembers")


@pytest.mark.rule("lifecycle-9.2")
def test_a_failover_of_pd_continues_after_the_removal_of_the_member(at_rest: Halfway) -> None:
    uid, member = at_rest.claims()["pd-basic-pd-1"], at_rest.member("basic-pd-1")
    record = {"podName": "basic-pd-1", "memberID": member, "pvcUIDSet": {uid: {}}, "memberDeleted": True}
    at_rest.ask_pd("DELETE", f"members/id/{member}")
    for resource, name in ((PODS, "basic-pd-1"), (PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-1")):
        at_rest.admin.delete(resource, name, NAMESPACE)
    failures = {"basic-pd-1": record | {"createdAt": at_rest.now()}}
    at_rest.set_status({"pd": {"failureMembers": failures, "members": {"basic-pd-1": None}}})
    # the process of a removed member ends no sooner than any other
    at_rest.world.world.run_until(lambda: uid not in at_rest.claims().values(), 10.0)
    others = {name: each for name, each in at_rest.claims().items() if name != "pd-basic-pd-1"}
    at_rest.take_over()
    members = at_rest.world.cluster()["status"]["pd"]["members"]
    assert {"basic-pd-0", "basic-pd-1", "basic-pd-2"} == set(members)
    assert (3, {True}) == (at_rest.world.replicas("pd"), {each["health"] for each in members.values()})
    assert others.items() <= at_rest.claims().items()


@pytest.mark.rule("lifecycle-9.4")
def test_a_failed_tidb_that_has_a_substitute(at_rest: Halfway) -> None:
    record = {"podName": "basic-tidb-1", "createdAt": at_rest.now()}
    at_rest.set_status({"tidb": {"failureMembers": {"basic-tidb-1": record}}})
    at_rest.update("tidb", lambda spec: spec.update(replicas=3))
    assert set() == at_rest.take_over()
    assert 2 == at_rest.world.replicas("tidb")


@pytest.mark.rule("lifecycle-13")
def test_leaders_that_a_user_has_moved_away_stay_away_until_he_takes_it_back(at_rest: Halfway) -> None:
    store, now = at_rest.store("basic-tikv-0"), at_rest.now()
    at_rest.annotate(PODS, "basic-tikv-0", {"tidb.pingcap.com/evict-leader": "none"})
    created = at_rest.world.get(PODS, "basic-tikv-0")["metadata"]["creationTimestamp"]
    entry = {"podCreateTime": created, "beginTime": now, "value": "none"}
    at_rest.set_status({"tikv": {"evictLeader": {"basic-tikv-0": entry}}})
    at_rest.evict(store)
    assert set() == at_rest.take_over()
    assert {store} == at_rest.evicted()
    assert entry == at_rest.world.cluster()["status"]["tikv"]["evictLeader"]["basic-tikv-0"]
    at_rest.annotate(PODS, "basic-tikv-0", {"tidb.pingcap.com/evict-leader": None})
    at_rest.world.run_until(lambda: not at_rest.evicted(), within=120.0)
    at_rest.world.run_until(lambda: not at_rest.world.cluster()["status"]["tikv"].get("evictLeader"), within=60.0)


@pytest.mark.rule("lifecycle-10.2")
def test_volumes_grow_while_their_stateful_set_is_missing(at_rest: Halfway) -> None:
    body = at_rest.world.get(STATEFUL_SETS, "basic-tikv")
    volumes = body["spec"]["template"]["spec"]["volumes"]
    (in_use,) = {each["configMap"]["name"] for each in volumes if "configMap" in each}
    at_rest.world.change(tikv={"requests": {"storage": "2Gi"}})
    at_rest.annotate(TIDB_CLUSTERS, NAME, {"tidb.pingcap.com/configmap-name-before-delete-tikv": in_use})
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


@pytest.mark.parametrize("gone", [False, True], ids=["Offline", "claim deleted"])
@pytest.mark.rule("lifecycle-10.4")
def test_volumes_of_which_one_is_being_replaced(clock: FakeClock, gone: bool) -> None:
    def smaller(spec: Json) -> None:
        spec |= {"replicas": 4, "updateStrategy": {"type": "OnDelete"}}
        for template in spec["volumeClaimTemplates"]:
            template["spec"]["resources"]["requests"]["storage"] = "512Mi"

    halfway = Halfway(clock, {"enablePVCReplace": True})
    store, before = halfway.store("basic-tikv-0"), halfway.claims()
    halfway.world.change(tikv={"requests": {"storage": "512Mi"}})
    halfway.remake("tikv", smaller)
    halfway.annotate(PODS, "basic-tikv-0", {"tidb.pingcap.com/replace-volume": "true"})
    halfway.ask_pd("DELETE", f"store/{store}")
    there: Json | None = {"state": "Offline"}
    if gone:
        halfway.world.world.advance(30.0)
        halfway.admin.delete(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-0", NAMESPACE)
        there = None
    halfway.set_status({"tikv": {"volReplaceInProgress": True, "stores": {store: there}}})
    replaced = {f"basic-tikv-{ordinal}" for ordinal in range(3)}
    assert replaced == halfway.take_over(within=1800.0)
    claims = {name: uid for name, uid in halfway.claims().items() if name != "tikv-basic-tikv-3"}
    assert {f"tikv-{name}" for name in replaced} == {name for name, uid in claims.items() if before[name] != uid}
    assert (3, 3) == (halfway.world.replicas("tikv"), len(halfway.world.cluster()["status"]["tikv"]["stores"]))
    halfway.world.stop()


@pytest.mark.rule("lifecycle-8.3")
def test_pd_has_been_scaled_out_and_its_pod_is_not_there(at_rest: Halfway) -> None:
    at_rest.world.change(pd={"replicas": 5})
    at_rest.update("pd", lambda spec: spec.update(replicas=4))
    at_rest.set_status({"pd": {"phase": "Scale"}})
    assert set() == at_rest.take_over()
    assert 5 == len(at_rest.world.cluster()["status"]["pd"]["members"])


@pytest.mark.rule("lifecycle-5.1")
def test_a_member_of_pd_that_was_added_and_never_started(at_rest: Halfway) -> None:
    heal = at_rest.world.world.faults.join_interrupted("default/basic-pd-3")
    at_rest.world.change(pd={"replicas": 4})
    at_rest.update("pd", lambda spec: spec.update(replicas=4))
    at_rest.set_status({"pd": {"phase": "Scale"}})
    at_rest.world.world.run_until_settled()
    members = json.loads(at_rest.ask_pd("GET", "members"))["members"]
    assert 4 == len(members)
    heal()
    assert set() == at_rest.take_over()
    assert {f"basic-pd-{ordinal}" for ordinal in range(4)} == set(at_rest.world.cluster()["status"]["pd"]["members"])


@pytest.mark.rule("lifecycle-3.2")
def test_a_change_of_a_paused_cluster_waits_until_it_is_resumed(at_rest: Halfway) -> None:
    at_rest.world.change(paused=True, tidb={"replicas": 3}, tikv={"version": "v8.5.3"})
    at_rest.world.forget()
    pods = at_rest.left.pods()
    at_rest.world.run_until(lambda: at_rest.world.reason() == "Paused")
    at_rest.world.run(35.0)
    assert pods == at_rest.left.pods()
    told = ("create events", "patch tidbclusters.pingcap.com basic")
    assert [] == [each for each in at_rest.world.writes() if not each.startswith(told)]
    at_rest.world.change(paused=False)
    assert {f"basic-tikv-{ordinal}" for ordinal in range(3)} == at_rest.take_over()
    assert 3 == at_rest.world.replicas("tidb")


@pytest.mark.parametrize("gone", [("tidb",), ("tidb", "tikv", "pd")], ids=["come to tikv", "done"])
@pytest.mark.rule("lifecycle-12")
def test_a_suspension_is_finished_and_ended(at_rest: Halfway, gone: Sequence[str]) -> None:
    at_rest.world.change(suspendAction={"suspendStatefulSet": True})
    for component in gone:
        at_rest.admin.delete(STATEFUL_SETS, f"basic-{component}", NAMESPACE, propagation="Foreground")
    at_rest.world.world.run_until_settled()
    suspended: Json = {"phase": "Suspend", "synced": False, "statefulSet": None, "members": None, "stores": None}
    at_rest.set_status({"tikv": {"phase": "Suspend"}, **dict.fromkeys(gone, suspended)})
    claims = at_rest.claims()
    at_rest.world.run_until(lambda: at_rest.world.reason() == "Suspended", within=120.0)
    assert ([], claims) == ([each["metadata"]["name"] for each in at_rest.world.every(STATEFUL_SETS)], at_rest.claims())
    at_rest.world.change(suspendAction=None)
    at_rest.world.run_until_ready(within=180.0)
    assert claims == at_rest.claims()
