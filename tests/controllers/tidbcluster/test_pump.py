"""Pump in a cluster: what TiDB waits for, and how a node goes (lifecycle.md 3.1, 5.7, 8.8)."""

from collections.abc import Iterator

import pytest

from kube.objects import Json, condition_of
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from ports.clock import FakeClock
from sandbox.dataplane.pump import pump_nodes
from tests.operator_world import NAMESPACE, OperatorWorld, sample

PUMP: Json = {"baseImage": "pingcap/tidb-binlog", "replicas": 2, "config": {}, "requests": {"storage": "1Gi"}}
DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"


@pytest.fixture
def binlog(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic` with two Pumps, Ready; drainers take their time."""
    world = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["pump"] = PUMP
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    yield world
    world.stop()


def states(world: OperatorWorld) -> dict[str, str]:
    """The nodes that are registered in PD."""
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return {node["nodeId"].partition(":")[0]: node["state"] for node in pump_nodes(pd.etcd, world.clock.now()).values()}


def message(world: OperatorWorld) -> str:
    return str(world.condition("Progressing")["message"])


@pytest.mark.slow
@pytest.mark.rule("lifecycle-3.1")
def test_tidb_starts_when_a_pump_node_is_online(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["pump"] = PUMP | {"nodeSelector": {"nowhere": "yes"}}
    world.apply(cluster)
    world.run_until(lambda: "WaitingForPump" in str(world.cluster().get("status")))
    world.run(20.0)
    assert not world.exists(STATEFUL_SETS, "basic-tidb")
    world.change(pump={"nodeSelector": None})
    world.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.7")
def test_the_status_lists_nodes_as_they_registered(binlog: OperatorWorld) -> None:
    members = binlog.cluster()["status"]["pump"]["members"]
    expected = {"nodeId": "basic-pump-0:8250", "host": "basic-pump-0.basic-pump:8250", "state": "online"}
    assert (expected, 2) == (members[0], len(members))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_takes_a_node_offline_before_its_pod_is_removed(binlog: OperatorWorld) -> None:
    seen = set()
    binlog.change(pump={"replicas": 1})
    while binlog.exists(PODS, "basic-pump-1"):
        seen.add(states(binlog)["basic-pump-1"])
        binlog.run(0.1)
    assert {"online", "closing", "offline"} == seen
    binlog.run_until_ready()
    assert DEFERRED in binlog.get(PERSISTENT_VOLUME_CLAIMS, "data-basic-pump-1")["metadata"]["annotations"]
    assert ["basic-pump-0:8250"] == [each["nodeId"] for each in binlog.cluster()["status"]["pump"]["members"]]


@pytest.mark.slow
@pytest.mark.rule("F32")
def test_a_node_that_left_returns_with_an_empty_volume(binlog: OperatorWorld) -> None:
    before = binlog.get(PERSISTENT_VOLUME_CLAIMS, "data-basic-pump-1")["metadata"]["uid"]
    binlog.change(pump={"replicas": 1})
    binlog.run_until_ready()
    binlog.change(pump={"replicas": 2})
    binlog.run_until_ready()
    assert {"basic-pump-0": "online", "basic-pump-1": "online"} == states(binlog)
    assert before != binlog.get(PERSISTENT_VOLUME_CLAIMS, "data-basic-pump-1")["metadata"]["uid"]


@pytest.mark.slow
@pytest.mark.rule("F36")
def test_removes_a_node_that_is_already_closing_and_it_can_return(binlog: OperatorWorld) -> None:
    binlog.change(pump={"replicas": 1})
    binlog.run_until(lambda: states(binlog)["basic-pump-1"] == "closing")
    binlog.change(pump={"replicas": 2})
    binlog.run_until_ready(within=120.0)
    assert {"basic-pump-0": "online", "basic-pump-1": "online"} == states(binlog)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_all_nodes_stay_while_tidb_writes_binlogs(binlog: OperatorWorld) -> None:
    binlog.change(pump={"replicas": 0})
    binlog.run_until(lambda: binlog.reason() == "FailedScaleIn", within=120.0)
    assert {"basic-pump-0": "online", "basic-pump-1": "online"} == states(binlog)
    assert "set spec.pump.replicas to 1 and spec.tidb.binlogEnabled to false" in message(binlog)

    binlog.change(pump={"replicas": 1}, tidb={"binlogEnabled": False})
    binlog.run_until_ready(within=120.0)
    binlog.change(pump={"replicas": 0})
    binlog.run_until(lambda: not binlog.exists(PODS, "basic-pump-0"), within=120.0)
    binlog.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_removes_a_pod_that_never_registered_immediately(binlog: OperatorWorld) -> None:
    binlog.change(pump={"replicas": 3, "nodeSelector": {"nowhere": "yes"}})
    binlog.run_until(lambda: binlog.exists(PODS, "basic-pump-2"))
    binlog.change(pump={"replicas": 2, "nodeSelector": None})
    binlog.run_until_ready(within=120.0)
    assert {"basic-pump-0": "online", "basic-pump-1": "online"} == states(binlog)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.8")
def test_waits_for_a_node_whose_pod_does_not_run(binlog: OperatorWorld) -> None:
    binlog.world.data_plane.hang(NAMESPACE, "basic-pump-1")
    binlog.change(pump={"replicas": 1})
    binlog.run(60.0)
    assert binlog.exists(PODS, "basic-pump-1")
    assert {"basic-pump-0": "online", "basic-pump-1": "online"} == states(binlog)
    binlog.world.data_plane.hang(NAMESPACE, "basic-pump-1", hung=False)
    binlog.run_until(lambda: not binlog.exists(PODS, "basic-pump-1"), within=120.0)
    binlog.run_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("crashes", [True, False])
@pytest.mark.rule("lifecycle-8.8")
def test_keeps_and_names_an_unreachable_pump(binlog: OperatorWorld, crashes: bool) -> None:
    faults, pod = binlog.world.faults, f"{NAMESPACE}/basic-pump-1"
    revive = faults.pod_crash_loop(pod) if crashes else faults.network_cut(pod)
    binlog.run(60.0)
    binlog.change(pump={"replicas": 1})
    binlog.run_until(lambda: binlog.reason() == "PumpUnreachable", within=120.0)
    binlog.forget()
    binlog.run(300.0)
    assert "set its state to offline with binlogctl" in message(binlog)
    assert ([], True) == (binlog.writes(), binlog.exists(PODS, "basic-pump-1"))
    assert not crashes or [] == binlog.operator.dataplane.writes()

    revive()
    binlog.run_until(lambda: not binlog.exists(PODS, "basic-pump-1"), within=300.0)
    binlog.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("F7")
def test_knows_no_node_while_pd_is_silent(binlog: OperatorWorld) -> None:
    binlog.world.data_plane.hang(NAMESPACE, "basic-pd-0")
    binlog.change(pump={"replicas": 1})
    binlog.run(60.0)
    assert [] == (binlog.cluster()["status"]["pump"].get("members") or [])
    assert binlog.exists(PODS, "basic-pump-1")
    binlog.world.data_plane.hang(NAMESPACE, "basic-pd-0", hung=False)
    binlog.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.8")
def test_restarts_the_next_pod_when_the_previous_node_is_online(binlog: OperatorWorld) -> None:
    uids = {name: binlog.get(PODS, name)["metadata"]["uid"] for name in ("basic-pump-0", "basic-pump-1")}
    binlog.change(pump={"annotations": {"a": "b"}})
    binlog.run_until(lambda: binlog.get(PODS, "basic-pump-1")["metadata"]["uid"] != uids["basic-pump-1"])
    assert uids["basic-pump-0"] == binlog.get(PODS, "basic-pump-0")["metadata"]["uid"]
    binlog.run_until_ready(within=120.0)
    assert not {binlog.get(PODS, name)["metadata"]["uid"] for name in uids} & set(uids.values())


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.4", "#6252")
def test_refuses_smaller_volumes_and_annotates_nothing(binlog: OperatorWorld) -> None:
    binlog.change(enablePVCReplace=True, pump={"requests": {"storage": "512Mi"}})
    binlog.run_until(lambda: binlog.reason() == "VolumeCantChange")
    assert "spec.pump.requests.storage: " in message(binlog)
    binlog.change(pump={"requests": {"storage": "2Gi"}})
    binlog.run_until_ready(within=120.0)
    claim = binlog.get(PERSISTENT_VOLUME_CLAIMS, "data-basic-pump-0")
    assert "2Gi" == claim["spec"]["resources"]["requests"]["storage"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_pump_is_suspended_after_tidb_and_resumed(binlog: OperatorWorld) -> None:
    binlog.change(suspendAction={"suspendStatefulSet": True})
    binlog.run_until(lambda: binlog.reason() == "Suspended", within=120.0)
    assert not binlog.exists(STATEFUL_SETS, "basic-pump")
    binlog.change(suspendAction=None)
    binlog.run_until_ready(within=120.0)
    assert {"basic-pump-0": "online", "basic-pump-1": "online"} == states(binlog)


def binlog_condition(world: OperatorWorld) -> tuple[str, str]:
    found = condition_of(world.cluster()["status"]["conditions"], "BinlogSupported")
    return found.get("status", ""), found.get("reason", "")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.6")
def test_reports_a_tidb_without_binlogs_and_continues(binlog: OperatorWorld) -> None:
    assert ("False", "BinlogRemoved") == binlog_condition(binlog)
    assert ("Done", True) == (binlog.reason(), binlog.is_ready())

    binlog.change(tidb={"binlogEnabled": False})
    binlog.run_until_ready(within=120.0)
    assert ("True", "Done") == binlog_condition(binlog)


def upgraded_to_one_without(world: OperatorWorld) -> None:
    """A cluster whose TiDB writes binlogs is to get a version that has none."""
    cluster = sample("basic")
    cluster["spec"] |= {"version": "v8.3.0", "pump": PUMP}
    world.apply(cluster)
    world.run_until_ready()
    assert ("", "") == binlog_condition(world)
    world.change(version="v8.5.2")
    world.run_until(lambda: world.reason() == "BinlogRemoved", within=300.0)
    world.run(60.0)


def version(world: OperatorWorld, component: str) -> str:
    containers = world.get(PODS, f"basic-{component}-0")["spec"]["containers"]
    return str(next(each["image"] for each in containers if each["name"] == component)).partition(":")[2]


@pytest.mark.slow
@pytest.mark.parametrize("way_out", [{"version": "v8.3.0"}, {"binlogEnabled": False}])
@pytest.mark.rule("lifecycle-6.6")
def test_refuses_an_upgrade_that_ends_binlogs(world: OperatorWorld, way_out: Json) -> None:
    upgraded_to_one_without(world)
    assert ["v8.3.0"] * 4 == [version(world, each) for each in ("pd", "tikv", "pump", "tidb")]
    assert "Set spec.pump.version to v8.3.0" in message(world)
    world.change(pump={"version": "v8.3.0"}, tidb={"replicas": 2})
    world.run_until(lambda: world.exists(PODS, "basic-tidb-1"), within=60.0)
    world.run_until(lambda: "Leave spec.tidb.version at v8.3.0, or" in message(world))

    world.change(tidb=way_out)
    world.run_until_ready(within=300.0)
    assert ("v8.3.0", way_out.get("version", "v8.5.2")) == (version(world, "pump"), version(world, "tidb"))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.6")
def test_a_pump_removed_from_the_spec_needs_no_version(world: OperatorWorld) -> None:
    upgraded_to_one_without(world)
    world.change(tidb={"binlogEnabled": False})
    world.run_until(lambda: version(world, "tidb") == "v8.5.2", within=300.0)
    world.change(pump={"replicas": 0})
    world.run_until_ready(within=300.0)
    assert not world.exists(PODS, "basic-pump-0")
    world.change(pump=None)
    world.run_until_ready(within=60.0)


@pytest.mark.slow
@pytest.mark.rule("F25")
def test_accepts_a_version_that_is_not_a_number(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["pump"] = PUMP
    cluster["spec"]["tidb"]["version"] = "nightly"
    world.apply(cluster)
    world.run_until_ready()
    assert ("", "") == binlog_condition(world)


@pytest.mark.slow
@pytest.mark.rule("R23")
def test_allows_the_way_back_from_a_version_that_no_registry_has(binlog: OperatorWorld) -> None:
    binlog.change(pump={"version": "v8.3.99-nope"})
    binlog.run_until(lambda: "v8.3.99-nope" in message(binlog), within=120.0)
    binlog.change(pump={"version": None})
    binlog.run_until_ready(within=120.0)
