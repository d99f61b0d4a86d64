"""A controller that waits for a lagging cache checks it increasingly rarely (F3, F6)."""

from collections.abc import Mapping

import pytest

from controllers.cache_waits import CacheWaits
from kube.resources import STATEFUL_SETS
from member.outcome import Done, Outcome, Waiting
from ports.clock import FakeClock
from tests.operator_world import OperatorWorld, sample

CONFLICT = Waiting("Conflict", "another client changed it", 0.5)


def looks(waits: CacheWaits, clock: FakeClock, outcomes: Mapping[str, Outcome], seconds: float) -> int:
    """The number of checks in this many seconds."""
    end, count = clock.now() + seconds, 0
    while clock.now() < end:
        again = waits.paced(outcomes, clock)["tikv"].retry_after
        assert again is not None
        clock.step(again)
        count += 1
    return count


@pytest.mark.parametrize("reason", ["Conflict", "CacheOutdated", "PodChanged"])
@pytest.mark.rule("F3")
def test_checks_become_rarer_the_longer_it_waits(clock: FakeClock, reason: str) -> None:
    waits, outcomes = CacheWaits(), {"tikv": Waiting(reason, "why", 0.5)}
    assert [10, 27, 11] == [looks(waits, clock, outcomes, seconds) for seconds in (5, 60, 100)]


def test_the_interval_is_reset_by_the_next_wait(clock: FakeClock) -> None:
    waits = CacheWaits()
    looks(waits, clock, {"tikv": CONFLICT}, 100)
    waits.paced({"tikv": Done()}, clock)
    assert {"tikv": CONFLICT} == waits.paced({"tikv": CONFLICT}, clock)


@pytest.mark.parametrize(
    "outcome", [Done(retry_after=0.5), Waiting("Conflict", "an event tells"), Waiting("A", "", 0.5)]
)
def test_a_wait_for_something_else_keeps_its_own_interval(clock: FakeClock, outcome: Outcome) -> None:
    waits = CacheWaits()
    waits.paced({"tikv": outcome}, clock)
    clock.step(100)
    assert {"tikv": outcome} == waits.paced({"tikv": outcome}, clock)


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_a_cache_that_is_behind_for_minutes_costs_few_requests() -> None:
    """Twice a second, each with the reads of a reconcile, that was more than a thousand."""
    world = OperatorWorld()
    try:
        world.apply(sample("basic"))
        world.run_until_ready()
        world.operator.caches[STATEFUL_SETS].blind = True
        world.change(tidb={"replicas": 3})
        before = len(world.operator.dataplane.requests)
        world.run(120)
        assert "Conflict" == world.reason()
        assert 500 > len(world.operator.dataplane.requests) - before
    finally:
        world.stop()
