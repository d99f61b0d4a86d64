"""A TiKV pod restarts only while no region needs its store for a quorum, and waits for at most ten minutes."""

from collections.abc import Iterator

import pytest

from kube.resources import PODS, TIDB_CLUSTERS
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.pd.stores import Stores
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

LIMIT = "tidb.pingcap.com/tikv-wait-for-region-quorum"
UNCHECKED = "tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade"


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 3
    made.apply(cluster)
    made.run_until_ready()
    yield made
    made.stop()


def stores_of(world: OperatorWorld) -> Stores:
    found = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert found is not None
    return found.stores


def let_a_peer_fall_behind(world: OperatorWorld, ordinal: int) -> None:
    """Let the peer of region 0 on a store wait for a snapshot."""
    stores = stores_of(world)
    store = next(each for each in stores.all() if each.address.startswith(f"basic-tikv-{ordinal}."))
    assert store.id in stores.regions[0].peers
    stores.pending = {0: (store.id,)}


def annotate(world: OperatorWorld, key: str, value: str) -> None:
    change = {"metadata": {"annotations": {key: value}}}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, change)


def uids(world: OperatorWorld) -> dict[str, str]:
    pods = (pod["metadata"] for pod in world.every(PODS) if "-tikv-" in pod["metadata"]["name"])
    return {each["name"]: each["uid"] for each in pods}


def begin_roll(world: OperatorWorld) -> None:
    world.change(tikv={"annotations": {"a": str(world.clock.now())}})


def finish(world: OperatorWorld, before: dict[str, str], within: float = 120.0) -> None:
    world.run_until(lambda: not set(before.values()) & set(uids(world).values()) and world.is_ready(), within)


def test_waits_for_a_region_that_needs_the_store_until_it_is_whole(world: OperatorWorld) -> None:
    before = uids(world)
    let_a_peer_fall_behind(world, 0)
    begin_roll(world)
    world.run_until(lambda: world.reason() == "RegionsNotWhole", 60.0)
    world.run(60.0)
    shown = world.condition("Progressing")["message"]
    assert "no region needs pod basic-tikv-2" in shown
    assert "the quorum of region 2 needs store" in shown
    assert (before, set(), True) == (uids(world), stores_of(world).evicting, stores_of(world).majority_alive())
    stores_of(world).pending = {}
    finish(world, before)
    assert [] == world.events("RegionQuorumTimeout")


def test_every_region_keeps_its_quorum_if_a_peer_falls_behind_during_the_eviction(world: OperatorWorld) -> None:
    before = uids(world)
    world.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    begin_roll(world)
    world.run_until(lambda: world.reason() == "EvictingLeaders", 60.0)
    let_a_peer_fall_behind(world, 0)
    world.world.faults.heal()
    world.run_until(lambda: world.reason() == "RegionsNotWhole", 60.0)
    world.run(30.0)
    assert (before, True) == (uids(world), stores_of(world).majority_alive())
    stores_of(world).pending = {}
    finish(world, before)


def test_restarts_the_pod_after_the_limit_and_names_the_regions(world: OperatorWorld) -> None:
    before, begun = uids(world), world.clock.now()
    annotate(world, LIMIT, "60s")
    let_a_peer_fall_behind(world, 0)
    begin_roll(world)
    world.run_until(lambda: bool(world.events("RegionQuorumTimeout")), 300.0)
    assert 120.0 <= world.clock.now() - begun <= 200.0
    (told,) = {event["message"] for event in world.events("RegionQuorumTimeout")}
    assert told.startswith(
        "restarting pod basic-tikv-2 after a wait of 60 s, although the quorum of region 2 needs store"
    )
    stores_of(world).pending = {}
    finish(world, before, 300.0)


@pytest.mark.parametrize(("annotation", "value"), [(LIMIT, "0s"), (UNCHECKED, "false")])
def test_an_annotation_of_the_cluster_skips_the_wait(world: OperatorWorld, annotation: str, value: str) -> None:
    before = uids(world)
    annotate(world, annotation, value)
    let_a_peer_fall_behind(world, 0)
    begin_roll(world)
    finish(world, before)


def test_an_annotation_without_a_duration_keeps_the_default_and_is_named(world: OperatorWorld) -> None:
    annotate(world, LIMIT, "soon")
    let_a_peer_fall_behind(world, 0)
    begin_roll(world)
    world.run_until(lambda: world.reason() == "RegionsNotWhole", 60.0)
    assert "waiting at most 600 s" in world.condition("Progressing")["message"]


def test_keeps_the_pod_while_pd_does_not_list_regions(world: OperatorWorld) -> None:
    before = uids(world)
    silence = Fault(Trouble.BLACK_HOLE, f"{NAMESPACE}/basic-pd-*", path="/pd/api/v1/regions/check/down-peer")
    world.world.faults.network_fault(silence)
    begin_roll(world)
    world.run(900.0)
    assert before == uids(world)
    world.world.faults.heal()
    finish(world, before)
