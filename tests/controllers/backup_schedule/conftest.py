"""A world with the controllers of Backups and their schedules in it."""

from collections.abc import Iterator

import pytest

from tests.controllers.backup_schedule.schedules_world import SchedulesWorld


@pytest.fixture
def world() -> Iterator[SchedulesWorld]:
    """Without nodes: Jobs have pods, which wait, until the test says how they end."""
    world = SchedulesWorld()
    try:
        yield world
    finally:
        world.stop()
