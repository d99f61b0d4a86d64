"""TiFlash's stores and learners, and the init container before them, as strict as the real ones."""

from collections.abc import Sequence

import pytest

from kube.objects import Json
from kube.resources import PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.conditions import holds
from sandbox.dataplane.pd.learners import PARTS, Learners, learners_on, place
from sandbox.dataplane.pd.regions import Place
from sandbox.dataplane.pd.stores import Store
from sandbox.dataplane.processes import Launch
from sandbox.world import World
from tests.sandbox.test_data_plane import Plane

NAMESPACE = "default"
TABLE = "table-45-r"

# The stores of learners


def settled(learners: Learners, counts: dict[str, int], places: Sequence[Place]) -> Learners:
    for _ in range(100):
        after = place(learners, counts, places, 2)
        if after == learners:
            return after
        learners = after
    raise AssertionError("learners move for ever")


def spread(learners: Learners, *stores: int) -> list[int]:
    return [learners_on(learners, store) for store in stores]


@pytest.mark.rule("15.2")
def test_a_table_has_its_replicas_on_different_stores_evenly() -> None:
    assert [4, 4, 4] == spread(settled({}, {TABLE: 2}, [Place(1), Place(2), Place(3)]), 1, 2, 3)
    # replicas in excess of the stores are not placed
    assert [PARTS, PARTS] == spread(settled({}, {TABLE: 3}, [Place(1), Place(2)]), 1, 2)


@pytest.mark.rule("15.2")
def test_a_replica_moves_only_to_a_store_without_one() -> None:
    two = settled({}, {TABLE: 2}, [Place(1), Place(2)])
    assert [PARTS, PARTS] == spread(settled(two, {TABLE: 2}, [Place(1), Place(2, removing=True)]), 1, 2)
    away = settled(two, {TABLE: 2}, [Place(1), Place(2, removing=True), Place(3)])
    assert [PARTS, 0, PARTS] == spread(away, 1, 2, 3)
    assert [PARTS, 0] == spread(settled(two, {TABLE: 1}, [Place(1), Place(2, removing=True)]), 1, 2)


@pytest.mark.rule("15.2")
def test_lost_replicas_are_recreated_and_dropped_tables_lose_theirs() -> None:
    one = settled({}, {TABLE: 1}, [Place(1)])
    assert [0, PARTS] == spread(settled(one, {TABLE: 1}, [Place(1, dead_for=9.0, lost=True), Place(2)]), 1, 2)
    assert [PARTS, 0] == spread(settled(one, {TABLE: 1}, [Place(1, dead_for=9.0), Place(2)]), 1, 2)
    assert [0] == spread(settled(one, {}, [Place(1)]), 1)


# The process

CONFIG = """
tmp_path = "/data0/tmp"
[flash]
service_addr = "0.0.0.0:3930"
[flash.proxy]
addr = "0.0.0.0:20170"
config = "/data0/proxy.toml"
[raft]
pd_addr = "basic-pd.ns.svc:2379"
[storage.main]
dir = ["/data0/db"]
"""
PROXY = """
[server]
engine-addr = "basic-tiflash-0.basic-tiflash-peer.ns.svc:3930"
status-addr = "0.0.0.0:20292"
"""


@pytest.fixture
def plane(clock: FakeClock) -> Plane:
    """Discovery and one PD."""
    made = Plane(clock)
    made.start("discovery")
    made.start("pd", config="[replication]\nmax-replicas = 1\n")
    made.advance(2)
    return made


def start(plane: Plane, **files: str) -> None:
    plane.launch(
        Launch(
            namespace="ns",
            pod="basic-tiflash-0",
            pod_uid="basic-tiflash-0",
            image="pingcap/tiflash:v8.5.0",
            command=("/bin/sh", "-c", "/tiflash/tiflash server --config-file /data0/config.toml"),
            files={f"/data0/{name}.toml": text for name, text in ({"config": CONFIG, "proxy": PROXY} | files).items()},
            ports=frozenset({3930, 20170, 20292}),
        )
    )


def stores(plane: Plane) -> list[Store]:
    return [each for each in plane.stores() if each.is_tiflash]


def status(plane: Plane) -> str:
    return plane.ask("GET", "/tiflash/store-status", host="basic-tiflash-0.ns:20292").body.decode()


def test_tiflash_waits_for_tikv_to_bootstrap(plane: Plane) -> None:
    start(plane)
    plane.advance(5)
    assert ("Idle", []) == (status(plane), stores(plane))

    plane.start("tikv")
    plane.advance(5)
    (store,) = stores(plane)
    assert ("Running", "basic-tiflash-0.basic-tiflash-peer.ns.svc:3930") == (status(plane), store.address)
    assert (0, {"engine": "tiflash"}) == (store.leaders, store.labels)


def test_pd_refuses_tiflash_while_placement_rules_are_off(plane: Plane) -> None:
    plane.start("tikv")
    plane.advance(2)
    plane.ask("POST", "/pd/api/v1/config/replicate", {"enable-placement-rules": "false"})
    start(plane)
    plane.advance(2)
    assert ([], False) == (stores(plane), plane.runs("basic-tiflash-0"))


@pytest.mark.parametrize(
    "files",
    [{"config": "tmp_path = "}, {"config": "logger = 1\n" + CONFIG}, {"proxy": "server = 1\n"}, {"proxy": "["}],
)
def test_tiflash_does_not_start_with_an_unreadable_configuration(plane: Plane, files: dict[str, str]) -> None:
    start(plane, **files)
    plane.advance(1)
    assert not plane.runs("basic-tiflash-0")


def test_voters_of_regions_are_never_on_tiflash(plane: Plane) -> None:
    plane.start("tikv")
    plane.start("tikv", 1)
    start(plane)
    plane.advance(30)
    (store,) = stores(plane)
    assert 0 == store.peers


# Init containers


def pod_with(*scripts: str) -> Json:
    containers = [
        {
            "name": f"init-{index}",
            "image": "busybox:1.36",
            "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        for index, script in enumerate(scripts)
    ]
    main = {"name": "main", "image": "pause:3.9"}
    volumes = [{"name": "data", "emptyDir": {}}]
    spec = {"initContainers": containers, "containers": [main], "volumes": volumes}
    return {"metadata": {"name": "p", "namespace": NAMESPACE}, "spec": spec}


@pytest.mark.parametrize(
    ("scripts", "ready"),
    [(["echo ok"], True), (["sysctl -w a=b"], True), (["exit 1"], False), (["echo ok", "exit 3"], False)],
)
def test_a_pod_starts_when_its_init_containers_have_done_their_work(
    clock: FakeClock, scripts: list[str], ready: bool
) -> None:
    world = World(clock, SeededRandomness(1))
    world.client().create(PODS, pod_with(*scripts), NAMESPACE)
    world.advance(10)
    assert ready is holds(world.client().get(PODS, "p", NAMESPACE).decode(), "Ready")
    world.stop()
