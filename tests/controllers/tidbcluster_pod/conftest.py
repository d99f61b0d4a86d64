"""The operator in its own world, with a cluster whose pods can get commands."""

from collections.abc import Iterator

import pytest

from ports.clock import FakeClock
from tests.controllers.tidbcluster.conftest import _no_stack_trace
from tests.controllers.tidbcluster_pod.commanding import Commanded
from tests.operator_world import sample

__all__ = ["_no_stack_trace"]


@pytest.fixture
def world(clock: FakeClock) -> Iterator[Commanded]:
    """`basic` with three PD, four TiKV and two TiDB, Ready; leaders are where they stay."""
    world = Commanded(clock=clock)
    body = sample("basic")
    for component, replicas in (("pd", 3), ("tikv", 4), ("tidb", 2)):
        body["spec"][component]["replicas"] = replicas
    body["spec"]["tidb"]["storageVolumes"] = [{"name": "tmp", "storageSize": "1Gi", "mountPath": "/tmp/tidb"}]
    world.apply(body)
    world.run_until_ready()
    world.run(60.0)
    world.forget()
    yield world
    world.stop()
