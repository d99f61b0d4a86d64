"""A cluster that runs, in front of which commands are typed."""

from collections.abc import Iterator

import pytest

from sandbox.waiting_clock import WaitingClock
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import OperatorWorld, sample


@pytest.fixture(scope="session")
def running() -> Iterator[OperatorWorld]:
    """The sample `basic`, Ready; a test leaves it as it was."""
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    yield world
    world.stop()


@pytest.fixture(scope="session")
def world(running: OperatorWorld) -> OperatorWorld:
    """The world of `terminal`; modules have separate worlds."""
    return running


@pytest.fixture
def terminal(world: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal that lets the world continue while it waits."""
    return Terminal(world.admin, capsys, WaitingClock(world.clock, world.run))
