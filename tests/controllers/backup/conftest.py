"""A world with the controller of Backups alone in it."""

from collections.abc import Iterator

import pytest

from tests.controllers.backup.backups_world import BackupsWorld
from tests.controllers.backup.log_backups_world import LogBackupsWorld


@pytest.fixture
def backups() -> Iterator[BackupsWorld]:
    """Without nodes: Jobs have pods, which wait, until the test says how they end."""
    world = BackupsWorld()
    try:
        yield world
    finally:
        world.stop()


@pytest.fixture
def logs() -> Iterator[LogBackupsWorld]:
    """With the log backup `demo`."""
    world = LogBackupsWorld()
    try:
        yield world
    finally:
        world.stop()
