"""A cluster that runs, in front of which commands are typed."""

from collections.abc import Iterator

import pytest

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


@pytest.fixture
def terminal(running: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal in front of it."""
    return Terminal(running.admin, capsys, running.clock)
