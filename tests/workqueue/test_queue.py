"""The base queue: what to do next."""

import gc
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports.clock import FakeClock, SystemClock
from tests.workqueue.background import DEADLINE, in_background
from workqueue.queue import Queue


def take(queue: Queue[str]) -> str | None:
    return queue.try_get()[0]


@pytest.fixture
def queue(clock: FakeClock) -> Queue[str]:
    return Queue(clock)


@pytest.mark.rule("WQ-1")
def test_adding_a_queued_item_again_changes_nothing(queue: Queue[str]) -> None:
    queue.add("foo")
    queue.add("foo")

    assert 1 == len(queue)
    assert 1 == queue.statistics().adds


@pytest.mark.rule("WQ-1")
def test_nothing_is_added_after_shutdown(queue: Queue[str]) -> None:
    queue.shut_down()
    queue.add("foo")

    assert 0 == len(queue)
    assert 0 == queue.statistics().adds


@pytest.mark.rule("WQ-2", "WQ-4")
def test_an_item_added_while_processing_is_queued_when_done(queue: Queue[str]) -> None:
    queue.add("foo")
    take(queue)

    queue.add("foo")
    queue.add("foo")
    assert 0 == len(queue)

    queue.done("foo")
    assert 1 == len(queue)


@pytest.mark.rule("WQ-3")
def test_get_waits_for_an_item(clock: FakeClock, queue: Queue[str]) -> None:
    got = in_background(queue.get)
    clock.wait_for_waiters()

    queue.add("foo")

    assert ("foo", False) == got.result(DEADLINE)


@pytest.mark.rule("WQ-3")
def test_shutdown_wakes_every_getter(clock: FakeClock, queue: Queue[str]) -> None:
    getters = [in_background(queue.get) for _ in range(3)]
    clock.wait_for_waiters(3)

    queue.shut_down()

    assert [(None, True)] * 3 == [getter.result(DEADLINE) for getter in getters]


def test_try_get_distinguishes_empty_from_shut_down(queue: Queue[str]) -> None:
    assert (None, False) == queue.try_get()
    queue.shut_down()
    assert (None, True) == queue.try_get()


@pytest.mark.rule("WQ-6")
def test_order_is_by_the_moment_of_becoming_queued(queue: Queue[str]) -> None:
    for item in ("a", "b", "a", "c"):
        queue.add(item)
    assert "a" == take(queue)
    queue.add("a")
    queue.done("a")

    assert ["b", "c", "a", None] == [take(queue) for _ in range(4)]


@pytest.mark.rule("WQ-7")
def test_len_counts_queued_items_only(queue: Queue[str]) -> None:
    for item in ("foo", "bar", "foo"):
        queue.add(item)
    assert 2 == len(queue)

    take(queue)
    queue.add("foo")
    assert 1 == len(queue)


@pytest.mark.rule("WQ-8")
def test_many_adds_while_processing_give_one_further_run(queue: Queue[str]) -> None:
    queue.add("foo")
    take(queue)
    for _ in range(10):
        queue.add("foo")
    queue.done("foo")

    assert "foo" == take(queue)
    queue.done("foo")
    assert take(queue) is None


@pytest.mark.rule("WQ-9")
def test_queued_items_are_handed_out_after_shutdown(queue: Queue[str]) -> None:
    queue.add("foo")
    queue.shut_down()
    queue.shut_down()

    assert queue.shutting_down
    assert [("foo", False), (None, True), (None, True)] == [queue.get() for _ in range(3)]


@pytest.mark.rule("WQ-10")
def test_a_drain_waits_for_an_item_that_is_queued_again(clock: FakeClock, queue: Queue[str]) -> None:
    queue.add("foo")
    queue.get()
    queue.add("foo")
    drained = in_background(queue.shut_down_with_drain)
    clock.wait_for_waiters()

    assert (None, True) == queue.get()
    queue.done("foo")
    assert not drained.done()
    assert ("foo", False) == queue.get()
    queue.done("foo")
    assert (None, True) == queue.get()
    assert drained.result(DEADLINE)


@pytest.mark.rule("WQ-11")
def test_a_shutdown_ends_a_drain(clock: FakeClock, queue: Queue[str]) -> None:
    queue.add("foo")
    queue.get()
    drained = in_background(queue.shut_down_with_drain)
    clock.wait_for_waiters()

    queue.shut_down()

    assert not drained.result(DEADLINE)


@pytest.mark.rule("WQ-12")
def test_a_drain_waits_for_queued_items_too(clock: FakeClock, queue: Queue[str]) -> None:
    queue.add("foo")
    drained = in_background(queue.shut_down_with_drain)
    clock.wait_for_waiters()

    queue.get()
    assert not drained.done()
    queue.done("foo")
    assert drained.result(DEADLINE)


@pytest.mark.rule("WQ-12")
def test_a_drain_gives_up_at_its_deadline(clock: FakeClock, queue: Queue[str]) -> None:
    queue.add("foo")
    queue.get()
    drained = in_background(lambda: queue.shut_down_with_drain(timeout=30))
    clock.wait_for_waiters()

    clock.step(30)

    assert not drained.result(DEADLINE)


@pytest.mark.rule("WQ-13")
def test_all_drainers_are_woken(clock: FakeClock, queue: Queue[str]) -> None:
    queue.add("foo")
    queue.get()
    drains = [in_background(queue.shut_down_with_drain) for _ in range(3)]
    clock.wait_for_waiters(3)

    queue.done("foo")

    assert [True] * 3 == [drain.result(DEADLINE) for drain in drains]


@pytest.mark.rule("WQ-14")
def test_a_stray_done_is_an_error_when_strict(clock: FakeClock) -> None:
    queue: Queue[str] = Queue(clock, strict=True)

    with pytest.raises(ValueError, match=r"done\('foo'\) without get"):
        queue.done("foo")


@pytest.mark.rule("WQ-14")
def test_a_stray_done_never_queues_an_item_twice(clock: FakeClock) -> None:
    queue: Queue[str] = Queue(clock, strict=False)
    queue.add("foo")

    queue.done("foo")

    assert ["foo", None] == [take(queue), take(queue)]


class Item:
    """Hashable, and observable by the garbage collector."""


@pytest.mark.slow
@pytest.mark.rule("WQ-15")
def test_a_done_item_can_be_collected(clock: FakeClock) -> None:
    queue: Queue[Item] = Queue(clock)
    item = Item()
    gone = weakref.ref(item)
    queue.add(item)
    queue.get()
    queue.done(item)

    del item
    gc.collect()

    assert gone() is None


@pytest.mark.rule("WQ-17")
def test_a_nameless_queue_starts_no_thread(clock: FakeClock) -> None:
    before = set(threading.enumerate())
    Queue(clock)
    assert set(threading.enumerate()) <= before


@pytest.mark.rule("MET-3")
def test_depth_counts_items_added_while_processing(queue: Queue[str]) -> None:
    def adds_and_depth() -> tuple[int, int]:
        statistics = queue.statistics()
        return statistics.adds, statistics.depth

    queue.add("foo")
    assert (1, 1) == adds_and_depth()
    take(queue)
    assert (1, 0) == adds_and_depth()
    for _ in range(5):
        queue.add("foo")
    assert (2, 1) == adds_and_depth()
    queue.done("foo")
    assert (2, 1) == adds_and_depth()
    take(queue)
    assert (2, 0) == adds_and_depth()


@pytest.mark.rule("MET-4")
def test_waiting_starts_at_the_add_even_while_processing(clock: FakeClock, queue: Queue[str]) -> None:
    queue.add("foo")
    clock.step(50e-6)
    take(queue)
    assert pytest.approx(50e-6) == queue.statistics().queue_durations.total

    queue.add("foo")
    clock.step(25e-6)
    queue.done("foo")
    assert pytest.approx(25e-6) == queue.statistics().work_durations.total
    take(queue)
    assert pytest.approx(75e-6) == queue.statistics().queue_durations.total


@pytest.mark.rule("MET-5")
def test_ages_cover_processing_items_and_freeze_at_shutdown(clock: FakeClock, queue: Queue[str]) -> None:
    def ages() -> tuple[float, float]:
        statistics = queue.statistics()
        return statistics.unfinished_seconds, statistics.longest_running_seconds

    assert (0.0, 0.0) == ages()
    for item in ("a", "b"):
        queue.add(item)
        take(queue)
        clock.step(2)
    assert (6.0, 4.0) == ages()

    queue.shut_down()
    clock.step(1)
    queue.done("a")
    assert (6.0, 4.0) == ages()


@given(st.lists(st.tuples(st.sampled_from(["add", "get", "done"]), st.sampled_from("abc"))))
@pytest.mark.rule("TEST-4")
def test_no_interleaving_loses_or_doubles_an_item(steps: list[tuple[str, str]]) -> None:
    """A model with two sets predicts depth, duplicates and which items may be returned."""
    queue: Queue[str] = Queue(FakeClock())
    dirty: set[str] = set()
    processing: set[str] = set()

    def get() -> None:
        item, _ = queue.try_get()
        assert (item is None) == (not dirty - processing)
        if item is not None:
            assert item in dirty - processing
            dirty.remove(item)
            processing.add(item)

    for action, item in steps:
        if action == "add":
            queue.add(item)
            dirty.add(item)
        elif action == "get":
            get()
        elif item in processing:
            queue.done(item)
            processing.remove(item)
        assert len(dirty) == queue.statistics().depth
        assert len(dirty - processing) == len(queue)

    queue.shut_down()
    while dirty or processing:
        for item in sorted(processing):
            queue.done(item)
            processing.remove(item)
        get()
    assert (None, True) == queue.try_get()


@pytest.mark.rule("WQ-5")
def test_no_item_is_ever_with_two_workers() -> None:
    queue: Queue[int] = Queue(SystemClock())
    held: set[int] = set()
    clashes: list[int] = []
    runs: list[int] = []

    def work() -> None:
        while True:
            item, _ = queue.get()
            if item is None:
                return
            if item in held:
                clashes.append(item)
            held.add(item)
            runs.append(item)
            held.discard(item)
            queue.done(item)

    def produce() -> None:
        for _ in range(100):
            for item in range(20):
                queue.add(item)

    workers = [in_background(work) for _ in range(5)]
    for producer in [in_background(produce) for _ in range(3)]:
        producer.result(DEADLINE)
    assert queue.shut_down_with_drain(DEADLINE)
    for worker in workers:
        worker.result(DEADLINE)

    assert [] == clashes
    assert set(range(20)) == set(runs)


@pytest.mark.rule("WQ-16")
def test_an_item_that_cannot_be_hashed_is_refused() -> None:
    queue: Queue[list[str]] = Queue(FakeClock())  # type: ignore[type-var]  # the mistake under test
    with pytest.raises(TypeError, match="unhashable"):
        queue.add(["ns", "name"])
