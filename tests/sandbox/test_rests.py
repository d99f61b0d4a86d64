"""Skipped steps have no effect: in this world every skipped step runs nevertheless."""

from collections.abc import Callable

import pytest

from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import Request
from sandbox.timings import Timings
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE, PD, create, create_discovery, discovery
from tests.sandbox.rests import LookedTwice

PROGRAMS = {"/usr/local/bin/tidb-discovery": discovery}
BASIC = f"{NAMESPACE}/basic"


def leaders_cannot_leave(world: World) -> None:
    world.faults.regions_frozen(BASIC)
    eviction = {"name": "evict-leader-scheduler", "store_id": "{store}"}
    world.faults.pd_ctl(BASIC, "POST", "schedulers", eviction, pod="basic-tikv-0")


def member_removed(world: World) -> None:
    # one of the two does not lead
    for name in ("basic-pd-1", "basic-pd-2"):
        world.data_plane_transport().request(Request("DELETE", f"{PD}/pd/api/v1/members/name/{name}"))


TROUBLES: dict[str, Callable[[World], object]] = {
    "nothing": lambda world: None,
    "a machine stops": lambda world: world.faults.host_gone(f"{BASIC}-pd-1"),
    "a node is cut off": lambda world: world.faults.node_cut_off("node-0"),
    "a store crashes": lambda world: world.faults.pod_crash(f"{BASIC}-tikv-0"),
    "a member crashes again and again": lambda world: world.faults.pod_crash_loop(f"{BASIC}-pd-0"),
    "most members crash again and again": lambda world: world.faults.pod_crash_loop(f"{BASIC}-pd-[12]"),
    "a member is removed": member_removed,
    "stores hang": lambda world: world.faults.pod_hang(f"{BASIC}-tikv-*"),
    "members hang": lambda world: world.faults.pod_hang(f"{BASIC}-pd-[12]"),
    "a pod is not ready": lambda world: world.faults.pod_unready(f"{BASIC}-pd-0"),
    "members do not reach each other": lambda world: world.faults.network_cut(f"{BASIC}-pd-1", "*", port=2380),
    "nobody is elected": lambda world: world.faults.pd_no_leader(BASIC),
    "the leader changes": lambda world: world.faults.pd_leader_changes(BASIC),
    "leaders are to leave a store, but stay where they are": leaders_cannot_leave,
    "more replicas are asked for": lambda world: world.faults.placement_rule(BASIC, 4),
    "a pod is evicted": lambda world: world.faults.pod_evicted(f"{BASIC}-tikv-2"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_resting_actors_have_no_work(trouble: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = LookedTwice(monkeypatch)
    timings = Timings(probe_period=1.0)
    world = World(clock, SeededRandomness(1), timings, programs=PROGRAMS)
    create_discovery(world.client())
    for component, replicas in (("pd", 3), ("tikv", 4), ("tidb", 1)):
        create(world.client(), component, replicas)
    world.advance(60)

    # all processes were just stepped, and rest
    world.data_plane.changed()
    world.settle()
    TROUBLES[trouble](world)
    world.advance(120)
    world.faults.heal()
    world.advance(30)
    world.client().patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": {"replicas": 5}})
    world.client().delete(PODS, "basic-pd-0", NAMESPACE)
    grown = {"spec": {"resources": {"requests": {"storage": "20Gi"}}}}
    world.client().patch(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-1", NAMESPACE, grown)
    world.advance(60)
    world.stop()

    assert min(checked.processes, checked.pods, checked.claims) > 0


def test_a_volume_that_shrinks_under_a_claim_that_rests_grows_again(clock: FakeClock) -> None:
    world = World(clock, SeededRandomness(1), programs=PROGRAMS)
    create(world.client(), "pd", 1)
    world.advance(60)
    claim = world.client().get(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-0", NAMESPACE).decode()
    less = {"spec": {"capacity": {"storage": "1Mi"}}}
    volume = world.client().patch(PERSISTENT_VOLUMES, claim["spec"]["volumeName"], "", less).decode()
    assert "1Mi" == volume["spec"]["capacity"]["storage"]

    world.advance(1)
    volume = world.client().get(PERSISTENT_VOLUMES, claim["spec"]["volumeName"]).decode()
    assert "1Gi" == volume["spec"]["capacity"]["storage"]
    world.stop()
