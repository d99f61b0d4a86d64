"""A node keeps the images that its pods have pulled, and lists them as a kubelet does."""

import pytest

from kube.objects import Json
from kube.resources import NODES, PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.kubelet.stored_images import MOST_LISTED, StoredImages, full_name
from sandbox.timings import Timings
from sandbox.world import World

_DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("pingcap/tikv:v8.5.2", "docker.io/pingcap/tikv:v8.5.2"),
        ("docker.io/pingcap/tikv:v8.5.2", "docker.io/pingcap/tikv:v8.5.2"),
        ("localhost/tikv", "localhost/tikv:latest"),
        ("mirror:5000/tikv:v8.5.2", "mirror:5000/tikv:v8.5.2"),
        (f"pingcap/tikv:v8.5.2@{_DIGEST}", f"docker.io/pingcap/tikv@{_DIGEST}"),
    ],
)
def test_a_runtime_completes_names(image: str, name: str) -> None:
    assert name == full_name(image)


def test_a_node_lists_its_largest_images_with_digests_first() -> None:
    images = StoredImages()
    for number in range(MOST_LISTED + 10):
        images.add("node-0", f"app:{number}")
    listed = images.listed("node-0")
    sizes = [each["sizeBytes"] for each in listed]
    assert MOST_LISTED == len(listed)
    assert sorted(sizes, reverse=True) == sizes
    assert all(["@sha256:" in name for name in each["names"]] == [True, False] for each in listed)


def test_an_image_has_all_names_that_a_node_lists() -> None:
    images = StoredImages()
    names = [f"docker.io/pingcap/tikv@{_DIGEST}", "docker.io/pingcap/tikv:v8.5.2"]
    images.recall("node-0", [{"names": names, "sizeBytes": 1}, {"sizeBytes": 2}])
    images.add("node-0", "pingcap/tikv:v8.5.2")
    assert images.has("node-0", f"pingcap/tikv@{_DIGEST}")
    assert [names] == [each["names"] for each in images.listed("node-0")]
    assert not images.has("node-1", "pingcap/tikv:v8.5.2")


def new_world(clock: FakeClock) -> World:
    """A world in which a pull takes five seconds."""
    return World(clock, SeededRandomness(1), Timings.real())


def started(world: World, clock: FakeClock, name: str, image: str) -> float:
    """Create a pod of that name on node-0; returns the seconds until its container runs."""
    spec = {"containers": [{"name": "main", "image": image}], "nodeName": "node-0"}
    world.client().create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")
    began = clock.now()

    def is_running() -> bool:
        pod = world.mirror.get(PODS, "default", name) or {}
        return bool((pod.get("status") or {}).get("phase") == "Running")

    world.run_until(is_running, within=60.0)
    return clock.now() - began


def node(world: World, name: str = "node-0") -> Json:
    return world.client().get(NODES, name).decode()


def test_a_node_reports_an_image_once(clock: FakeClock) -> None:
    world = new_world(clock)
    pulled = started(world, clock, "one", "pingcap/tikv:v8.5.2")
    world.advance(20.0)
    reported = node(world)
    assert ["docker.io/pingcap/tikv:v8.5.2"] == [each["names"][1] for each in reported["status"]["images"]]
    assert pulled - 5.0 == pytest.approx(started(world, clock, "two", "docker.io/pingcap/tikv:v8.5.2"))
    world.advance(60.0)
    assert reported["metadata"]["resourceVersion"] == node(world)["metadata"]["resourceVersion"]
    assert "images" not in node(world, "node-1")["status"]
    world.stop()


def test_another_world_continues_with_the_images_of_a_node(clock: FakeClock) -> None:
    world = new_world(clock)
    pulled = started(world, clock, "one", "pingcap/tikv:v8.5.2")
    world.advance(20.0)
    listed = node(world)["status"]["images"]
    other = new_world(clock)
    other.take_over({NODES: [node(world)]})
    assert pulled - 5.0 == pytest.approx(started(other, clock, "two", "pingcap/tikv:v8.5.2"))
    assert listed == node(other)["status"]["images"]
    for each in (world, other):
        each.stop()


def test_a_successor_returns_to_the_node_of_its_pod(clock: FakeClock) -> None:
    """node-0 comes first otherwise, since all are equally empty."""
    world = new_world(clock)
    spec = {"containers": [{"name": "main", "image": "pause:3.9"}]}
    meta: Json = {"name": "one", "namespace": "default", "uid": "1"}
    there: Json = {"metadata": meta, "spec": spec | {"nodeName": "node-2"}, "status": {"phase": "Running"}}
    world.take_over({PODS: [there]})
    world.settle()
    world.client().delete(PODS, "one", "default")
    world.advance(40.0)
    world.client().create(PODS, {"metadata": {"name": "one"}, "spec": spec}, "default")
    world.advance(1.0)
    assert "node-2" == world.client().get(PODS, "one", "default").decode()["spec"]["nodeName"]
    world.stop()


def test_an_image_without_a_size_comes_last() -> None:
    """The API leaves out a size of 0, and names that are unknown."""
    images, small = StoredImages(), {"names": ["docker.io/app:1"], "sizeBytes": 1}
    images.recall("node", [{"names": ["docker.io/app:0"]}, small, {"names": None}])
    assert [small, {"names": ["docker.io/app:0"]}] == images.listed("node")
