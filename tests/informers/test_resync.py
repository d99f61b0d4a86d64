import pytest

from informers.resync import ResyncSchedule
from ports.clock import FakeClock

HOURS = 3600.0


@pytest.mark.rule("INF-26")
def test_a_new_handler_is_due_until_the_first_check(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 0)
    turn = schedule.admit(None)
    assert turn.due
    schedule.check()
    assert not turn.due


@pytest.mark.rule("INF-27")
def test_a_handler_lowers_the_check_period_before_the_start(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 12 * HOURS)
    periods = [schedule.admit(wanted).period for wanted in (0, 60, 55, 5)]
    assert ([0, 60, 55, 5], 5) == (periods, schedule.check_period)


@pytest.mark.rule("INF-27")
def test_a_handler_added_after_the_start_does_not_shorten_the_check_period(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 60)
    schedule.start()
    assert [60, 60, 90, 0] == [schedule.admit(wanted).period for wanted in (None, 5, 90, 0)]
    assert schedule.check_period == 60


@pytest.mark.rule("INF-27")
def test_less_than_a_second_is_raised_to_a_second(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 0.5)
    assert [1, 1] == [schedule.check_period, schedule.admit(0.1).period]


@pytest.mark.rule("INF-27")
def test_an_informer_without_resync_never_resyncs(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 0)
    schedule.start()
    assert schedule.admit(5).period == 0
    assert schedule.next_check is None
    assert not schedule.is_check_due()


@pytest.mark.rule("INF-28")
def test_each_handler_is_due_by_its_own_period(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 1)
    turns = [schedule.admit(wanted) for wanted in (0, 2, 3)]
    schedule.start()
    seen = []
    for _ in range(4):
        clock.step(1)
        assert schedule.is_check_due()
        any_due = schedule.check()
        seen.append((any_due, [turn.due for turn in turns]))
    assert [
        (False, [False, False, False]),
        (True, [False, True, False]),
        (True, [False, False, True]),
        (True, [False, True, False]),
    ] == seen


@pytest.mark.rule("REF-50")
def test_checks_come_every_period(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 10)
    schedule.start()
    clock.step(9)
    assert not schedule.is_check_due()
    clock.step(2)
    assert schedule.is_check_due()
    schedule.check()
    assert schedule.next_check == 21


@pytest.mark.rule("INF-28")
def test_a_removed_handler_is_never_due(clock: FakeClock) -> None:
    schedule = ResyncSchedule(clock, 1)
    schedule.remove(schedule.admit(None))
    clock.step(1)
    assert not schedule.check()
