"""A server with a stopped clock."""

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.apiserver import ApiServer
from tests.sandbox.apiserver.calls import Calls


@pytest.fixture
def server(clock: FakeClock) -> ApiServer:
    """A fresh server with one known token."""
    return ApiServer(clock, SeededRandomness(1), {"secret": "operator"})


@pytest.fixture
def call(server: ApiServer) -> Calls:
    """Requests to the server."""
    return Calls(server)
