"""The metrics of a schedule, from the cache at the scrape."""

import pytest

from kube.resources import BACKUPS
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup_schedule.schedules_world import DAY, HOUR, SchedulesWorld


def value(world: SchedulesWorld, family: str, **labels: str) -> float | None:
    """A sample of the schedule `nightly`."""
    wanted = {"namespace": NAMESPACE, "name": "nightly", **labels}
    return world.operator.registry.get_sample_value(f"tidb_operator_backup_schedule_{family}", wanted)


@pytest.mark.slow
def test_counts_overdue_backups(world: SchedulesWorld) -> None:
    world.schedule()
    assert 0 == value(world, "overdue")
    world.pass_time(4 * HOUR)
    assert 1 == value(world, "overdue"), "the first is under way"
    world.complete()
    assert (0, 1767240000) == (value(world, "overdue"), value(world, "last_complete_timestamp_seconds"))
    for night in range(1, 4):
        world.pass_time(DAY)
        world.fail()
        assert night == value(world, "overdue")
    world.change(pause=True)
    assert 0 == value(world, "overdue")


@pytest.mark.slow
@pytest.mark.thorough
def test_a_hundred_is_enough(world: SchedulesWorld) -> None:
    world.schedule(schedule="* * * * *")
    world.pass_time(30 * DAY)
    assert 100 == value(world, "overdue")


def test_names_the_reason_why_no_backups_are_made(world: SchedulesWorld) -> None:
    world.schedule()
    assert 1 == value(world, "active", reason="Waiting")
    world.change(schedule="soon")
    assert (0, None) == (value(world, "active", reason="InvalidSpec"), value(world, "active", reason="Waiting"))
    assert 0 == value(world, "overdue")


def test_a_scrape_sends_no_request(world: SchedulesWorld) -> None:
    world.schedule()
    world.nights(1)
    world.operator.caches[BACKUPS].look()
    before = world.requests()
    value(world, "overdue")
    assert before == world.requests()
