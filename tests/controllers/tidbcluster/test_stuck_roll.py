"""A roll that waits for room on a node costs PD little."""

import pytest

from tests.operator_world import OperatorWorld, sample

_LATEST = 10.0
"""The longest interval between two checks, in seconds."""


@pytest.mark.slow
def test_a_pod_that_no_node_takes_is_checked_less_and_less_often() -> None:
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    world.change(tidb={"schedulerName": "nobody"})
    world.run(200.0)
    assert "RollingUpdate" == world.reason()
    before = _questions(world)
    world.run(100.0)
    checks = _questions(world) - before
    world.stop()
    assert checks <= 100.0 / _LATEST + 4


def _questions(world: OperatorWorld) -> int:
    """How often the operator has asked PD for its members, which it does in every reconcile."""
    return sum(each.url.endswith("/pd/api/v1/members") for each in world.operator.dataplane.requests)
