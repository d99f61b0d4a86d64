"""A world with a TidbCluster and the operator."""

from collections.abc import Iterator

import pytest

from kube.resources import TIDB_INITIALIZERS
from tests.controllers.simple_world import SimpleWorld


@pytest.fixture
def world() -> Iterator[SimpleWorld]:
    """Without nodes: Jobs have pods, which wait, until the test says how they end."""
    made = SimpleWorld(TIDB_INITIALIZERS)
    try:
        yield made
    finally:
        made.stop()
