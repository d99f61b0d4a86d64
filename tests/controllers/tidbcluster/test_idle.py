"""A healthy, unchanged cluster costs next to nothing (design.md 3.8, I29, I40)."""

import pytest

from kube.objects import Json
from tests.operator_world import OperatorWorld, sample


def count_five_resyncs(world: OperatorWorld) -> None:
    world.run(30.0)  # PD moves leaders until they are balanced
    world.forget()
    world.run(150.0)


@pytest.mark.slow
@pytest.mark.rule("I29")
def test_five_resyncs_of_a_ready_cluster_write_nothing(basic: OperatorWorld) -> None:
    count_five_resyncs(basic)

    assert [] == basic.writes()
    assert [] == basic.operator.dataplane.writes()
    assert [] == basic.reads()


@pytest.mark.slow
@pytest.mark.rule("I40")
def test_an_idle_reconcile_sends_few_requests_to_the_data_plane(world: OperatorWorld) -> None:
    world.apply(sample("advanced"))
    world.run_until_ready("advanced")
    world.run(60.0)
    world.forget()
    world.operator.resync()
    world.operator.work()

    servers: Json = sample("advanced")["spec"]["tidb"]
    asked = [request.url.partition("/pd/api/v1/")[2] or "status" for request in world.operator.dataplane.requests]
    assert [
        *("members", "health", "stores?state=0&state=1&state=2"),
        *["status"] * servers["replicas"],
    ] == asked


@pytest.mark.slow
@pytest.mark.rule("I31")
def test_a_new_process_writes_nothing_to_an_idle_cluster(basic: OperatorWorld) -> None:
    basic.restart()
    count_five_resyncs(basic)

    assert [] == basic.writes()
    assert [] == basic.operator.dataplane.writes()
