"""The world in which a change is rehearsed."""

from datetime import UTC, datetime

from kube.resources import CONFIG_MAPS, LEASES
from rehearsal.stage import Stage
from sandbox.kubelet.nodes import three_nodes
from sandbox.timings import Timings
from tests.operator_world import NAMESPACE, OperatorWorld


def test_the_fraction_of_the_second_at_which_a_user_asks_does_not_count() -> None:
    """With it, the same drill showed failovers up to ten seconds later or earlier."""
    with Stage([], datetime(2026, 11, 29, 4, 40, 16, 123456, tzinfo=UTC), Timings.real()) as stage:
        assert datetime(2026, 11, 29, 4, 40, 16, tzinfo=UTC) == stage.clock.wall()


def test_nodes_renew_no_leases() -> None:
    """Of fifty nodes they took a tenth of the CPU of a plan."""
    with Stage(three_nodes(), datetime(2026, 11, 29, tzinfo=UTC), Timings.real()) as stage:
        stage.run(lambda: False, 60.0)
        assert 0 == stage.world.server.audit.count(verb="patch", resource=str(LEASES), code=200)


def test_a_waiting_operator_polls_at_its_pace() -> None:
    world = OperatorWorld()
    world.operator.work()
    began = world.clock.now()
    world.operator.timers.call_at(began + 0.5, lambda: None)
    world.operator.let_pass(began + 10.0, pace=2.0)
    assert 2.0 == world.clock.now() - began
    world.stop()


def test_a_change_that_needs_no_sync_ends_no_wait() -> None:
    """E.g. a container of a new pod starts, which woke an operator for a poll that could have waited."""
    world, fired = OperatorWorld(), list[float]()
    world.operator.work()
    began = world.clock.now()
    world.operator.timers.call_at(began + 0.5, lambda: fired.append(world.clock.now() - began))
    world.world.advance(1.0)
    world.admin.create(CONFIG_MAPS, {"metadata": {"name": "another"}}, NAMESPACE)
    for _ in range(2):
        world.operator.let_pass(began + 10.0, pace=2.0)
        world.operator.work()
    assert [2.0] == fired
    world.stop()
