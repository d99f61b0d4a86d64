"""Pods that stop gracefully by themselves while the operator is away (ADR 19)."""

from collections.abc import Iterator
from typing import Any

import pytest

from apis.graceful_stop import GRACEFUL_STOP
from kube.objects import Json
from kube.resources import EVENTS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.network import Running
from tests.controllers.tidbcluster.test_returning_pods import three
from tests.controllers.tidbcluster.test_ticdc import TABLES, tables
from tests.controllers.tidbcluster.test_tls import TlsWorld
from tests.operator_world import NAMESPACE, OperatorWorld
from tests.takeover.test_recordings import left_by_v16

pytestmark = pytest.mark.slow

STEP, LATER = 0.05, 3.0
PLACE = f'metadata.annotations["{GRACEFUL_STOP}"]'


def graceful(value: str = "true", members: int = 3) -> Json:
    """Three members of PD, three stores and two captures; or `members` of PD and stores."""
    cluster = three(members, members)
    cluster["metadata"]["annotations"] = {GRACEFUL_STOP: value}
    cluster["spec"]["ticdc"] = {"replicas": 2, "terminationGracePeriodSeconds": 600}
    return cluster


@pytest.fixture
def cluster(world: OperatorWorld) -> OperatorWorld:
    """That cluster, Ready."""
    world.apply(graceful())
    world.run_until_ready(within=120.0)
    world.forget()
    return world


def annotate(world: OperatorWorld, value: str | None) -> None:
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {GRACEFUL_STOP: value}}})


def pd_of(world: OperatorWorld) -> Any:
    return world.world.data_plane.pd_cluster(NAMESPACE, "basic")


def uids(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def is_back(world: OperatorWorld, pod: str, before: str) -> bool:
    found = [each for each in world.every(PODS) if each["metadata"]["name"] == pod]
    conditions = [each for pod in found for each in pod.get("status", {}).get("conditions") or ()]
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and uids(world)[pod] != before


def seconds_without_leader(world: OperatorWorld, pod: str, within: float = 60.0) -> float:
    """Delete a pod while the operator is away; the time in which a region or PD has no leader, also once it is back."""
    before, without, clock = uids(world)[pod], 0.0, world.world.clock
    world.admin.delete(PODS, pod, NAMESPACE)
    end = clock.now() + LATER
    while clock.now() < end or not is_back(world, pod, before):
        assert clock.now() < end + within, f"{pod} is not back"
        world.world.advance(STEP)
        pd = pd_of(world)
        led = [pd.stores.serving(region, clock.now()) is not None for region in range(len(pd.stores.regions))]
        without += STEP if pd.leader is None or not all(led) else 0.0
    return without


def failures(world: OperatorWorld) -> list[str]:
    """The events of hooks that failed."""
    return [each["message"] for each in world.every(EVENTS) if "Hook" in each["reason"]]


def log(running: Running) -> str:
    return "\n".join(line.text for line in running.output.after(0))


def leaders(world: OperatorWorld, pod: str) -> int:
    (count,) = (each.leaders for each in pd_of(world).stores.all() if each.address.startswith(f"{pod}."))
    assert isinstance(count, int)
    return count


def hooks(world: OperatorWorld) -> Iterator[str]:
    for name in world.names():
        for component in ("pd", "tikv", "ticdc", "tidb"):
            spec = world.get(STATEFUL_SETS, f"{name}-{component}")["spec"]["template"]["spec"]
            yield from (component for each in spec["containers"] if "preStop" in each.get("lifecycle", {}))


def test_region_leaders_leave_a_store_before_it_stops_and_return_afterwards(cluster: OperatorWorld) -> None:
    assert leaders(cluster, "basic-tikv-1") > 5
    assert 0.0 == seconds_without_leader(cluster, "basic-tikv-1")
    cluster.world.advance(30.0)
    assert leaders(cluster, "basic-tikv-1") > 5
    assert ([], set()) == (failures(cluster), pd_of(cluster).stores.evicting)


def test_the_operator_leaves_an_eviction_of_a_hook_alone(cluster: OperatorWorld) -> None:
    before = uids(cluster)["basic-tikv-1"]
    cluster.admin.delete(PODS, "basic-tikv-1", NAMESPACE)
    cluster.run_until(lambda: is_back(cluster, "basic-tikv-1", before))
    cluster.run(20.0)
    assert leaders(cluster, "basic-tikv-1") > 5
    reasons = {each["reason"] for each in cluster.events()}
    assert set() == reasons & {"LeaderEvictionEnded", "LeadersEvictedByOthers"}


def test_pd_leadership_leaves_a_member_before_it_stops(cluster: OperatorWorld) -> None:
    leader = pd_of(cluster).leader.name
    (running,) = cluster.world.data_plane.running(NAMESPACE, leader)
    cluster.admin.delete(PODS, leader, NAMESPACE)
    cluster.world.run_until(lambda: "got signal to exit" in log(running), within=5.0)
    assert pd_of(cluster).leader.name != leader
    cluster.world.advance(10.0)
    assert [] == failures(cluster)


def test_tables_leave_a_capture_before_it_stops(cluster: OperatorWorld) -> None:
    cluster.world.faults.changefeed(f"{NAMESPACE}/basic", TABLES)
    cluster.run_until(lambda: TABLES == sum(tables(cluster).values()))
    gone, before = max(tables(cluster), key=tables(cluster).__getitem__), uids(cluster)
    cluster.admin.delete(PODS, gone, NAMESPACE)
    fewest = TABLES
    while not is_back(cluster, gone, before[gone]):
        cluster.world.advance(STEP)
        fewest = min(fewest, sum(tables(cluster).values()))
    assert (TABLES, []) == (fewest, failures(cluster))


def test_with_tls_the_hooks_present_the_pods_certificates(world: OperatorWorld) -> None:
    tls = TlsWorld(world)
    tls.put_all()
    tls.apply()
    annotate(world, "true")
    world.run_until_ready(within=120.0)
    assert 0.0 == seconds_without_leader(world, "basic-tikv-1")
    assert ([], set()) == (failures(world), pd_of(world).stores.evicting)


def test_an_eviction_lasts_while_no_pd_answers_a_starting_store(cluster: OperatorWorld) -> None:
    silence = Fault(Trouble.BLACK_HOLE, target=f"{NAMESPACE}/basic-pd-*", origin=f"{NAMESPACE}/basic-tikv-1")
    cluster.admin.delete(PODS, "basic-tikv-1", NAMESPACE)
    cluster.world.run_until(lambda: not leaders(cluster, "basic-tikv-1"), within=10.0)
    before = uids(cluster)["basic-tikv-1"]
    cluster.world.run_until(lambda: uids(cluster).get("basic-tikv-1", before) != before, within=10.0)
    cluster.world.data_plane.network.inject(silence)
    cluster.world.advance(20.0)
    assert pd_of(cluster).stores.evicting
    cluster.world.data_plane.network.heal()
    cluster.world.run_until(lambda: is_back(cluster, "basic-tikv-1", before), within=60.0)
    assert set() == pd_of(cluster).stores.evicting


def test_a_hook_that_fails_emits_an_event_and_delays_nothing(cluster: OperatorWorld) -> None:
    silence = Fault(Trouble.REFUSE, target=f"{NAMESPACE}/basic-pd-*", origin=f"{NAMESPACE}/basic-tikv-1")
    cluster.world.data_plane.network.inject(silence)
    before = uids(cluster)["basic-tikv-1"]
    cluster.admin.delete(PODS, "basic-tikv-1", NAMESPACE)
    cluster.world.run_until(lambda: uids(cluster).get("basic-tikv-1", before) != before, within=3.0)
    assert ["PreStopHook failed"] == failures(cluster)


def test_a_hook_does_not_hold_the_stop_of_its_pod_while_pd_has_no_leader(cluster: OperatorWorld) -> None:
    cluster.world.faults.pd_no_leader(f"{NAMESPACE}/basic")
    before = uids(cluster)["basic-pd-2"]
    cluster.admin.delete(PODS, "basic-pd-2", NAMESPACE)
    cluster.world.run_until(lambda: uids(cluster).get("basic-pd-2", before) != before, within=5.0)
    assert ([], ["PreStopHook failed"]) == (cluster.world.kubelet.cut_short, failures(cluster))


def test_a_roll_ends_its_own_evictions_and_a_users_stays(cluster: OperatorWorld) -> None:
    (users,) = (each.id for each in pd_of(cluster).stores.all() if each.address.startswith("basic-tikv-0."))
    pd_of(cluster).stores.evict(users, cluster.world.clock.now())
    assert 0.0 == seconds_without_leader(cluster, "basic-tikv-0")
    cluster.world.advance(10.0)
    assert {users} == pd_of(cluster).stores.evicting
    pd_of(cluster).stores.stop_evicting(users, cluster.world.clock.now())
    before = uids(cluster)
    cluster.change(tikv={"labels": {"team": "a"}})
    cluster.run(5.0)
    cluster.run_until_ready(within=240.0)
    assert 3 == sum(uid != before.get(name) for name, uid in uids(cluster).items())
    assert ([], set()) == (failures(cluster), pd_of(cluster).stores.evicting)


def test_the_annotation_restarts_three_components_and_its_withdrawal_does_again(world: OperatorWorld) -> None:
    world.apply(graceful("false", 1))
    world.run_until_ready(within=120.0)
    plain = uids(world)
    assert [] == list(hooks(world))
    for value, expected in (("true", ["pd", "tikv", "ticdc"]), (None, [])):
        before = uids(world)
        annotate(world, value)
        world.run(5.0)
        world.run_until_ready(within=400.0)
        assert expected == list(hooks(world))
        restarted = {name.split("-")[1] for name, uid in uids(world).items() if uid != before.get(name)}
        assert {"pd", "tikv", "ticdc"} == restarted
    assert plain.keys() == uids(world).keys()


def test_the_operator_ends_an_eviction_if_the_pod_returns_without_hooks(world: OperatorWorld) -> None:
    tree = graceful()
    del tree["spec"]["ticdc"]
    tree["spec"]["tikv"]["statefulSetUpdateStrategy"] = "OnDelete"
    world.apply(tree)
    world.run_until_ready(within=120.0)
    annotate(world, None)
    world.run(5.0)
    before = uids(world)["basic-tikv-1"]
    world.admin.delete(PODS, "basic-tikv-1", NAMESPACE)
    world.run_until(lambda: is_back(world, "basic-tikv-1", before))
    world.run(20.0)
    assert set() == pd_of(world).stores.evicting
    assert leaders(world, "basic-tikv-1") > 5


def test_another_value_is_refused_and_nothing_is_written(cluster: OperatorWorld) -> None:
    before = uids(cluster)
    annotate(cluster, "yes")
    cluster.forget()
    cluster.run(65.0)
    assert f'{PLACE}: "yes": must be "true" or "false"' in cluster.condition("Ready")["message"]
    written = [each for each in cluster.writes() if " tidbclusters" not in each and " events" not in each]
    assert ([], before) == (written, uids(cluster))


def test_hooks_of_the_user_come_first_and_a_condition_names_them(world: OperatorWorld) -> None:
    tree = graceful(members=1)
    own = {"preStop": {"exec": {"command": ["/bin/true"]}}}
    tree["spec"]["tikv"]["additionalContainers"] = [{"name": "tikv", "lifecycle": own}]
    world.apply(tree)
    world.run_until_ready(within=120.0)
    (container,) = world.get(STATEFUL_SETS, "basic-tikv")["spec"]["template"]["spec"]["containers"]
    assert own == container["lifecycle"]
    message = world.condition("FieldsIgnored")["message"]
    assert f"{PLACE}: " in message
    assert "spec.tikv.additionalContainers[0].lifecycle is the user's" in message


def test_an_annotation_that_v1_6_ignored_waits_for_the_users_next_change(clock: FakeClock) -> None:
    taken = left_by_v16("basic", clock)
    before, world = taken.pods(), taken.world
    world.admin.patch(
        TIDB_CLUSTERS, taken.name, taken.namespace, {"metadata": {"annotations": {GRACEFUL_STOP: "true"}}}
    )
    world.run(45.0)
    assert before == taken.pods()
    world.stop()
