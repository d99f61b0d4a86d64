"""The operator in its own world, driven in one thread."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from ports.clock import FakeClock
from tests.operator_world import OperatorWorld, sample


@pytest.fixture(autouse=True)
def _no_stack_trace() -> Iterator[None]:
    """Any outside failure is an answer; a stack trace in the log is a defect of the operator."""
    with capture_logs() as logs:
        yield
    assert [] == [entry for entry in logs if "exc_info" in entry]


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """An empty world with the operator in it."""
    made = OperatorWorld(clock=clock)
    yield made
    made.stop()


@pytest.fixture
def basic(world: OperatorWorld) -> OperatorWorld:
    """The world with the sample `basic` in it, Ready; nothing is counted yet."""
    world.apply(sample("basic"))
    world.run_until_ready()
    world.forget()
    return world
