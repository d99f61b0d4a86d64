"""A queue whose urgent items overtake."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from ports.clock import FakeClock
from tests.workqueue.background import DEADLINE, in_background
from workqueue.metrics import PrometheusQueueMetrics
from workqueue.priority_queue import PriorityQueue
from workqueue.timers import Timers


@pytest.fixture
def timers(clock: FakeClock) -> Timers:
    return Timers(clock)


@pytest.fixture
def queue(timers: Timers) -> PriorityQueue[str]:
    return PriorityQueue(timers)


def pass_time(timers: Timers, clock: FakeClock, seconds: float) -> None:
    clock.step(seconds)
    timers.fire_due()


def take_all(queue: PriorityQueue[str]) -> list[str]:
    taken = []
    while (item := queue.try_get()[0]) is not None:
        taken.append(item)
    return taken


@pytest.mark.rule("PQ-1")
def test_the_higher_number_comes_first(queue: PriorityQueue[str]) -> None:
    queue.add_with_opts("low", "low too", priority=-100)
    queue.add("plain")
    queue.add_with_opts("high", priority=7)

    got = [queue.get_with_priority() for _ in range(4)]

    assert [("high", 7, False), ("plain", 0, False), ("low", -100, False), ("low too", -100, False)] == got


@pytest.mark.rule("PQ-1")
def test_an_item_that_has_waited_long_gets_one_turn_in_ten_however_many_are_urgent(
    queue: PriorityQueue[str], clock: FakeClock
) -> None:
    queue.add_with_opts("late-1", "late-2", priority=-100)

    def turns(count: int) -> list[str]:
        taken = []
        for number in range(count):
            queue.add(f"urgent-{number}")
            item, _ = queue.try_get()
            assert item is not None
            taken.append(item)
            queue.done(item)
        return [item for item in taken if item.startswith("late")]

    assert [] == turns(20)
    clock.step(31)
    assert ["late-1", "late-2"] == turns(20)


@pytest.mark.rule("PQ-2")
def test_a_known_item_takes_the_higher_priority(queue: PriorityQueue[str]) -> None:
    queue.add_with_opts("one", priority=1)
    queue.add_with_opts("one", priority=5)
    queue.add_with_opts("one", priority=3)

    assert ("one", 5, False) == queue.get_with_priority()
    assert 1 == queue.statistics().adds


@pytest.mark.parametrize("delays", [(10, 5), (5, 10)])
@pytest.mark.rule("PQ-2")
def test_a_waiting_item_takes_the_earlier_due_time_and_the_higher_priority(
    queue: PriorityQueue[str], timers: Timers, clock: FakeClock, delays: tuple[float, float]
) -> None:
    for delay, priority in zip(delays, (4, 2), strict=True):
        queue.add_with_opts("one", after=delay, priority=priority)

    pass_time(timers, clock, 4.9)
    assert 0 == len(queue)
    pass_time(timers, clock, 0.1)
    assert ("one", 4, False) == queue.get_with_priority()
    pass_time(timers, clock, 5)
    assert 0 == len(queue)


@pytest.mark.rule("PQ-2")
def test_the_due_time_that_did_not_hold_is_forgotten(
    queue: PriorityQueue[str], timers: Timers, clock: FakeClock
) -> None:
    queue.add_after("one", 10)
    queue.add_after("one", 5)
    pass_time(timers, clock, 5)
    queue.get()
    queue.done("one")
    queue.add_after("one", 100)

    pass_time(timers, clock, 5)

    assert 0 == len(queue)


@pytest.mark.rule("PQ-2")
def test_a_later_due_time_costs_no_timer(queue: PriorityQueue[str], timers: Timers, clock: FakeClock) -> None:
    queue.add_after("one", 5)
    queue.add_after("one", 10)
    pass_time(timers, clock, 5)

    assert timers.next_due() is None


@pytest.mark.rule("PQ-2")
def test_an_add_ends_the_wait(queue: PriorityQueue[str], timers: Timers, clock: FakeClock) -> None:
    queue.add_with_opts("one", after=5, priority=3)
    queue.add("one")

    assert ("one", 3, False) == queue.get_with_priority()
    pass_time(timers, clock, 5)
    assert 0 == len(queue)


@pytest.mark.rule("PQ-2")
def test_a_ready_item_stays_ready(queue: PriorityQueue[str], timers: Timers) -> None:
    queue.add("one")
    queue.add_with_opts("one", after=5, priority=3)

    assert timers.next_due() is None
    assert ("one", 3, False) == queue.get_with_priority()


@pytest.mark.rule("PQ-3")
def test_only_a_raise_moves_an_item_and_to_the_end_of_its_new_level(queue: PriorityQueue[str]) -> None:
    queue.add_with_opts("a", "b", priority=1)
    queue.add_with_opts("c", priority=0)
    queue.add_with_opts("c", priority=1)
    queue.add_with_opts("a", priority=1)
    queue.add_with_opts("a", priority=0)

    assert ["a", "b", "c"] == take_all(queue)


@pytest.mark.rule("PQ-4")
def test_items_of_equal_priority_come_in_the_order_of_becoming_ready(
    queue: PriorityQueue[str], timers: Timers, clock: FakeClock
) -> None:
    queue.add_after("last", 2)
    queue.add_after("second", 1)
    queue.add("first")
    pass_time(timers, clock, 3)

    assert ["first", "second", "last"] == take_all(queue)


@pytest.mark.rule("PQ-5")
def test_an_item_added_while_processing_is_overtaken_until_done(queue: PriorityQueue[str]) -> None:
    queue.add("one")
    queue.get()
    queue.add_with_opts("one", priority=9)
    queue.add("other")
    assert (2, 2) == (len(queue), queue.statistics().depth)

    assert ["other"] == take_all(queue)
    queue.done("one")
    assert ("one", 9, False) == queue.get_with_priority()


@pytest.mark.rule("PQ-5")
def test_a_waiting_worker_gets_the_item_when_it_is_done(clock: FakeClock, queue: PriorityQueue[str]) -> None:
    queue.add("one")
    queue.get()
    queue.add("one")
    got = in_background(queue.get_with_priority)
    clock.wait_for_waiters()

    queue.done("one")

    assert ("one", 0, False) == got.result(DEADLINE)


@pytest.mark.rule("PQ-6")
def test_of_two_delays_the_smaller_one_holds(queue: PriorityQueue[str], timers: Timers) -> None:
    queue.add_with_opts("one", after=1, rate_limited=True)
    queue.add_with_opts("limited only", rate_limited=True)
    assert (0, 0.005) == (len(queue), timers.next_due())

    queue.add_with_opts("two", after=0.001, rate_limited=True)
    assert 0.001 == timers.next_due()


@pytest.mark.rule("PQ-7")
def test_waiting_items_count_when_they_become_ready(
    queue: PriorityQueue[str], timers: Timers, clock: FakeClock
) -> None:
    def counts() -> tuple[int, int, object]:
        statistics = queue.statistics()
        return len(queue), statistics.adds, statistics.depth_by_priority

    queue.add_with_opts("one", after=1, priority=1)
    queue.add_with_opts("one", after=1, priority=2)
    assert (0, 0, {"0": 0}) == counts()

    pass_time(timers, clock, 1)
    assert (1, 1, {"0": 0, "2": 1}) == counts()
    queue.add_with_opts("one", priority=3)
    assert (1, 1, {"0": 0, "2": 0, "3": 1}) == counts()
    queue.get()
    assert (0, 1, {"0": 0, "2": 0, "3": 0}) == counts()


@pytest.mark.rule("PQ-8")
def test_every_add_with_a_delay_is_a_retry(queue: PriorityQueue[str]) -> None:
    queue.add("one")
    queue.add_after("one", 0)
    queue.add_after("one", 1)
    queue.add_rate_limited("two")

    assert 2 == queue.statistics().retries


@pytest.mark.rule("PQ-9")
def test_ready_items_are_handed_out_after_shutdown_and_waiting_ones_dropped(
    queue: PriorityQueue[str], timers: Timers, clock: FakeClock
) -> None:
    queue.add("one")
    queue.add_after("waiting", 1)
    queue.shut_down()
    queue.shut_down()
    queue.add("late")
    pass_time(timers, clock, 1)

    assert queue.shutting_down
    assert [("one", 0, False), (None, 0, True)] == [queue.get_with_priority() for _ in range(2)]
    assert (None, True) == queue.try_get()


@pytest.mark.rule("PQ-9")
def test_shutdown_wakes_every_getter(clock: FakeClock, queue: PriorityQueue[str]) -> None:
    getters = [in_background(queue.get) for _ in range(3)]
    clock.wait_for_waiters(3)

    queue.shut_down()

    assert [(None, True)] * 3 == [getter.result(DEADLINE) for getter in getters]


@pytest.mark.rule("PQ-9")
def test_a_drain_waits_for_an_item_that_is_ready_again(clock: FakeClock, queue: PriorityQueue[str]) -> None:
    queue.add("one")
    queue.get()
    queue.add("one")
    queue.add_after("waiting", 1)
    drained = in_background(queue.shut_down_with_drain)
    clock.wait_for_waiters()

    assert (None, True) == queue.get()
    queue.done("one")
    assert not drained.done()
    assert ("one", False) == queue.get()
    queue.done("one")
    assert drained.result(DEADLINE)


@pytest.mark.rule("PQ-9")
def test_a_drain_ends_at_its_deadline_or_by_a_shutdown(clock: FakeClock, queue: PriorityQueue[str]) -> None:
    queue.add("one")
    assert not queue.shut_down_with_drain(timeout=0)
    queue.get()
    assert not queue.shut_down_with_drain(timeout=0)
    drained = in_background(queue.shut_down_with_drain)
    clock.wait_for_waiters()

    queue.shut_down()

    assert not drained.result(DEADLINE)


@pytest.mark.rule("PQ-10")
def test_an_item_that_its_worker_returns_keeps_its_priority(
    queue: PriorityQueue[str], timers: Timers, clock: FakeClock
) -> None:
    for put_back in (queue.add_rate_limited, lambda item: queue.add_after(item, 1)):
        queue.add_with_opts("one", priority=-100)
        queue.get()
        put_back("one")
        queue.done("one")
        pass_time(timers, clock, 1)
        assert ("one", -100, False) == queue.get_with_priority()
        queue.done("one")


@pytest.mark.rule("PQ-10")
def test_a_new_event_is_not_delayed_by_a_returned_item(queue: PriorityQueue[str]) -> None:
    queue.add_with_opts("one", priority=-100)
    queue.get()
    queue.add_rate_limited("one")
    queue.add("one")
    queue.done("one")

    assert ("one", 0, False) == queue.get_with_priority()


@pytest.mark.rule("PQ-11")
def test_failures_wait_5_ms_doubled_up_to_1000_s(queue: PriorityQueue[str], timers: Timers, clock: FakeClock) -> None:
    delays = []
    for _ in range(20):
        queue.add_rate_limited("one")
        delays.append((timers.next_due() or 0.0) - clock.now())
        pass_time(timers, clock, delays[-1])
        queue.get()
        queue.done("one")

    assert pytest.approx([min(0.005 * 2**n, 1000) for n in range(20)]) == delays
    assert 20 == queue.num_requeues("one")
    queue.forget("one")
    assert 0 == queue.num_requeues("one")


@pytest.mark.rule("WQ-14")
def test_a_stray_done_is_an_error_when_strict(timers: Timers) -> None:
    with pytest.raises(ValueError, match=r"done\('one'\) without get"):
        PriorityQueue[str](timers, strict=True).done("one")
    PriorityQueue[str](timers, strict=False).done("one")


@pytest.mark.rule("MET-4")
def test_waiting_starts_when_an_item_becomes_ready(queue: PriorityQueue[str], timers: Timers, clock: FakeClock) -> None:
    queue.add_after("one", 1)
    pass_time(timers, clock, 1)
    clock.step(0.5)
    queue.add_with_opts("one", priority=1)
    clock.step(0.25)
    queue.get()
    clock.step(2)
    assert (2, 2) == (queue.statistics().unfinished_seconds, queue.statistics().longest_running_seconds)
    queue.done("one")

    assert 0.75 == queue.statistics().queue_durations.total
    assert 2 == queue.statistics().work_durations.total


@pytest.mark.rule("MET-5")
def test_ages_freeze_at_shutdown(queue: PriorityQueue[str], clock: FakeClock) -> None:
    queue.add("one")
    queue.get()
    for _ in range(2):
        clock.step(1)
        queue.shut_down()

    statistics = queue.statistics()
    assert (1, 1) == (statistics.unfinished_seconds, statistics.longest_running_seconds)


@pytest.mark.rule("MET-6")
def test_depth_is_published_by_priority(timers: Timers) -> None:
    registry = CollectorRegistry()
    queue: PriorityQueue[str] = PriorityQueue(timers, name="q", metrics=PrometheusQueueMetrics(registry))
    queue.add_with_opts("a", "b", priority=-100)
    queue.add("c")

    def depth(priority: str) -> float | None:
        return registry.get_sample_value("workqueue_depth", {"name": "q", "priority": priority})

    assert (2, 1) == (depth("-100"), depth("0"))


@pytest.mark.rule("MET-6")
def test_after_25_priorities_the_others_share_a_name(queue: PriorityQueue[str]) -> None:
    for priority in range(30):
        queue.add_with_opts(f"item-{priority}", priority=priority)

    depths = queue.statistics().depth_by_priority or {}
    assert 26 == len(depths)
    assert 5 == depths["exceeded_cardinality_limit"]

    take_all(queue)
    assert {0} == set((queue.statistics().depth_by_priority or {}).values())


class Model:
    """A slow model of a priority queue."""

    def __init__(self) -> None:
        self.now = 0
        self.ready: dict[str, tuple[int, int]] = {}
        """Priority, and position among keys of that priority."""
        self.waiting: dict[str, tuple[int, int]] = {}
        """Priority and due time, in the order in which they were added."""
        self.processing: set[str] = set()
        self._places = count()

    def add(self, item: str, after: int, priority: int) -> None:
        if item in self.ready:
            if priority > self.ready[item][0]:
                self.ready[item] = (priority, next(self._places))
            return
        known, due = self.waiting.get(item, (priority, self.now + after + 1))
        if self.now + after < due:
            self.waiting.pop(item, None)  # of items due at the same time, the one requested first comes first
        self.waiting[item] = (max(known, priority), min(due, self.now + after))
        self.become_ready()

    def become_ready(self) -> None:
        for item in sorted(self.waiting, key=lambda item: self.waiting[item][1]):
            priority, due = self.waiting[item]
            if due <= self.now:
                del self.waiting[item]
                self.ready[item] = (priority, next(self._places))

    def get(self) -> str | None:
        free = self.ready.keys() - self.processing
        item = min(free, key=lambda item: (-self.ready[item][0], self.ready[item][1]), default=None)
        if item is not None:
            del self.ready[item]
            self.processing.add(item)
        return item


ITEMS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("add"), ITEMS, st.integers(0, 3), st.integers(-1, 1)),
    st.tuples(st.just("get"), st.just(""), st.just(0), st.just(0)),
    st.tuples(st.just("done"), ITEMS, st.just(0), st.just(0)),
    st.tuples(st.just("pass"), st.just(""), st.integers(1, 3), st.just(0)),
)


@given(st.lists(STEPS, max_size=40))
@pytest.mark.rule("TEST-4")
def test_no_interleaving_loses_or_doubles_an_item(steps: list[tuple[str, str, int, int]]) -> None:
    clock = FakeClock()
    timers = Timers(clock)
    queue: PriorityQueue[str] = PriorityQueue(timers)
    model = Model()

    for action, item, number, priority in steps:
        if action == "add":
            queue.add_with_opts(item, after=number, priority=priority)
            model.add(item, number, priority)
        elif action == "get":
            assert model.get() == queue.try_get()[0]
        elif action == "done" and item in model.processing:
            queue.done(item)
            model.processing.remove(item)
        elif action == "pass":
            for _ in range(number):
                pass_time(timers, clock, 1)
                model.now += 1
                model.become_ready()
        depths = queue.statistics().depth_by_priority or {}
        assert len(model.ready) == len(queue) == queue.statistics().depth == sum(depths.values())
        assert min(depths.values()) >= 0

    queue.shut_down()
    while model.ready or model.processing:
        for item in sorted(model.processing):
            queue.done(item)
            model.processing.remove(item)
        assert model.get() == queue.try_get()[0]
    assert (None, True) == queue.try_get()
