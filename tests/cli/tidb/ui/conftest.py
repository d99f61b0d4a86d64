"""A sandbox that the page is served for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ports.clock import SystemClock
from ports.randomness import SeededRandomness
from rehearsal.world import new_world


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sandbox that runs."""
    world = new_world(SystemClock(), SeededRandomness(1))
    world.start()
    try:
        yield world.write_kubeconfig(tmp_path_factory.mktemp("sandbox"), None)
    finally:
        world.stop()
