"""Losses of members in a whole world: which are replaced, which are not, and what the status says (lifecycle.md 9,
16.4)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.objects import Json, condition_of
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member.context import FailoverSettings
from member.labels import CLEAR_FAILURE_RECORDS
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from sandbox.kubelet.nodes import NodeSpec
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

PERIOD = 60.0
QUICKLY = FailoverSettings(pd_period=PERIOD, tikv_period=PERIOD, tidb_period=PERIOD)
REFUSED = Fault(refusal=Refusal(409, "Conflict", "somebody was faster"))
NODES = tuple(NodeSpec(f"node-{index}", f"192.168.0.{index + 10}", f"zone-{index}") for index in range(6))


def cluster(pd: int = 3, tikv: int = 3, tidb: int = 2, most: int = 3) -> Json:
    """`basic`, with this many members."""
    body = sample("basic")
    for component, replicas in (("pd", pd), ("tikv", tikv), ("tidb", tidb)):
        body["spec"][component] |= {"replicas": replicas, "maxFailoverCount": most}
    # PD reports a store as Down after a minute instead of half an hour
    body["spec"]["pd"]["config"] = '[schedule]\nmax-store-down-time = "1m"\n'
    return body


def failing_over(clock: FakeClock, body: Json, failover: FailoverSettings = QUICKLY) -> Iterator[OperatorWorld]:
    """A Ready cluster on six nodes; no step of a failover needs a resync."""
    settings = replace(SETTINGS, failover=failover)
    world = OperatorWorld(clock=clock, nodes=NODES, settings=settings)
    world.apply(body)
    world.run_until_ready()
    world.operator.resyncs = False
    world.forget()
    yield world
    world.stop()


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """A cluster of three PD, three TiKV and two TiDB, Ready."""
    yield from failing_over(clock, cluster())


def node_of(world: OperatorWorld, pod: str) -> str:
    return str(world.get(PODS, pod)["spec"]["nodeName"])


def uid_of(world: OperatorWorld, claim: str) -> str:
    return str(world.get(PERSISTENT_VOLUME_CLAIMS, claim)["metadata"]["uid"])


def status(world: OperatorWorld, component: str) -> Json:
    found: Json = world.cluster()["status"][component]
    return found


def records(world: OperatorWorld, component: str) -> list[str]:
    """The pods that are recorded as failed."""
    field = "failureStores" if component == "tikv" else "failureMembers"
    return sorted(record["podName"] for record in (status(world, component).get(field) or {}).values())


def said(world: OperatorWorld, component: str) -> tuple[str, str]:
    """Reason and message of a component's Progressing condition."""
    (found,) = [each for each in status(world, component)["conditions"] if each["type"] == "Progressing"]
    return found["reason"], found["message"]


def deletions(world: OperatorWorld) -> list[str]:
    return [write for write in world.writes() if write.startswith("delete")]


def members(world: OperatorWorld) -> list[str]:
    """The members that PD itself lists."""
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return sorted(member.name for member in pd.members.values())


# PD


@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
@pytest.mark.rule("F12")
def test_a_finished_roll_excuses_no_loss(world: OperatorWorld, strategy: str) -> None:
    world.change(statefulSetUpdateStrategy=strategy, pd={"annotations": {"a": "b"}})
    world.run(30.0)
    for pod in ("basic-pd-2", "basic-pd-1", "basic-pd-0"):
        world.admin.delete(PODS, pod, NAMESPACE)
        world.run(30.0)
    world.run_until_ready()
    world.world.faults.pod_pending(f"{NAMESPACE}/basic-pd-2")
    world.admin.delete(PODS, "basic-pd-2", NAMESPACE)
    world.run_until(lambda: world.replicas("pd") == 4, 2 * PERIOD)
    assert ["basic-pd-2"] == records(world, "pd")


@pytest.mark.rule("lifecycle-9.2")
def test_replaces_a_pd_member_on_a_lost_node_and_removes_the_substitute_later(world: OperatorWorld) -> None:
    claim, member = uid_of(world, "pd-basic-pd-2"), status(world, "pd")["members"]["basic-pd-2"]["id"]
    heal = world.world.faults.node_gone(node_of(world, "basic-pd-2"))

    world.run(PERIOD / 2)
    reason, message = said(world, "pd")
    assert "PDMemberUnhealthy" == reason
    assert "basic-pd-2 has been lost since 2026-01-01T00:00:0" in message
    assert "it will be replaced at 2026-01-01T00:01:0" in message
    assert ([], []) == (records(world, "pd"), deletions(world))

    world.run_until(lambda: world.replicas("pd") == 4, PERIOD)
    record = status(world, "pd")["failureMembers"]["basic-pd-2"]
    assert (member, {claim: {}}) == (record["memberID"], record["pvcUIDSet"])
    assert ["basic-pd-0", "basic-pd-1"] == members(world)
    assert ["delete persistentvolumeclaims pd-basic-pd-2", "delete pods basic-pd-2"] == deletions(world)
    world.run_until(lambda: said(world, "pd")[0] == "PDFailedOver")
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-3"] == members(world)

    heal()
    world.run_until_ready(within=120.0)
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-2"] == members(world)
    assert ([], 3) == (records(world, "pd"), world.replicas("pd"))
    assert claim != uid_of(world, "pd-basic-pd-2")
    for once in ("PDMemberUnhealthy", "PDMemberDeleted"):
        (event,) = world.events(once)
        assert "basic-pd-2" in event["message"]
        assert 1 == event["count"]


@pytest.mark.rule("I23")
def test_records_a_loss_before_removing_anything(world: OperatorWorld) -> None:
    heal = world.world.faults.api_fault(REFUSED, verb="patch", resource="tidbclusters.pingcap.com")
    world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run(3 * PERIOD)
    assert ([], []) == (deletions(world), [each.url for each in world.operator.dataplane.writes()])
    heal()
    world.run(120.0)
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-3"] == members(world)


@pytest.mark.rule("F45")
def test_the_next_process_continues_from_the_record(world: OperatorWorld) -> None:
    heal = world.world.faults.pd_answers(f"{NAMESPACE}/basic", 500, method="DELETE")
    world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run(2 * PERIOD)
    assert (["basic-pd-2"], 3, []) == (records(world, "pd"), world.replicas("pd"), deletions(world))
    world.restart()
    heal()
    world.run(60.0)
    assert (["basic-pd-2"], 4) == (records(world, "pd"), world.replicas("pd"))
    assert ["basic-pd-0", "basic-pd-1", "basic-pd-3"] == members(world)


@pytest.mark.rule("lifecycle-9.2")
def test_drops_the_record_of_a_member_that_recovered_before_any_action(world: OperatorWorld) -> None:
    world.world.faults.pd_answers(f"{NAMESPACE}/basic", 500, method="DELETE")
    heal = world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run(2 * PERIOD)
    assert ["basic-pd-2"] == records(world, "pd")
    heal()
    world.run_until_ready()
    assert ([], [], 3) == (records(world, "pd"), deletions(world), world.replicas("pd"))


@pytest.mark.rule("lifecycle-9.2")
def test_a_member_that_lost_its_disk_rejoins_automatically(world: OperatorWorld) -> None:
    claim = uid_of(world, "pd-basic-pd-1")
    world.world.faults.disk_lost(NAMESPACE, "pd-basic-pd-1")
    world.world.faults.pod_crash(f"{NAMESPACE}/basic-pd-1")
    world.run(PERIOD / 2)
    assert "PDMemberUnhealthy" == said(world, "pd")[0]
    world.run(PERIOD)
    world.run_until_ready(within=180.0)
    assert (["basic-pd-0", "basic-pd-1", "basic-pd-2"], 3) == (members(world), world.replicas("pd"))
    assert claim != uid_of(world, "pd-basic-pd-1")


@pytest.mark.rule("lifecycle-9.2", "F29")
def test_removes_a_member_that_a_lost_pod_registered_after_its_removal(world: OperatorWorld) -> None:
    heal = world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run_until(lambda: said(world, "pd")[0] == "PDFailedOver", within=3 * PERIOD)
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    host = "basic-pd-2.basic-pd-peer.default.svc"
    left = pd.add("basic-pd-2", f"http://{host}:2380", f"http://{host}:2379", "v8.5.2")
    heal()
    world.run(PERIOD / 2)
    assert left.id in pd.members
    world.run_until_ready(within=3 * PERIOD)
    assert left.id in pd.removed
    assert (["basic-pd-0", "basic-pd-1", "basic-pd-2"], 3) == (members(world), world.replicas("pd"))


@pytest.mark.rule("I22", "R18")
def test_a_crash_looping_store_is_lost_although_its_pod_is_ready_in_between(
    world: OperatorWorld,
) -> None:
    world.world.faults.disk_lost(NAMESPACE, "tikv-basic-tikv-1")
    world.world.faults.pod_crash(f"{NAMESPACE}/basic-tikv-1")
    world.run(3.5 * PERIOD)
    assert ["basic-tikv-1"] == records(world, "tikv")
    assert "TiKVFailedOver" == said(world, "tikv")[0]


@pytest.mark.rule("I29")
def test_neither_writes_nor_reads_while_substitutes_serve(world: OperatorWorld) -> None:
    world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run(2 * PERIOD)
    assert "PDFailedOver" == said(world, "pd")[0]
    world.forget()
    world.run(PERIOD)
    assert ([], []) == (world.writes(), world.reads())


@pytest.mark.rule("lifecycle-9.1")
def test_one_witness_does_not_prove_a_loss(world: OperatorWorld) -> None:
    """The processes stand still, their pods stay Ready; the processes of other pods serve, although their pods are not
    Ready."""
    world.world.faults.pod_hang(f"{NAMESPACE}/basic-pd-2")
    world.world.faults.pod_unready(f"{NAMESPACE}/basic-tidb-1")
    world.world.faults.pod_unready(f"{NAMESPACE}/basic-tikv-1")
    world.run(3 * PERIOD)
    assert [[], [], []] == [records(world, component) for component in ("pd", "tikv", "tidb")]


@pytest.mark.rule("F43", "R17")
def test_a_partitioned_operator_replaces_nothing(world: OperatorWorld) -> None:
    world.world.faults.network_cut()
    world.world.faults.pod_unready(f"{NAMESPACE}/basic-*")
    world.run(3 * PERIOD)
    assert [[], [], []] == [records(world, component) for component in ("pd", "tikv", "tidb")]
    assert [] == deletions(world)


@pytest.mark.rule("F43")
def test_replaces_nothing_while_most_requests_of_the_operator_fail(clock: FakeClock) -> None:
    for world in failing_over(clock, cluster(tidb=3)):
        world.world.faults.network_cut(f"{NAMESPACE}/basic-tidb-*")
        world.world.faults.pod_unready(f"{NAMESPACE}/basic-tidb-*")
        world.run(3 * PERIOD)
        assert [] == records(world, "tidb")


@pytest.mark.rule("F43")
def test_replaces_a_lost_store_and_member_although_tidb_is_unhealthy(clock: FakeClock) -> None:
    for world in failing_over(clock, cluster(tidb=4)):
        world.world.faults.network_cut(f"{NAMESPACE}/basic-tidb-*")
        for pod in ("basic-pd-2", "basic-tikv-2"):
            world.world.faults.pod_crash_loop(f"{NAMESPACE}/{pod}")
        world.run_until(lambda: bool(records(world, "pd") and records(world, "tikv")), 40 * PERIOD)  # noqa: B023
        world.run(2 * PERIOD)
        assert (["basic-pd-2"], ["basic-tikv-2"]) == (records(world, "pd"), records(world, "tikv"))


@pytest.mark.rule("R10")
def test_does_not_replace_a_member_that_recovers_in_time(world: OperatorWorld) -> None:
    for _ in range(3):
        heal = world.world.faults.node_gone(node_of(world, "basic-pd-2"))
        world.run(PERIOD - 10.0)
        heal()
        world.run(30.0)
    assert ([], []) == (records(world, "pd"), records(world, "tidb"))


@pytest.mark.rule("F44")
def test_a_new_process_waits_a_whole_period_for_every_member(world: OperatorWorld) -> None:
    world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run(PERIOD - 10.0)
    world.restart()
    world.run(PERIOD - 10.0)
    assert [] == records(world, "pd")
    world.run(60.0)
    assert ["basic-pd-2"] == records(world, "pd")


@pytest.mark.rule("R29")
def test_leaves_a_lost_majority_to_the_user(world: OperatorWorld) -> None:
    for ordinal in (1, 2):
        world.world.faults.node_gone(node_of(world, f"basic-pd-{ordinal}"))
    world.run(4 * PERIOD)
    reason, message = said(world, "pd")
    assert "PDQuorumLost" == reason
    assert "2 of 3 PD members are lost: basic-pd-1, basic-pd-2" in message
    assert "restore a majority manually" in message
    assert (3, [], []) == (world.replicas("pd"), records(world, "pd"), deletions(world))
    assert 1 == len(world.events("PDQuorumLost"))


@pytest.mark.rule("R29")
def test_leaves_a_single_crashing_pd_to_the_user(clock: FakeClock) -> None:
    for world in failing_over(clock, cluster(pd=1)):
        world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-pd-0")
        world.run(4 * PERIOD)
        reason, message = said(world, "pd")
        assert "PDQuorumLost" == reason
        assert "1 of 1 PD members are lost: basic-pd-0 (container pd: CrashLoopBackOff: Error, exit code 1)" in message
        assert (1, 3, 2) == (world.replicas("pd"), world.replicas("tikv"), world.replicas("tidb"))


@pytest.mark.rule("F12")
def test_does_not_replace_pods_that_its_own_roll_restarted(world: OperatorWorld) -> None:
    world.world.faults.image_missing("*:v9.9.9")
    world.change(version="v9.9.9")
    world.run(3 * PERIOD)
    assert [[], [], []] == [records(world, component) for component in ("pd", "tikv", "tidb")]
    assert (3, 3, 2) == (world.replicas("pd"), world.replicas("tikv"), world.replicas("tidb"))


@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.rule("F12")
def test_replaces_a_pod_whose_volume_a_client_deletes_during_its_restart(world: OperatorWorld, component: str) -> None:
    """Our roll ended the pod, but the data went with the claim: the store cannot recover."""
    pod = f"basic-{component}-2"
    world.change(**{component: {"nodeSelector": {"no-such": "label"}}})
    world.run_until(lambda: "Unschedulable" in said(world, component)[1])
    world.run(2.0)
    world.admin.delete(PERSISTENT_VOLUME_CLAIMS, f"{component}-{pod}", NAMESPACE)
    world.run(PERIOD / 2)
    assert [] == records(world, component)

    world.change(**{component: {"nodeSelector": None, "annotations": {"a": "b"}}})
    world.run_until(lambda: records(world, component) == [pod], PERIOD * 4)
    world.run_until(lambda: world.reason() in ("Done", "PDFailedOver", "TiKVFailedOver"), PERIOD * 10)


@pytest.mark.parametrize("component", ["pd", "tikv"])
@pytest.mark.rule("F12")
def test_replaces_a_pod_on_a_lost_machine_during_a_roll_although_the_operator_restarts(
    world: OperatorWorld, component: str
) -> None:
    """The state of the pod's process is unknown, so the roll leaves the pod to failover."""
    pod = f"basic-{component}-1"
    world.world.faults.node_gone(node_of(world, pod))
    world.change(**{component: {"annotations": {"a": "b"}}})
    world.run(PERIOD / 2)
    assert "deletionTimestamp" not in world.get(PODS, pod)["metadata"]
    assert [] == records(world, component)
    world.restart()
    world.run_until(lambda: records(world, component) == [pod], PERIOD * 4)


def lose_its_disk_in_its_restart(world: OperatorWorld, pod: str) -> None:
    """A roll restarts PD's pods, and one of them restarts on an empty volume; no client intervenes for long."""
    world.change(pd={"annotations": {"a": "b"}})
    world.run_until(lambda: "deletionTimestamp" in world.get(PODS, pod)["metadata"])
    world.world.faults.disk_lost(NAMESPACE, f"pd-{pod}")
    world.run(2 * PERIOD)
    assert [] == records(world, "pd"), "it may just take its time"


@pytest.mark.rule("F12")
def test_replaces_a_pod_that_loses_its_disk_in_its_restart_if_others_serve_its_revision(
    world: OperatorWorld,
) -> None:
    lose_its_disk_in_its_restart(world, "basic-pd-1")
    world.run_until(lambda: records(world, "pd") == ["basic-pd-1"], 2 * PERIOD)
    world.run_until(lambda: world.reason() in ("Done", "PDFailedOver"), 5 * PERIOD)


@pytest.mark.rule("F12")
def test_does_not_replace_the_first_pod_of_a_revision_that_does_not_serve(world: OperatorWorld) -> None:
    lose_its_disk_in_its_restart(world, "basic-pd-2")
    world.run(5 * PERIOD)
    assert [] == records(world, "pd")
    # a status that comes and goes with each start of the container is written at intervals
    world.run_until(lambda: "basic-pd-2: container pd: CrashLoopBackOff" in said(world, "pd")[1], PERIOD)


@pytest.mark.parametrize(("most", "failover"), [(0, QUICKLY), (3, replace(QUICKLY, auto=False))], ids=["max 0", "off"])
@pytest.mark.rule("I25")
def test_does_not_fail_over_if_the_user_disables_it(clock: FakeClock, most: int, failover: FailoverSettings) -> None:
    for world in failing_over(clock, cluster(most=most), failover):
        for pod in ("basic-pd-2", "basic-tikv-2", "basic-tidb-1"):
            world.world.faults.node_gone(node_of(world, pod))
        world.run(3 * PERIOD)
        assert [[], [], []] == [records(world, component) for component in ("pd", "tikv", "tidb")]
        assert [] == deletions(world)


@pytest.mark.rule("F39")
def test_no_more_than_the_limit_is_replaced(clock: FakeClock) -> None:
    for world in failing_over(clock, cluster(tidb=4, most=1)):
        world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-0")
        world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-1")
        world.run(2 * PERIOD)
        assert (["basic-tidb-0"], 5) == (records(world, "tidb"), world.replicas("tidb"))
        reason, message = said(world, "tidb")
        assert "FailoverLimit" == reason
        assert "spec.tidb.maxFailoverCount" in message


# TiKV


def lose_a_store(world: OperatorWorld) -> None:
    """The node of basic-tikv-1 is gone until its substitute serves, and afterwards as long as the test needs."""
    world.world.faults.node_gone(node_of(world, "basic-tikv-1"))
    world.run_until(lambda: said(world, "tikv")[0] == "TiKVFailedOver", 5 * PERIOD)


@pytest.mark.rule("lifecycle-9.3")
def test_a_lost_store_is_replaced_and_given_back_on_command(world: OperatorWorld) -> None:
    claim = uid_of(world, "tikv-basic-tikv-1")
    lose_a_store(world)
    assert (["basic-tikv-1"], 4) == (records(world, "tikv"), world.replicas("tikv"))
    (record,) = status(world, "tikv")["failureStores"].values()
    assert {claim: {}} == record["pvcUIDSet"]
    (event,) = world.events("Unhealthy")
    assert "basic-tikv-1 has been Down" in event["message"]
    assert not [each for each in deletions(world) if "tikv" in each]
    uid = status(world, "tikv")["failoverUID"]
    assert f"spec.tikv.failover.recoverByUID: {uid}" in said(world, "tikv")[1]

    world.change(tikv={"failover": {"recoverByUID": uid}})
    world.run(60.0)
    assert ["basic-tikv-1"] == records(world, "tikv"), "not while it is lost"
    world.world.faults.heal()
    world.run_until_ready(within=120.0)
    assert ([], 3) == (records(world, "tikv"), world.replicas("tikv"))
    assert "failoverUID" not in status(world, "tikv")
    assert claim == uid_of(world, "tikv-basic-tikv-1")


@pytest.mark.rule("lifecycle-9.3")
def test_replaces_a_lost_store_in_time_although_the_condition_shows_a_refusal(world: OperatorWorld) -> None:
    world.change(tikv={"additionalVolumeMounts": [{"name": "wal", "mountPath": "/wal"}]})
    world.run(5.0)
    refused = said(world, "tikv")
    assert "there is no such volume" in refused[1]
    world.world.faults.node_gone(node_of(world, "basic-tikv-1"))
    world.run_until(lambda: records(world, "tikv") == ["basic-tikv-1"], within=5 * PERIOD)
    assert refused == said(world, "tikv")


@pytest.mark.rule("F31", "#1582")
def test_tiflash_does_not_trigger_failover_of_tikv(world: OperatorWorld) -> None:
    """One store is TiFlash by its label, another one by its address; the TiKV pod beside them is not Ready, either."""
    world.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    world.register_store("basic-tikv-2.basic-tikv-peer.default.svc:3930", {"engine": "tiflash"})
    world.register_store("basic-tiflash-0.basic-tiflash-peer.default.svc:3930", {})
    world.world.faults.pod_unready(f"{NAMESPACE}/basic-tikv-2")
    world.run(4 * PERIOD)
    tikv = status(world, "tikv")
    assert {f"basic-tikv-{ordinal}" for ordinal in range(3)} == {store["podName"] for store in tikv["stores"].values()}
    assert (3, {"Up"}) == (len(tikv["stores"]), {store["state"] for store in tikv["stores"].values()})
    peers = [(store["podName"], store["state"]) for store in tikv["peerStores"].values()]
    assert [("basic-tiflash-0", "Down")] == peers
    assert ([], 3) == (records(world, "tikv"), world.replicas("tikv"))


@pytest.mark.rule("F33")
def test_drops_the_record_of_a_pod_removed_from_the_spec(clock: FakeClock) -> None:
    for world in failing_over(clock, cluster(tikv=5)):
        world.world.faults.node_gone(node_of(world, "basic-tikv-4"))
        world.run(4 * PERIOD)
        assert ["basic-tikv-4"] == records(world, "tikv")
        world.change(tikv={"replicas": 4})
        world.run(5.0)
        assert [] == records(world, "tikv")
        assert "failoverUID" not in status(world, "tikv")


@pytest.mark.rule("lifecycle-14")
def test_drops_the_records_of_a_component_once_on_command(world: OperatorWorld) -> None:
    lose_a_store(world)
    annotations = {CLEAR_FAILURE_RECORDS: "tikv"}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": annotations}})
    world.run(10.0)
    assert [] == records(world, "tikv")
    assert CLEAR_FAILURE_RECORDS not in world.cluster()["metadata"].get("annotations", {})
    world.run(2 * PERIOD)
    assert ["basic-tikv-1"] == records(world, "tikv"), "it is still lost, and gets another period"


@pytest.mark.rule("lifecycle-14")
def test_reports_and_drops_a_command_for_an_unknown_pod(world: OperatorWorld) -> None:
    annotations = {CLEAR_FAILURE_RECORDS: "tikvs"}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": annotations}})
    world.run(10.0)
    assert CLEAR_FAILURE_RECORDS not in world.cluster()["metadata"].get("annotations", {})
    (event,) = world.events("UnknownComponent")
    assert "'tikvs' is not one of pd, tiflash, tikv, tidb" in event["message"]


# TiDB


@pytest.mark.rule("lifecycle-9.4")
def test_replaces_a_lost_server_and_removes_the_substitute_later(world: OperatorWorld) -> None:
    heal = world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-0")
    world.run(PERIOD / 2)
    assert "TiDBMemberUnhealthy" == said(world, "tidb")[0]
    world.run_until(lambda: said(world, "tidb")[0] == "TiDBFailedOver", PERIOD)
    assert (["basic-tidb-0"], 3) == (records(world, "tidb"), world.replicas("tidb"))
    heal()
    world.run_until_ready(within=60.0)
    assert ([], 2) == (records(world, "tidb"), world.replicas("tidb"))


@pytest.mark.rule("lifecycle-9.4", "F11")
def test_replaced_servers_get_the_corrected_template(world: OperatorWorld) -> None:
    world.world.faults.image_missing("*:v9.9.9")
    world.change(tidb={"version": "v9.9.9"})
    world.run_until(lambda: "v9.9.9" in said(world, "tidb")[1])
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-0")
    world.run_until(lambda: records(world, "tidb") != [], PERIOD * 3)
    world.world.faults.heal()
    world.world.faults.image_missing("*:v9.9.9")
    world.change(tidb={"version": None, "annotations": {"a": "b"}})
    world.run_until(lambda: world.reason() in ("Done", "TiDBFailedOver"), PERIOD * 5)
    assert "v9.9.9" not in str([pod["spec"] for pod in world.every(PODS)])


@pytest.mark.rule("lifecycle-9.4", "F11")
def test_a_substitute_runs_the_old_image_while_the_new_one_has_started_nowhere(world: OperatorWorld) -> None:
    world.world.faults.image_missing("*:v9.9.9")
    world.change(tidb={"version": "v9.9.9"})
    world.run_until(lambda: "v9.9.9" in said(world, "tidb")[1])
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-0")
    world.run_until(lambda: world.replicas("tidb") == 3, PERIOD * 3)
    world.run(10.0)
    substitute = world.get(PODS, "basic-tidb-2")
    assert "v9.9.9" not in str(substitute["spec"])
    assert "True" == condition_of(substitute["status"]["conditions"], "Ready")["status"]


@pytest.mark.rule("lifecycle-9.4", "R21")
def test_replaces_a_terminating_server_of_an_older_stateful_set_on_a_lost_machine(
    world: OperatorWorld,
) -> None:
    """The new StatefulSet neither counts the old pod nor can create its own while that exists."""
    world.world.faults.node_gone(node_of(world, "basic-tidb-1"))
    world.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE)
    world.run_until(lambda: said(world, "tidb")[0] == "TiDBFailedOver", PERIOD * 3)
    assert (["basic-tidb-1"], 3) == (records(world, "tidb"), world.replicas("tidb"))
    assert "deletionTimestamp" in world.get(PODS, "basic-tidb-1")["metadata"]


@pytest.mark.rule("lifecycle-9.4")
def test_does_not_replace_a_server_that_was_scaled_in_on_a_lost_machine(world: OperatorWorld) -> None:
    world.world.faults.node_gone(node_of(world, "basic-tidb-1"))
    world.change(tidb={"replicas": 1})
    world.run_until(lambda: said(world, "tidb")[0] == "Done")
    assert ["basic-tidb-0"] == list(status(world, "tidb")["members"])
    assert "deletionTimestamp" in world.get(PODS, "basic-tidb-1")["metadata"]


@pytest.mark.rule("lifecycle-9.4")
def test_does_not_replace_an_unschedulable_server(world: OperatorWorld) -> None:
    world.world.faults.pod_pending(f"{NAMESPACE}/basic-tidb-*")
    world.admin.delete(PODS, "basic-tidb-1", NAMESPACE)
    world.run(2 * PERIOD)
    assert [] == records(world, "tidb")


# Hosts


@pytest.mark.parametrize("automatic", [True, False])
@pytest.mark.rule("lifecycle-9.5", "R28")
def test_abandons_the_data_of_a_lost_host_on_command(clock: FakeClock, automatic: bool) -> None:
    """Its disks are gone with it: the pods restart elsewhere, on new volumes."""
    body = cluster()
    if automatic:
        body["metadata"]["annotations"] = {"app.kubernetes.io/auto-failure-recovery": "true"}
    for world in failing_over(clock, body, replace(QUICKLY, detect_node_failure=True)):
        claim = uid_of(world, "tikv-basic-tikv-1")
        world.world.faults.node_gone(node_of(world, "basic-tikv-1"))
        world.run(4 * PERIOD + 600.0)
        (record,) = status(world, "tikv")["failureStores"].values()
        assert (True, automatic) == (record["hostDown"], record.get("storeDeleted", False))
        assert automatic is (claim != uid_of(world, "tikv-basic-tikv-1"))
        assert automatic is bool(world.events("NodeFailure"))
