"""The requests of a cluster of 3/3/2 until it is Ready, so that no later feature raises their number unnoticed."""

from collections import Counter

import pytest

from controllers.status_pacing import StatusPacing
from ports.clock import FakeClock
from tests.operator_world import OPERATOR, OperatorWorld, sample

_MOST = {
    # each StatefulSet is created for an existing owner, and replaces no foreign object
    "GET tidbclusters": 3,
    "GET statefulsets": 3,
    "GET pods": 3,
    "GET persistentvolumeclaims": 2,
    # which resources the server has
    "GET ": 2,
    "POST statefulsets": 3,
    "POST services": 6,
    "POST configmaps": 3,
    "POST deployments": 1,
    "POST roles": 1,
    "POST rolebindings": 1,
    "POST serviceaccounts": 1,
    # one each, with all ids of the data plane
    "PATCH pods": 9,
    "PATCH persistentvolumeclaims": 6,
    "PATCH persistentvolumes": 6,
    "PATCH tidbclusters": 6,
    # the created and patched objects, by moment
    "POST events": 6,
}


@pytest.mark.slow
@pytest.mark.rule("3.8")
def test_bring_up_sends_only_the_expected_requests() -> None:
    world = OperatorWorld()
    tree = sample("basic")
    for component, count in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        tree["spec"][component]["replicas"] = count
    world.apply(tree)
    world.run_until_ready()
    world.run(60.0)
    calls = [entry.call for entry in world.world.server.audit.recent() if entry.call.user == OPERATOR]
    world.stop()

    asked = Counter(f"{call.request.method} {call.resource.partition('.')[0]}" for call in calls)

    assert {} == dict(asked - Counter(_MOST))


def _status_writes_of_a_flapping_node(clock: FakeClock, period: float) -> list[int]:
    """The status writes in each of four minutes in which a node of PD and TiKV comes and goes."""
    world = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = cluster["spec"]["tikv"]["replicas"] = 3
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    world.run(60.0)
    found = []
    for _ in range(4):
        world.forget()
        for _ in range(int(60.0 / period)):
            heal = world.world.faults.host_cut_off("default/basic-tikv-0")
            world.run(period / 2)
            heal()
            world.run(period / 2)
        found.append(sum(each == "patch tidbclusters.pingcap.com/status basic" for each in world.writes()))
    world.stop()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("period", [20.0, pytest.param(30.0, marks=pytest.mark.thorough)])
@pytest.mark.rule("I29")
def test_a_flapping_node_costs_three_status_writes_a_minute(clock: FakeClock, period: float) -> None:
    writes = _status_writes_of_a_flapping_node(clock, period)
    assert writes[0]
    assert 3 >= max(writes)


@pytest.mark.slow
@pytest.mark.planted
def test_reports_a_status_that_is_written_at_each_change(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatusPacing, "pause", lambda *_: 0.0)
    assert 3 < max(_status_writes_of_a_flapping_node(clock, 20.0)[1:])
