"""PD's microservices in a cluster: what waits for them, and how they come and go (lifecycle.md 3.1, 6.2, 7.8)."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS
from ports.clock import FakeClock
from sandbox.dataplane.pd.cluster import PdCluster
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def pdms(tso: int = 2, scheduling: int = 1, **fields: Any) -> list[Json]:
    return [{"name": "tso", "replicas": tso, "config": {}, **fields}, {"name": "scheduling", "replicas": scheduling}]


def applied(world: OperatorWorld, entries: list[Json], **pd: Any) -> None:
    cluster = sample("basic")
    cluster["spec"]["pd"] |= pd
    cluster["spec"]["pdms"] = entries
    world.apply(cluster)


@pytest.fixture
def micro(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The sample `basic` with a PD in microservice mode, Ready."""
    world = OperatorWorld(clock=clock)
    applied(world, pdms(), mode="ms")
    world.run_until_ready()
    world.forget()
    yield world
    world.stop()


def pd(world: OperatorWorld) -> PdCluster:
    found = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert found is not None
    return found


def primary(world: OperatorWorld) -> str:
    found = pd(world).services.primary("tso", world.clock.now())
    return found.name if found else ""


def message(world: OperatorWorld) -> str:
    return str(world.condition("Progressing")["message"])


def uids(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


@pytest.mark.slow
@pytest.mark.rule("lifecycle-3.1")
def test_tikv_starts_when_tso_has_a_primary(world: OperatorWorld) -> None:
    applied(world, pdms(nodeSelector={"nowhere": "yes"}), mode="ms")
    world.run_until(lambda: "WaitingForTSO" in str(world.cluster().get("status")))
    world.run(20.0)
    assert not world.exists(STATEFUL_SETS, "basic-tikv")
    world.change(pdms=pdms())
    world.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-5.2")
def test_the_status_lists_the_members(micro: OperatorWorld) -> None:
    status = micro.cluster()["status"]["pdms"]
    assert [f"http://basic-tso-{each}.basic-tso-peer.default.svc:2379" for each in (0, 1)] == status["tso"]["members"]
    assert ("tso", "Normal", True) == tuple(status["tso"][key] for key in ("name", "phase", "synced"))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.2")
def test_creates_no_microservices_outside_the_mode(world: OperatorWorld) -> None:
    applied(world, pdms())
    world.run_until_ready()
    made = {each["metadata"]["name"] for each in world.every(STATEFUL_SETS)}
    assert {"basic-pd", "basic-tikv", "basic-tidb"} == made
    assert not world.cluster()["status"].get("pdms")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.8")
def test_transfers_the_primary_before_restarting_a_member(micro: OperatorWorld) -> None:
    micro.change(pdms=pdms(version="v8.5.3"))
    before = uids(micro)
    led: dict[str, str] = {}
    while len(led) < 2:
        leader = primary(micro)
        micro.run(0.01)
        now = uids(micro)
        led |= {
            name: leader for name in ("basic-tso-0", "basic-tso-1") if now.get(name) != before[name] and name not in led
        }
    micro.run_until_ready(within=120.0)
    assert all(name != leader for name, leader in led.items())


@pytest.mark.slow
@pytest.mark.parametrize("serving", [(0, 1), (0, 2), (1, 2)])
@pytest.mark.rule("lifecycle-7.8")
def test_rolls_three_tso_members_while_pd_lists_two_as_serving(micro: OperatorWorld, serving: tuple[int, int]) -> None:
    """PD has two of them serve: the third serves no client, and cannot be the primary (PD v8.5.2)."""
    micro.change(pdms=pdms(tso=3))
    micro.run_until(lambda: micro.exists(PODS, "basic-tso-2"))
    micro.run_until_ready(within=120.0)
    services = pd(micro).services
    by_name = {each.name: each for each in services.members("tso", micro.clock.now())}
    services.serve("tso", [by_name[f"basic-tso-{each}"] for each in serving])
    services.transfer("tso", by_name[f"basic-tso-{serving[0]}"])
    for _ in range(20):
        micro.run(1.0)
        assert micro.cluster()["status"]["pdms"]["tso"]["synced"]

    micro.change(pdms=pdms(tso=3, version="v8.5.3"))
    micro.run_until(lambda: "v8.5.3" in str(micro.get(STATEFUL_SETS, "basic-tso")["spec"]["template"]))
    micro.run_until_ready(within=300.0)
    assert all("v8.5.3" in str(micro.get(PODS, f"basic-tso-{each}")["spec"]) for each in range(3))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.7")
def test_transfers_the_primary_before_removing_a_member(micro: OperatorWorld) -> None:
    services = pd(micro).services
    last = next(each for each in services.members("tso", micro.clock.now()) if each.name == "basic-tso-1")
    services.transfer("tso", last)
    micro.change(pdms=pdms(tso=1))
    micro.run_until(lambda: not micro.exists(PODS, "basic-tso-1"))
    micro.run_until_ready()
    assert "basic-tso-0" == primary(micro)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.8")
def test_members_before_8_3_0_cannot_hand_over(world: OperatorWorld) -> None:
    applied(world, pdms(version="v8.2.0"), mode="ms")
    world.run_until_ready(within=120.0)
    world.change(pdms=pdms(version="v8.2.1"))
    world.run_until_ready(within=120.0)
    assert not [call for call in world.operator.dataplane.writes() if call.url.endswith("/primary/transfer")]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.2")
def test_keeps_tso_while_pd_serves_no_timestamps(micro: OperatorWorld) -> None:
    micro.change(pdms=pdms(tso=0))
    micro.run_until(lambda: micro.reason() == "FailedScaleIn", within=120.0)
    assert "keeping the pods of tso: PD is in microservice mode" in message(micro)
    micro.run(30.0)
    assert micro.exists(PODS, "basic-tso-0")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.2")
def test_when_the_mode_ends_pd_serves_timestamps_before_tso_is_removed(micro: OperatorWorld) -> None:
    micro.change(pd={"mode": ""})
    while micro.exists(PODS, "basic-tso-0"):
        micro.run(0.1)
        assert micro.exists(PODS, "basic-tso-0") or pd(micro).gives_timestamps()
    micro.run_until_ready(within=120.0)
    assert not pd(micro).is_api_only
    assert 0 == micro.replicas("tso")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "way_out"),
    [
        ({"configUpdateStrategy": "InPlace"}, "tidb.pingcap.com/restartedAt in spec.pd.annotations"),
        ({"statefulSetUpdateStrategy": "OnDelete"}, "delete its pods one after another"),
    ],
)
@pytest.mark.rule("lifecycle-6.2")
def test_says_how_to_end_the_mode_if_pd_is_not_restarted_automatically(
    micro: OperatorWorld, strategy: Json, way_out: str
) -> None:
    micro.change(pd=strategy)
    micro.run_until_ready(within=120.0)
    micro.change(pd={"mode": ""})
    micro.run(60.0)
    assert ("ScalingIn", way_out) == (micro.reason(), message(micro)[-len(way_out) :])
    if "statefulSetUpdateStrategy" in strategy:
        micro.admin.delete(PODS, "basic-pd-0", NAMESPACE)
    else:
        micro.change(pd={"annotations": {"tidb.pingcap.com/restartedAt": "now"}})
    micro.run_until_ready(within=120.0)
    assert not pd(micro).is_api_only


@pytest.mark.slow
@pytest.mark.rule("I36")
def test_does_not_report_suspended_microservices_when_the_mode_ends(micro: OperatorWorld) -> None:
    micro.change(pd={"mode": ""})
    micro.run(1.0)
    micro.change(suspendAction={"suspendStatefulSet": True})
    micro.run_until(lambda: micro.reason() == "Suspended", within=300.0)
    micro.change(suspendAction=None)
    micro.run_until_ready(within=120.0)
    assert not micro.exists(STATEFUL_SETS, "basic-tso")
    assert not micro.cluster()["status"].get("pdms")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.2")
def test_switches_a_running_cluster_to_the_mode(world: OperatorWorld) -> None:
    applied(world, [])
    world.run_until_ready()
    world.change(pd={"mode": "ms"}, pdms=pdms())
    world.run_until_ready(within=120.0)
    assert pd(world).is_api_only
    assert primary(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-1.1")
def test_keeps_microservices_removed_from_the_spec_and_says_so(micro: OperatorWorld) -> None:
    micro.change(pdms=None)
    micro.run_until(lambda: micro.reason() == "ComponentRemoved")
    micro.run(30.0)
    assert micro.exists(PODS, "basic-tso-0")


@pytest.mark.slow
@pytest.mark.rule("F7")
def test_tso_without_a_primary_is_unhealthy(micro: OperatorWorld) -> None:
    for name in ("basic-tso-0", "basic-tso-1"):
        micro.world.data_plane.hang(NAMESPACE, name)
    micro.run_until(lambda: not micro.is_ready(), within=120.0)
    for name in ("basic-tso-0", "basic-tso-1"):
        micro.world.data_plane.hang(NAMESPACE, name, hung=False)
    micro.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_microservices_are_suspended_and_resumed(micro: OperatorWorld) -> None:
    micro.change(suspendAction={"suspendStatefulSet": True})
    micro.run_until(lambda: micro.reason() == "Suspended", within=120.0)
    assert not micro.every(STATEFUL_SETS)
    micro.change(suspendAction=None)
    micro.run_until_ready(within=120.0)
