"""The worlds, each booted once; the operator is a separate process in every test.

They end with the last test of the package, not with the session: even an idle control plane costs CPU.
"""

from collections.abc import Iterator

import pytest

from tests.controlplane.processes import require_or_reason, running
from tests.e2e import worlds
from tests.e2e.worlds import Place


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The world of our own."""
    with worlds.sandbox(tmp_path_factory.mktemp("sandbox")) as place:
        yield place


@pytest.fixture(scope="package")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A real control plane with our RBAC; skips where it was not built. It is not shared: the nodes of two suites on
    one control plane would fight for the pods."""
    if reason := require_or_reason():
        pytest.skip(reason)
    with (
        running(tmp_path_factory.mktemp("controlplane")) as control_plane,
        worlds.real(control_plane, tmp_path_factory.mktemp("real")) as place,
    ):
        yield place


@pytest.fixture(params=["sandbox", pytest.param("real", marks=pytest.mark.controlplane)])
def place(request: pytest.FixtureRequest) -> Place:
    """One of the two worlds."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def namespace(place: Place) -> Iterator[str]:
    """A namespace of the test's own."""
    with place.namespace() as name:
        yield name


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The worlds, and the threads that serve them, outlive each test."""
