"""The examples run in both worlds: in the sandbox, and on the real control plane with its own controllers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.config import load_kubeconfig
from kube.http_transport import HttpTransport
from sandbox.world import World, load_crds
from tests.contract.worlds import Side
from tests.controlplane.processes import ControlPlane, require_or_reason, running
from tests.e2e.waiting import CLOCK

CRD = Path(__file__).parents[2] / "examples" / "sample_controller" / "crd.yaml"


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The sandbox on a port, without nodes: examples run no pods."""
    world = World(nodes=[], crds=load_crds(CRD))
    try:
        world.start()
        yield from _reached("sandbox", world.write_kubeconfig(tmp_path_factory.mktemp("sandbox")))
    finally:
        world.stop()


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running real control plane, which ends with the package; skips with the reason where it was not built."""
    if reason := require_or_reason():
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("controlplane")) as started:
        yield started


@pytest.fixture(scope="package")
def real(request: pytest.FixtureRequest) -> Iterator[Side]:
    """The real control plane; skips where it was not built."""
    control_plane: ControlPlane = request.getfixturevalue("control_plane")
    yield from _reached("real", control_plane.kubeconfig())


@pytest.fixture(scope="package", params=["sandbox", pytest.param("real", marks=pytest.mark.controlplane)])
def world(request: pytest.FixtureRequest) -> Side:
    """One of the two worlds."""
    side: Side = request.getfixturevalue(request.param)
    return side


@pytest.fixture
def namespace(world: Side) -> Iterator[str]:
    """A namespace of the test's own, deleted behind it."""
    name = world.new_namespace()
    yield name
    world.send("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The worlds, and the threads that serve them, outlive each test."""


def _reached(name: str, kubeconfig: Path) -> Iterator[Side]:
    transport = HttpTransport(load_kubeconfig(str(kubeconfig), CLOCK), {}, CLOCK)
    yield Side(name, transport, kubeconfig)
    transport.close()
