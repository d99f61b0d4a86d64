"""A take-over from an earlier version of this operator rewrites nothing (design.md 3.5)."""

import json
import re

import pytest

from ports.clock import FakeClock
from tests.takeover.left_by_v16 import Left
from tests.takeover.observer import planned_writes
from tests.takeover.our_own import DIRECTORY

pytestmark = pytest.mark.slow

EXPLAINED = re.compile(r":10080/labels$|^patch roles\S* \S+-discovery$")
"""The servers that a recording starts have no labels, and Discovery may get pods by now."""

VERSIONS = sorted(path.stem for path in DIRECTORY.glob("*.json"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.rule("design-3.5")
def test_the_objects_of_an_earlier_version_are_left_as_they_are(version: str, clock: FakeClock) -> None:
    left = Left(json.loads((DIRECTORY / f"{version}.json").read_text())["items"], clock)
    pods, world = left.pods(), left.world
    assert [] == left.not_ready()
    assert [] == [each for each in planned_writes(world, 5.0) if not EXPLAINED.search(each)]
    world.run(35.0)
    now = left.pods()
    world.stop()
    assert pods == now
    written = [each for each in world.writes() if not EXPLAINED.search(each)]
    assert [] == [each for each in written if not each.startswith("patch tidbclusters.pingcap.com/status")]
