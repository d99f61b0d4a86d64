"""Pods that a roll leaves alone while the data plane does not answer (docs/rules/silence.md)."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import PODS, TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_MEMBERS = f"{NAMESPACE}/basic-pd-*"


@pytest.fixture
def wide(clock: FakeClock) -> Iterator[OperatorWorld]:
    """Three PD, three TiKV, one TiDB, Ready."""
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = cluster["spec"]["tikv"]["replicas"] = 3
    made.apply(cluster)
    made.run_until_ready()
    yield made
    made.stop()


def _uids(world: OperatorWorld) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in world.every(PODS)
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] == "pd"
    }


def _images(world: OperatorWorld) -> set[str]:
    pods: list[Json] = [pod for pod in world.every(PODS) if pod["metadata"]["name"] in _uids(world)]
    return {pod["spec"]["containers"][-1]["image"].rpartition(":")[2] for pod in pods}


@pytest.mark.slow
def test_keeps_a_voting_pd_behind_a_broken_node_while_pd_is_silent(wide: OperatorWorld) -> None:
    faults = wide.world.faults
    crashing = faults.pod_crash_loop(f"{NAMESPACE}/basic-pd-1")
    heard = faults.host_cut_off(f"{NAMESPACE}/basic-pd-0")
    reached = faults.network_cut(_MEMBERS)
    wide.run(120.0)
    before = _uids(wide)
    wide.change(pd={"version": "v99.9.9"})
    wide.run(300.0)
    for heal in (reached, heard, crashing):
        heal()
    wide.run(300.0)
    # once PD answers, one of them alone is taken to the image that the user wants
    assert before["basic-pd-2"] == _uids(wide)["basic-pd-2"]
    members = wide.cluster()["status"]["pd"]["members"].values()
    assert [False, True, True] == sorted(each["health"] for each in members)


@pytest.mark.slow
def test_says_why_a_running_pd_is_kept_while_pd_is_silent(wide: OperatorWorld) -> None:
    faults = wide.world.faults
    faults.pod_unready(f"{NAMESPACE}/basic-pd-2")
    wide.run(330.0)
    wide.change(pd={"config": {"log": {"level": "warn"}}})
    faults.network_cut(_MEMBERS)
    before = _uids(wide)
    wide.run(60.0)
    assert before == _uids(wide)
    assert "tidb.pingcap.com/force-upgrade" in wide.condition("Progressing")["message"]


@pytest.mark.slow
@pytest.mark.rule("F11")
def test_crashing_pds_get_a_corrected_template_while_pd_is_silent(wide: OperatorWorld) -> None:
    healed = wide.world.faults.pod_crash_loop(_MEMBERS)
    wide.run(60.0)
    wide.change(pd={"version": "v8.5.3"})
    wide.run_until(lambda: "v8.5.3" in _images(wide), within=30.0)
    healed()
    wide.run_until_ready(within=300.0)
    assert {"v8.5.3"} == _images(wide)


@pytest.mark.slow
def test_moves_only_one_crashing_pd_to_an_image_that_no_registry_has(wide: OperatorWorld) -> None:
    healed = wide.world.faults.pod_crash_loop(_MEMBERS)
    wide.run(60.0)
    old = _images(wide)
    wide.change(pd={"version": "v99.9.9"})
    wide.run(120.0)
    healed()
    wide.run(120.0)
    assert {*old, "v99.9.9"} == _images(wide)
    members = wide.cluster()["status"]["pd"]["members"].values()
    assert 2 == sum(each["health"] for each in members)


@pytest.fixture
def single(clock: FakeClock) -> Iterator[OperatorWorld]:
    """A Ready cluster of one PD, one TiKV and one TiDB."""
    made = OperatorWorld(clock=clock)
    made.apply(sample("basic"))
    made.run_until_ready()
    yield made
    made.stop()


_FORCE = "tidb.pingcap.com/force-upgrade"


@pytest.mark.slow
def test_keeps_a_single_serving_but_unreachable_pd_until_the_user_forces_it(single: OperatorWorld) -> None:
    reached = single.world.faults.network_cut(_MEMBERS)
    single.run(30.0)
    before = _uids(single)
    single.change(pd={"version": "v99.9.9"})
    single.run(300.0)
    assert before == _uids(single)
    assert f'the annotation {_FORCE}: "true"' in single.condition("Progressing")["message"]

    single.change(pd={"version": "v8.5.3"})
    single.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {_FORCE: "true"}}})
    single.run_until(lambda: {"v8.5.3"} == _images(single))
    reached()
    single.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {_FORCE: None}}})
    single.run_until_ready(within=300.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "right"),
    [({"version": "v99.9.9"}, {"version": None}), ({"nodeSelector": {"no": "such"}}, {"nodeSelector": None})],
    ids=["image", "unscheduled"],
)
@pytest.mark.rule("F11")
def test_a_single_pd_that_never_starts_gets_a_corrected_template(
    single: OperatorWorld, wrong: Json, right: Json
) -> None:
    single.change(pd=wrong)
    single.run(120.0)
    assert not single.is_ready()
    single.change(pd=right)
    single.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("F11")
def test_a_single_pd_that_crashes_gets_a_corrected_template(single: OperatorWorld) -> None:
    healed = single.world.faults.pod_crash_loop(_MEMBERS)
    single.run(120.0)
    single.change(pd={"version": "v8.5.3"})
    single.run_until(lambda: {"v8.5.3"} == _images(single), within=120.0)
    healed()
    single.run_until_ready(within=300.0)
