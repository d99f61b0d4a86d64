"""The message of Ready names the known causes of a DMCluster's wait."""

import pytest

from member.context import Settings
from ports.clock import FakeClock
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import sample

_STEP = "DM-master does not answer yet: Discovery, which it asks at its first start, does not run: "


def said(world: DMWorld) -> str:
    """The message of Ready after a while."""
    world.run(60.0)
    return str(world.condition("Ready", NAME)["message"])


def test_the_image_of_discovery_is_named(clock: FakeClock) -> None:
    world = DMWorld(clock=clock, settings=Settings("pingcap/nope:v1"))
    world.apply(sample("dm"))
    assert f"{_STEP}container discovery: ImagePullBackOff: pingcap/nope:v1" in said(world)
    world.stop()


@pytest.mark.slow
def test_names_what_refuses_the_discovery_pod_until_it_is_gone(world: DMWorld) -> None:
    allow = world.world.faults.creation_refused("pods", "*-discovery-*")
    world.apply(sample("dm"))
    message = said(world)
    assert (True, True) == (_STEP in message, "exceeded quota: sandbox" in message)
    allow()
    world.run_until_ready(NAME, within=180.0)
