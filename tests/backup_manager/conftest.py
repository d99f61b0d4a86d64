"""A world for each test."""

import pytest

from tests.backup_manager.worlds import World


@pytest.fixture
def world() -> World:
    return World()
