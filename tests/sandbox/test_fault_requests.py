"""Faults of a sandbox by name: put in, shown and taken out over its API server."""

from collections.abc import Iterator

import msgspec
import pytest

from kube.errors import ApiError, BadRequest, NotFound
from kube.objects import condition_of
from kube.resources import NODES, PODS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.fault_requests import PATH, VERBS
from sandbox.world import World


@pytest.fixture
def world(clock: FakeClock) -> World:
    made = World(clock, SeededRandomness(1))
    made.serve_http()
    return made


@pytest.fixture(autouse=True)
def _ended(world: World) -> Iterator[None]:
    yield
    world.stop()


def ask(world: World, fault: str, on: str = "") -> list[str]:
    answer = world.client().request("POST", PATH, body={"fault": fault, "on": on})
    found: list[str] = msgspec.json.decode(answer.body)["faults"]
    return found


def is_ready(world: World, node: str) -> bool:
    conditions = world.client().get(NODES, node).decode()["status"]["conditions"]
    return bool(condition_of(conditions, "Ready").get("status") == "True")


def test_a_fault_is_put_in_shown_and_taken_out(world: World) -> None:
    world.advance(5.0)
    assert ["node-lost node-1"] == ask(world, "node-lost", "node-1") == ask(world, "node-lost", "node-1")
    world.advance(90.0)
    assert [True, False] == [is_ready(world, each) for each in ("node-0", "node-1")]
    assert ["node-lost node-1", "image-missing a:b"] == ask(world, "image-missing", "a:b")
    answer = world.client().request("DELETE", f"{PATH}?fault=node-lost+node-1")
    assert ["image-missing a:b"] == msgspec.json.decode(answer.body)["faults"]
    world.advance(30.0)
    assert is_ready(world, "node-1")
    assert [] == msgspec.json.decode(world.client().request("DELETE", PATH).body)["faults"]


@pytest.mark.parametrize(
    ("fault", "on", "expected", "said"),
    [
        ("node-gone", "node-1", BadRequest, "no fault node-gone; there are node-lost, "),
        ("node-lost", "", BadRequest, "the fault takes NODE"),
        ("node-lost", "node-9", NotFound, 'nodes "node-9" not found'),
        ("pod-hang", "basic-pd-0", NotFound, 'pods "basic-pd-0" not found'),
        ("pd-no-leader", "basic", BadRequest, "no member of PD of default/basic runs"),
        ("network-slow", "much", BadRequest, "network-slow much: could not convert"),
        ("webhook", "none", BadRequest, "no webhook 'none'; there are"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_with_its_reason(
    world: World, fault: str, on: str, expected: type[ApiError], said: str
) -> None:
    with pytest.raises(expected) as refused:
        ask(world, fault, on)
    assert said in refused.value.message
    assert [] == msgspec.json.decode(world.client().request("GET", PATH).body)["faults"]


def test_every_fault_describes_its_parameters_and_its_meaning(world: World) -> None:
    known = msgspec.json.decode(world.client().request("GET", PATH).body)["known"]
    assert list(VERBS) == list(known)
    assert all(each["takes"] and each["means"] for each in known.values())


def test_a_pod_of_the_default_namespace_needs_no_namespace(world: World) -> None:
    container = {"name": "a", "image": "b"}
    world.client().create(PODS, {"metadata": {"name": "one"}, "spec": {"containers": [container]}}, "default")
    assert ["pod-hang default/one"] == ask(world, "pod-hang", "one")
    answer = world.client().request("DELETE", f"{PATH}?fault=pod-hang+one")
    assert [] == msgspec.json.decode(answer.body)["faults"]
