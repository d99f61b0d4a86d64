"""The sample controller, in both worlds, as its reader would try it."""

import contextlib
import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from examples.sample_controller.controller import GREETERS
from kube.errors import AlreadyExists
from kube.objects import Json
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS
from sandbox.conditions import holds
from tests.contract.worlds import Side, throughout
from tests.controlplane.processes import ControlPlane
from tests.e2e import operators
from tests.e2e.operators import Operator, sample_value
from tests.e2e.waiting import CLOCK, eventually

SAMPLE = Path(__file__).parents[2] / "examples" / "sample_controller"

PROGRAM = (sys.executable, "-m", "examples.sample_controller.controller")
DONE = {"Progressing": "False", "Ready": "True"}

Start = Callable[[], contextlib.AbstractContextManager[Operator]]

_NUMBERS = itertools.count(1)


def document(name: str) -> Json:
    tree: Json = yaml.safe_load((SAMPLE / name).read_text())
    return tree


@pytest.fixture
def kubeconfig(world: Side, request: pytest.FixtureRequest) -> Path:
    """The controller's identity: where rights are checked, it has the rights of its manifest and no more."""
    if world.name == "sandbox":
        return world.kubeconfig
    control_plane: ControlPlane = request.getfixturevalue("control_plane")
    role = document("rbac.yaml")
    binding = {
        "metadata": role["metadata"],
        "roleRef": {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": "reader"}],
    }
    with contextlib.suppress(AlreadyExists):
        world.client.create(CLUSTER_ROLES, role)
        world.client.create(CLUSTER_ROLE_BINDINGS, binding)
    return control_plane.kubeconfig("reader")


@pytest.fixture
def greeters(world: Side) -> None:
    """The resource is there."""
    crd = document("crd.yaml")
    with contextlib.suppress(AlreadyExists):
        world.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
    name = crd["metadata"]["name"]
    eventually(lambda: holds(world.client.get(CUSTOM_RESOURCE_DEFINITIONS, name).decode(), "Established"))


@pytest.fixture
def start(kubeconfig: Path, tmp_path: Path, greeters: None) -> Start:
    """The controller as readers of the guide run it: a separate process."""

    def started() -> contextlib.AbstractContextManager[Operator]:
        log = tmp_path / f"{next(_NUMBERS)}.log"
        flags = ("--lease-namespace=default", f"--lease-name={tmp_path.name.replace('_', '-')}")
        return operators.running(log, {"KUBECONFIG": str(kubeconfig)}, *flags, program=PROGRAM)

    return started


@pytest.fixture
def running(start: Start) -> Iterator[Operator]:
    """One of the two worlds."""
    with start() as process:
        yield process


def lease_of(process: Operator) -> str:
    return next(str(event["lease"]) for event in process.events if event["event"] == "leader election")


def leads(process: Operator) -> bool:
    return process.has_said(event="leader election", outcome="became leader")


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_the_sample_controller_greets_puts_back_and_cleans_up(world: Side, namespace: str) -> None:
    client = world.client

    def text() -> str | None:
        if not world.exists(CONFIG_MAPS, "world", namespace):
            return None
        found: str = client.get(CONFIG_MAPS, "world", namespace).decode()["data"]["text"]
        return found

    def status() -> tuple[str, dict[str, str]]:
        found = client.get(GREETERS, "world", namespace).decode().get("status", {})
        return found.get("text"), {each["type"]: each["status"] for each in found.get("conditions", ())}

    client.create(GREETERS, document("greeter.yaml"), namespace)
    eventually(lambda: text() == "Hello, World!", told=text)
    eventually(lambda: status() == ("Hello, World!", DONE), told=status)

    client.patch(GREETERS, "world", namespace, {"spec": {"greeting": "Good evening"}})
    eventually(lambda: text() == "Good evening, World!", told=text)

    client.patch(CONFIG_MAPS, "world", namespace, {"data": {"text": "Graffiti"}})
    eventually(lambda: text() == "Good evening, World!", told=text)

    client.delete(CONFIG_MAPS, "world", namespace)
    eventually(lambda: text() == "Good evening, World!", told=text)
    eventually(lambda: status() == ("Good evening, World!", DONE), told=status)

    versions = [client.get(each, "world", namespace).metadata.resource_version for each in (GREETERS, CONFIG_MAPS)]
    assert throughout(
        0.5,
        lambda: (
            versions
            == [client.get(each, "world", namespace).metadata.resource_version for each in (GREETERS, CONFIG_MAPS)]
        ),
    )

    client.delete(GREETERS, "world", namespace, propagation="Background")
    eventually(lambda: not world.exists(CONFIG_MAPS, "world", namespace))


@pytest.mark.slow
def test_the_sample_controller_serves_health_and_metrics(running: Operator) -> None:
    eventually(lambda: leads(running) and running.page("/readyz")[0] == 200)
    assert 200 == running.page("/healthz")[0]
    assert 1 == sample_value(running.page("/metrics")[1], "leader_election_master_status", {"name": lease_of(running)})
    workers = ("controller_runtime_max_concurrent_reconciles", {"controller": "greeter"})
    # they start after the election
    eventually(lambda: sample_value(running.page("/metrics")[1], *workers) == 5)


@pytest.mark.slow
def test_of_two_sample_controllers_one_leads_and_the_other_takes_over(start: Start) -> None:
    with start() as first, start() as second:
        eventually(lambda: all(process.page("/readyz")[0] == 200 for process in (first, second)))
        eventually(lambda: leads(first) or leads(second))
        leader, standby = (first, second) if leads(first) else (second, first)
        assert throughout(0.5, lambda: not leads(standby))
        assert 0 == leader.stop()
        eventually(lambda: leads(standby))
        assert 0 == standby.stop()


@pytest.mark.slow
def test_ctrl_c_ends_the_sample_controller_within_a_second(start: Start) -> None:
    def seconds_to_the_end() -> float:
        with start() as process:
            eventually(lambda: leads(process) and process.page("/readyz")[0] == 200)
            begun = CLOCK.now()
            process.signal(signal.SIGINT)
            assert 0 == process.wait()
            return CLOCK.now() - begun

    # one of ten: other tests share the machine
    assert any(seconds_to_the_end() < 1.0 for _ in range(10))


def test_the_sample_controller_has_at_most_40_lines() -> None:
    assert len((SAMPLE / "controller.py").read_text().splitlines()) <= 40


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_a_foreign_config_map_is_left_alone(world: Side, namespace: str) -> None:
    theirs = {"metadata": {"name": "world"}, "data": {"text": "Mine"}}
    before = world.client.create(CONFIG_MAPS, theirs, namespace).metadata.resource_version
    world.client.create(GREETERS, document("greeter.yaml"), namespace)

    assert throughout(
        0.5, lambda: before == world.client.get(CONFIG_MAPS, "world", namespace).metadata.resource_version
    )
