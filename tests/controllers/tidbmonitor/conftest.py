"""The operator in its own world, with the cluster `basic`."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from apis.consent import parse_policy
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from tests.controllers.tidbmonitor.monitors import Monitors
from tests.operator_world import OperatorWorld, sample

EVERYWHERE = replace(SETTINGS, references=parse_policy("*:*"))
"""The administrator permits references into all namespaces."""


@pytest.fixture(autouse=True)
def _no_stack_trace() -> Iterator[None]:
    """Any outside failure is an answer; a stack trace in the log is a defect of the operator."""
    with capture_logs() as logs:
        yield
    assert [] == [entry for entry in logs if "exc_info" in entry]


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    """An empty world with the operator in it."""
    made = OperatorWorld(clock=clock, settings=EVERYWHERE)
    yield made
    made.stop()


@pytest.fixture
def monitors(world: OperatorWorld) -> Monitors:
    """The world with the sample `basic` in it, which is paused, and no monitor yet: monitors wait for no pod of it."""
    body = sample("basic")
    world.apply(body | {"spec": body["spec"] | {"paused": True}})
    return Monitors(world)


@pytest.fixture
def beside_basic(world: OperatorWorld) -> Monitors:
    """The world with the sample `basic` in it, Ready."""
    world.apply(sample("basic"))
    world.run_until_ready()
    return Monitors(world)
