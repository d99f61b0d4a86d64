"""What conditions, events and metrics report during an outage: within a minute, and no longer than it lasts."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from controllers.tidbcluster.metrics import ClusterMetrics
from dataplane.addresses import Address
from dataplane.pd import PDClient
from kube.objects import Json, condition_of
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from ports.fencing import OpenFence
from sandbox.faults import Heal
from tests.controllers.tidbcluster.test_metrics import Clusters, series
from tests.operator_world import NAMESPACE, OperatorWorld, sample

PODS_OF = f"{NAMESPACE}/basic-"


@dataclass(frozen=True)
class Outage:
    """A way to take service away, and what must be said of it: component, reason, begin of the sentence."""

    begin: Callable[[OperatorWorld], Heal]
    component: str
    reason: str
    says: str


def pending(component: str, *ordinals: int) -> Callable[[OperatorWorld], Heal]:
    """The pods are deleted, and no node takes them."""

    def begin(world: OperatorWorld) -> Heal:
        pods = [f"basic-{component}-{ordinal}" for ordinal in ordinals]
        heals = [world.world.faults.pod_pending(f"{NAMESPACE}/{pod}") for pod in pods]
        for pod in pods:
            world.admin.delete(PODS, pod, NAMESPACE)

        def end() -> None:
            for heal in heals:
                heal()

        return end

    return begin


def cut(target: str) -> Callable[[OperatorWorld], Heal]:
    """The operator reaches no such pod, although it is Ready."""
    return lambda world: world.world.faults.network_cut(f"{PODS_OF}{target}")


def crashing(target: str) -> Callable[[OperatorWorld], Heal]:
    return lambda world: world.world.faults.pod_crash_loop(f"{PODS_OF}{target}")


def leaderless(world: OperatorWorld) -> Heal:
    return world.world.faults.pd_no_leader(f"{NAMESPACE}/basic")


OUTAGES = {
    "two PD pods pending": Outage(pending("pd", 0, 1), "pd", "PDQuorumLost", "PD has lost its quorum: 1 of 3 members"),
    "all PD pods pending": Outage(pending("pd", 0, 1, 2), "pd", "PDQuorumLost", "PD has lost its quorum: 0 of 3"),
    "all PD pods crash": Outage(crashing("pd-*"), "pd", "PDQuorumLost", "PD has lost its quorum: 0 of 3"),
    "PD without a leader": Outage(
        leaderless, "pd", "PDNoLeader", "PD has no leader, though 3 of 3 members are running"
    ),
    "PD cut off": Outage(
        cut("pd-*"), "pd", "PDUnreachable", "The operator cannot reach PD, though Kubernetes reports 3 of 3 pods Ready"
    ),
    "two TiKV pods pending": Outage(
        pending("tikv", 0, 1), "tikv", "RegionsWithoutQuorum", "2 of 3 TiKV stores are down"
    ),
    "all TiKV pods crash": Outage(crashing("tikv-*"), "tikv", "RegionsWithoutQuorum", "No TiKV "),
    "all TiDB pods pending": Outage(
        pending("tidb", 0, 1), "tidb", "NoTiDBServer", "No TiDB serves: Kubernetes reports 0"
    ),
    "TiDB cut off": Outage(cut("tidb-*"), "tidb", "NoTiDBServer", "No TiDB answers, though Kubernetes reports 2 of 2"),
    "the operator cut off": Outage(cut("*"), "pd", "PDUnreachable", "The operator cannot reach PD, though"),
}


@pytest.fixture
def wide(world: OperatorWorld) -> OperatorWorld:
    """Three PD, three TiKV and two TiDB, Ready."""
    body = sample("basic")
    body["spec"]["pd"]["replicas"] = body["spec"]["tikv"]["replicas"] = 3
    body["spec"]["tidb"]["replicas"] = 2
    world.apply(body)
    world.run_until_ready(within=300.0)
    world.run(120.0)
    return world


@pytest.mark.slow
@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_reports_an_outage_within_a_minute_and_until_its_end(wide: OperatorWorld, outage: Outage) -> None:
    before = len(wide.events(outage.reason))
    heal = outage.begin(wide)
    wide.run_until(lambda: wide.condition("Ready").get("reason") == outage.reason, within=60.0)
    assert wide.condition("Ready")["message"].startswith(outage.says)
    component = of_component(wide, outage.component, "Ready")
    assert ("False", outage.reason) == (component["status"], component["reason"])
    assert {(outage.component, outage.reason)} <= unavailable(wide)
    assert before + 1 == len(wide.events(outage.reason))

    for _ in range(30):
        wide.run(10.0)
        assert outage.reason == wide.condition("Ready")["reason"]
    assert before + 1 == len(wide.events(outage.reason)), "the event is repeated"

    heal()
    wide.run_until(wide.is_ready, within=60.0 if outage.reason != "PDQuorumLost" else 400.0)
    assert set() == unavailable(wide)
    assert any(outage.reason in message for message in wide.messages("ServingAgain"))


def volumes_lost(*ordinals: int) -> Callable[[OperatorWorld], None]:
    """The pods restart on new volumes, wait in their start scripts, and are Ready."""

    def begin(world: OperatorWorld) -> None:
        for pod in (f"basic-pd-{ordinal}" for ordinal in ordinals):
            world.admin.delete(PERSISTENT_VOLUME_CLAIMS, f"pd-{pod}", NAMESPACE)
            world.admin.delete(PODS, pod, NAMESPACE)

    return begin


def data_lost(*ordinals: int) -> Callable[[OperatorWorld], None]:
    """The pods restart on their own volumes, which are empty now."""

    def begin(world: OperatorWorld) -> None:
        for pod in (f"basic-pd-{ordinal}" for ordinal in ordinals):
            world.world.faults.disk_lost(NAMESPACE, f"pd-{pod}")
            world.admin.delete(PODS, pod, NAMESPACE)

    return begin


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lose", "running"),
    [
        pytest.param(volumes_lost(0, 1), 1, id="two volumes"),
        pytest.param(volumes_lost(1, 2), 1, id="two other volumes"),
        pytest.param(data_lost(0, 2), 1, id="the data of two"),
        pytest.param(volumes_lost(0, 1, 2), 0, id="all volumes"),
    ],
)
@pytest.mark.rule("R29")
def test_pods_waiting_in_their_start_script_do_not_hide_a_lost_quorum(
    wide: OperatorWorld, lose: Callable[[OperatorWorld], None], running: int
) -> None:
    lose(wide)
    wide.run_until(lambda: wide.condition("Ready").get("reason") == "PDQuorumLost", within=60.0)
    said = set()
    for _ in range(30):
        wide.run(20.0)
        ready = wide.condition("Ready")
        said.add((ready["reason"], ready["message"].partition(".")[0], wide.reason() == "PDUnreachable"))
    verb = "is" if running == 1 else "are"
    sentence = f"PD has lost its quorum: {running} of 3 members {verb} running"
    assert {("PDQuorumLost", sentence, False)} == said
    message = wide.condition("Ready")["message"]
    lost = re.findall(r"basic-pd-\d", message.partition("Lost: ")[2].partition(";")[0])
    assert 3 - running == len(lost)
    assert sorted(lost) == lost
    assert ".;" not in message
    assert 1 == len(wide.events("PDQuorumLost"))


@pytest.mark.slow
@pytest.mark.rule("R29")
def test_a_single_pd_without_its_volume_has_lost_its_quorum(basic: OperatorWorld) -> None:
    volumes_lost(0)(basic)
    basic.run_until(lambda: basic.condition("Ready").get("reason") == "PDQuorumLost", within=60.0)
    basic.run(600.0)
    assert basic.condition("Ready")["message"].startswith("PD has lost its quorum: 0 of 1 members are running")
    assert "PDQuorumLost" == basic.condition("Ready")["reason"]


@pytest.mark.slow
def test_does_not_show_stale_member_states_as_current(wide: OperatorWorld) -> None:
    assert {} == of_component(wide, "pd", "Observed")
    heal = pending("pd", 0, 1)(wide)
    wide.run_until(lambda: of_component(wide, "pd", "Observed").get("status") == "False", within=60.0)
    wide.run(30.0)
    stale = of_component(wide, "pd", "Observed")
    assert "PDQuorumLost" == stale["reason"]
    assert 3 == len(wide.cluster()["status"]["pd"]["members"]), "what v1.6 shows stays"
    assert {"pd": 0.0, "tikv": 0.0, "tidb": 1.0} == of_metric(wide, "observed")
    assert {"tidb": 2.0} == of_metric(wide, "healthy_members") == of_metric(wide, "members")
    heal()
    wide.run_until(wide.is_ready, within=400.0)
    assert "True" == of_component(wide, "pd", "Observed")["status"]
    assert {"pd": 3.0, "tikv": 3.0, "tidb": 2.0} == of_metric(wide, "healthy_members")


def test_a_starting_cluster_has_no_outage(basic: OperatorWorld) -> None:
    reasons = {each["reason"] for each in basic.events()}
    assert set() == reasons & {outage.reason for outage in OUTAGES.values()}
    assert {} == of_component(basic, "pd", "Observed")


@pytest.mark.slow
def test_components_that_wait_for_pd_name_pd_as_the_cause(wide: OperatorWorld) -> None:
    pending("pd", 0, 1)(wide)
    wide.run(60.0)
    assert of_component(wide, "tikv", "Progressing")["message"].startswith("PD has lost its quorum")
    assert of_component(wide, "pd", "Progressing")["message"].startswith(
        "1 of 3 pods are Ready; waiting for basic-pd-0"
    )


def of_component(world: OperatorWorld, component: str, kind: str) -> Json:
    """A condition of a component."""
    return condition_of(world.cluster()["status"][component].get("conditions") or (), kind)


def of_metric(world: OperatorWorld, name: str) -> dict[str, float]:
    """The values of a metric, by component."""
    return series(_registry(world), name)


def unavailable(world: OperatorWorld) -> set[tuple[str, str]]:
    """The components that the metrics report as out of service, and the reasons."""
    samples = [each for family in _registry(world).collect() for each in family.samples]
    found = (each.labels for each in samples if each.name == "tidb_operator_cluster_unavailable")
    return {(labels["component"], labels["reason"]) for labels in found}


def _registry(world: OperatorWorld) -> CollectorRegistry:
    registry, clusters = CollectorRegistry(), Clusters()
    clusters.trees = [world.cluster()]
    ClusterMetrics(registry, clusters, world.clock, lambda _: OpenFence())
    return registry


@pytest.mark.slow
@pytest.mark.rule("7")
def test_a_stalled_roll_has_its_own_reason(wide: OperatorWorld) -> None:
    image = wide.cluster()["spec"]["version"]
    wide.change(tikv={"version": "v0.0.0-nobody-has-it"})
    wide.run(300.0)
    assert "RollingUpdate" == of_component(wide, "tikv", "Progressing")["reason"]
    wide.run(420.0)
    stuck = of_component(wide, "tikv", "Progressing")
    assert ("True", "RollingUpdateStuck") == (stuck["status"], stuck["reason"])
    assert "basic-tikv-2" in stuck["message"]
    wide.change(tikv={"version": image})
    wide.run_until_ready(within=600.0)


@pytest.mark.slow
@pytest.mark.rule("7")
def test_a_refusal_while_nothing_rolls_is_no_stalled_roll(wide: OperatorWorld) -> None:
    pd = PDClient(wide.world.data_plane_transport(), Address("http://basic-pd.default:2379"))
    pd.begin_evict_leaders(int(next(iter(wide.cluster()["status"]["tikv"]["stores"]))))
    wide.world.faults.pd_answers("default/basic", 500, path="/pd/api/v1/schedulers*", method="GET")
    wide.run(900.0)
    told = of_component(wide, "tikv", "Progressing")
    assert ("ApiError", False) == (told["reason"], "rolling restart" in told["message"])
