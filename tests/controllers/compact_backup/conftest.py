"""The world of CompactBackups."""

from collections.abc import Iterator

import pytest

from kube.resources import COMPACT_BACKUPS
from tests.controllers.backup.backups_world import BackupsWorld


@pytest.fixture
def world() -> Iterator[BackupsWorld]:
    """CompactBackups in the world of Backups."""
    world = BackupsWorld(COMPACT_BACKUPS)
    try:
        yield world
    finally:
        world.stop()
