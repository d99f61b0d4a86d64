from member.memory import Stopwatches
from ports.clock import FakeClock


def test_a_stopwatch_counts_from_the_first_look() -> None:
    watches, clock = Stopwatches(), FakeClock()
    began = clock.wall()
    watches.look("eviction", "pod", clock)
    clock.step(3000.0)
    watches.look("eviction", "pod", clock)
    clock.step(3000.0)
    seen = watches.look("eviction", "pod", clock)
    assert (began, 6000.0) == (seen.since, seen.seconds)


def test_a_stopwatch_without_a_look_for_an_hour_starts_again() -> None:
    watches, clock = Stopwatches(), FakeClock()
    watches.look("eviction", "pod", clock)
    clock.step(3601.0)
    assert 0.0 == watches.look("eviction", "pod", clock).seconds


def test_is_due_once_in_each_period() -> None:
    watches, clock = Stopwatches(), FakeClock()
    due = []
    for _ in range(7):
        due.append(watches.is_due("topology", "tidb", 300.0, clock))
        clock.step(100.0)
    assert [True, False, False, True, False, False, True] == due


def test_is_due_after_an_hour_without_a_call() -> None:
    watches, clock = Stopwatches(), FakeClock()
    assert watches.is_due("own change", "pd", 3600.0, clock)
    clock.step(3601.0)
    assert watches.is_due("own change", "pd", 3600.0, clock)


def test_lists_the_running_stopwatches_of_a_purpose() -> None:
    watches, clock = Stopwatches(), FakeClock()
    for what, key in (("eviction", "a"), ("eviction", "b"), ("crashed", "c")):
        watches.look(what, key, clock)
    watches.forget("eviction", "a")
    assert ["b"] == watches.known("eviction")
