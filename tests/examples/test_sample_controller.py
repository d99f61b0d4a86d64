"""The sample controller, in both worlds, as its reader would try it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from examples.sample_controller.controller import GREETERS, run
from informers.threads import start_thread
from kube.config import load_kubeconfig
from kube.errors import AlreadyExists
from kube.objects import Json
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS
from ports.stopping import Stop
from sandbox.conditions import holds
from tests.contract.worlds import Side, throughout
from tests.controlplane.processes import ControlPlane
from tests.e2e.waiting import CLOCK, eventually

SAMPLE = Path(__file__).parents[2] / "examples" / "sample_controller"


def document(name: str) -> Json:
    tree: Json = yaml.safe_load((SAMPLE / name).read_text())
    return tree


@pytest.fixture
def kubeconfig(world: Side, request: pytest.FixtureRequest) -> Path:
    """The controller's identity: where rights are checked, it has those of its manifest and no more."""
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
def running(world: Side, kubeconfig: Path) -> Iterator[None]:
    """The controller, as `main` runs it."""
    crd = document("crd.yaml")
    with contextlib.suppress(AlreadyExists):
        world.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
    name = crd["metadata"]["name"]
    eventually(lambda: holds(world.client.get(CUSTOM_RESOURCE_DEFINITIONS, name).decode(), "Established"))
    stop, drained = Stop(), list[bool]()
    config = load_kubeconfig(str(kubeconfig), CLOCK)
    thread = start_thread("sample-controller", lambda: drained.append(run(config, stop)))
    yield
    stop.set()
    thread.join()
    assert [True] == drained


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_the_sample_controller_greets_puts_back_and_cleans_up(world: Side, namespace: str) -> None:
    client = world.client

    def text() -> str | None:
        if not world.exists(CONFIG_MAPS, "world", namespace):
            return None
        found: str = client.get(CONFIG_MAPS, "world", namespace).decode()["data"]["text"]
        return found

    def status() -> Json:
        found: Json = client.get(GREETERS, "world", namespace).decode().get("status", {})
        return found

    client.create(GREETERS, document("greeter.yaml"), namespace)
    eventually(lambda: text() == "Hello, World!", told=text)
    eventually(lambda: status() == {"text": "Hello, World!"}, told=status)

    client.patch(GREETERS, "world", namespace, {"spec": {"greeting": "Good evening"}})
    eventually(lambda: text() == "Good evening, World!", told=text)

    client.patch(CONFIG_MAPS, "world", namespace, {"data": {"text": "Graffiti"}})
    eventually(lambda: text() == "Good evening, World!", told=text)

    client.delete(CONFIG_MAPS, "world", namespace)
    eventually(lambda: text() == "Good evening, World!", told=text)
    eventually(lambda: status() == {"text": "Good evening, World!"}, told=status)

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
@pytest.mark.usefixtures("running")
def test_a_config_map_of_somebody_else_is_left_alone(world: Side, namespace: str) -> None:
    theirs = {"metadata": {"name": "world"}, "data": {"text": "Mine"}}
    before = world.client.create(CONFIG_MAPS, theirs, namespace).metadata.resource_version
    world.client.create(GREETERS, document("greeter.yaml"), namespace)

    assert throughout(
        0.5, lambda: before == world.client.get(CONFIG_MAPS, "world", namespace).metadata.resource_version
    )
