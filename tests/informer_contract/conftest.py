"""Every test runs on both servers. They are the contract's own: what happens to them would disturb other tests."""

import itertools
from collections.abc import Iterator

import pytest

from kube.resources import NAMESPACES
from tests.controlplane.processes import require_or_reason, running
from tests.informer_contract.servers import RealServer, SandboxServer, Server

_BIRTH = itertools.count(1)


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The sandbox's API server."""
    server = SandboxServer(tmp_path_factory.mktemp("sandbox"))
    yield server
    server.stop()


@pytest.fixture(scope="package")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Kubernetes' API server on etcd; skips where they were not built."""
    if reason := require_or_reason():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("real")
    with running(directory, api_only=True) as control_plane:
        server = RealServer(control_plane, directory)
        yield server
        server.stop()


@pytest.fixture(scope="package", params=["sandbox", pytest.param("real", marks=pytest.mark.controlplane)])
def server(request: pytest.FixtureRequest) -> Server:
    """One of the two servers."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def namespace(server: Server) -> str:
    """A namespace of the test's own."""
    name = f"contract-{next(_BIRTH)}"
    server.admin.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The servers, and the threads of the sandbox's, outlive each test."""
