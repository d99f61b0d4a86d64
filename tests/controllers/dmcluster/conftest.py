"""The operator in its own world, driven in one thread."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from ports.clock import FakeClock
from tests.controllers.dmcluster.dm_world import DMWorld


@pytest.fixture(autouse=True)
def _no_stack_trace() -> Iterator[None]:
    """Any outside failure is an answer; an exception that no stage expected is a defect of the operator."""
    with capture_logs() as logs:
        yield
    assert [] == [entry for entry in logs if "unexpected" in entry["event"]]


@pytest.fixture
def world(clock: FakeClock) -> Iterator[DMWorld]:
    """An empty world with the operator in it."""
    made = DMWorld(clock=clock)
    yield made
    made.stop()


@pytest.fixture
def dm(world: DMWorld) -> DMWorld:
    """The world with the sample `dm` in it, Ready; nothing is counted yet."""
    world.bring_up()
    return world
