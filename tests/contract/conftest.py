"""Every test of the contract runs in both worlds, each booted once.

The worlds end with the package: even an idle control plane takes CPU.
"""

from collections.abc import Iterator

import pytest

from tests.contract import worlds
from tests.contract.worlds import Side, eventually, is_serving
from tests.controlplane.processes import require_or_reason, running


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The world of our own."""
    with worlds.sandbox(tmp_path_factory.mktemp("sandbox")) as side:
        eventually(lambda: is_serving(side))
        yield side


@pytest.fixture(scope="package")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The world to live up to; skips where it was not built."""
    if reason := require_or_reason():
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("controlplane")) as control_plane, worlds.real(control_plane) as side:
        eventually(lambda: is_serving(side))
        yield side


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
