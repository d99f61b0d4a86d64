"""Registries and mirrors have the released images."""

import pytest

from kube.objects import Json
from kube.resources import EVENTS, PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.kubelet import images
from sandbox.world import World

_DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    "image",
    [
        "pingcap/pd:v8.5.2",
        "pingcap/tikv:v8.5.3",
        "pingcap/tidb:v7.1.8-rc.1",
        "pingcap/tikv:nightly",
        "pingcap/pd:v7.1.0-pre",
        "pingcap/tidb:v8.5.0-alpha-nightly",
        "pingcap/tidb:v5.0.0-nightly",
        "pingcap/tikv:v6.5.3-20230915-1a2b3c4",
        "pingcap/tidb",
        "pingcap/tikv-enterprise:v8.5.2",
        f"pingcap/pd@{_DIGEST}",
        f"pingcap/pd:v8.5.2@{_DIGEST}",
        "docker.io/pingcap/pd:v8.5.2",
        "registry.example.com/mirror/pingcap/pd:v8.5.2",
        "registry.example.com:5000/databases/tikv:v8.5.2",
        "localhost:5000/tidb:v8.5.2",
        "busybox:1.37",
        "quay.io/prometheus/node-exporter:v1.9.0",
        "mine:2026-11-22_a",
    ],
)
def test_released_images_can_be_pulled(image: str) -> None:
    assert images.trouble(image) is None


@pytest.mark.parametrize(
    ("image", "reason", "message"),
    [
        ("pingcap/tikvv:v8.5.2", "ErrImagePull", "repository does not exist"),
        ("registry.example.com/mirror/pingcap/tikvv:v8.5.2", "ErrImagePull", "repository does not exist"),
        ("pingcap/tikv:v8.5.99-nope", "ErrImagePull", "not found"),
        ("pingcap/tikv:v8.5.2-prew", "ErrImagePull", "not found"),
        ("pingcap/tikv:v8.5.99", "ErrImagePull", "not found"),
        ("pingcap/tikv:v85.2.0", "ErrImagePull", "not found"),
        ("pingcap/tikv:8,5", "InvalidImageName", "invalid reference format"),
        ("registry.example.com/databases/tikv:stable", "ErrImagePull", "not found"),
        ("pingcap/TiKV:v8.5.2", "InvalidImageName", "invalid reference format"),
        ("pingcap/tikv: v8.5.2", "InvalidImageName", "invalid reference format"),
        ("https://registry.example.com/tikv:v8.5.2", "InvalidImageName", "invalid reference format"),
    ],
)
def test_unreleased_images_cannot_be_pulled(image: str, reason: str, message: str) -> None:
    found = images.trouble(image)
    assert found is not None
    assert reason == found[0]
    assert message in found[1]


def waiting(world: World, image: str) -> Json:
    """Why the container of a pod with this image waits."""
    spec = {"containers": [{"name": "main", "image": image}]}
    world.client().create(PODS, {"metadata": {"name": "one"}, "spec": spec}, "default")
    world.advance(5)
    found: Json = world.client().get(PODS, "one", "default").decode()["status"]["containerStatuses"][0]["state"]
    reason: Json = found.get("waiting", {})
    return reason


@pytest.mark.parametrize(
    ("image", "reason"), [("pingcap/tikvv:v8.5.2", "ImagePullBackOff"), ("pingcap/TiKV:v8.5.2", "InvalidImageName")]
)
def test_a_pod_waits_for_a_missing_image(clock: FakeClock, image: str, reason: str) -> None:
    world = World(clock, SeededRandomness(1))
    assert reason == waiting(world, image)["reason"]
    events = [each.decode() for each in world.client().list_page(EVENTS, "default").items]
    assert any("image" in event.get("message", "") for event in events if event["type"] == "Warning")


def test_only_the_container_with_the_missing_image_reports_it(clock: FakeClock) -> None:
    world = World(clock, SeededRandomness(1))
    init = [{"name": "first", "image": "pingcap/tikvv:v8.5.2", "command": ["true"]}]
    spec = {"initContainers": init, "containers": [{"name": "main", "image": "pingcap/tikv:v8.5.2"}]}
    world.client().create(PODS, {"metadata": {"name": "one"}, "spec": spec}, "default")
    world.advance(5)
    status = world.client().get(PODS, "one", "default").decode()["status"]
    assert "ImagePullBackOff" == status["initContainerStatuses"][0]["state"]["waiting"]["reason"]
    assert {"reason": "PodInitializing"} == status["containerStatuses"][0]["state"]["waiting"]


def test_an_image_may_be_pushed(clock: FakeClock) -> None:
    world = World(clock, SeededRandomness(1))
    world.faults.image_pushed("pingcap/tikv:v8.5.99-*")
    assert {} == waiting(world, "pingcap/tikv:v8.5.99-hotfix")


def test_a_failed_init_container_restarts_and_reports_its_end(clock: FakeClock) -> None:
    world = World(clock, SeededRandomness(1))
    init = [{"name": "first", "image": "busybox:1.36", "command": ["/bin/sh", "-c", "exit 4"]}]
    spec = {"initContainers": init, "containers": [{"name": "main", "image": "pingcap/tikv:v8.5.2"}]}
    world.client().create(PODS, {"metadata": {"name": "one"}, "spec": spec}, "default")
    world.advance(60)
    (first,) = world.client().get(PODS, "one", "default").decode()["status"]["initContainerStatuses"]
    assert "CrashLoopBackOff" == first["state"]["waiting"]["reason"]
    assert (4, True) == (first["lastState"]["terminated"]["exitCode"], first["restartCount"] > 1)
