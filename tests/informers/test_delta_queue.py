import threading
from collections.abc import MutableMapping
from typing import Any

import pytest

from informers.delta_queue import DeltaFIFO, QueueClosed
from informers.deltas import Added, Batch, Bookmark, Deleted, Delta, ReplacedAll, SyncAll, Updated
from informers.threads import start_thread
from kube.objects import Object
from ports.clock import FakeClock, SystemClock
from tests.informers.support import DEADLINE, eventually, pod_object


@pytest.fixture
def queue(clock: FakeClock) -> DeltaFIFO:
    return DeltaFIFO(clock, batch=1)


class Taken:
    """Pops from a queue and remembers what came, and whether it belonged to the initial list."""

    def __init__(self, queue: DeltaFIFO) -> None:
        self.deltas: list[Delta] = []
        self.initial: list[bool] = []
        self._queue = queue

    def process(self, delta: Delta, is_in_initial_list: bool) -> None:
        self.deltas.append(delta)
        self.initial.append(is_in_initial_list)

    def pop(self, count: int = 1) -> list[Delta]:
        for _ in range(count):
            self._queue.pop(self.process)
        return self.deltas


A, B = pod_object("a"), pod_object("b")


@pytest.mark.rule("FIFO-1", "FIFO-6")
def test_every_event_is_delivered_in_its_place(queue: DeltaFIFO) -> None:
    queue.add(A)
    queue.update(B)
    queue.delete(A)
    queue.delete(A)
    queue.replace([B], "7")
    queue.resync()
    queue.bookmark("8")
    expected: list[Delta] = [Added(A), Updated(B), Deleted(A), Deleted(A), ReplacedAll((B,), "7"), SyncAll()]
    assert len(queue) == 7
    assert [*expected, Bookmark("8")] == Taken(queue).pop(7)


@pytest.mark.rule("FIFO-2")
def test_a_closed_queue_is_drained_and_then_says_so(queue: DeltaFIFO) -> None:
    queue.add(A)
    queue.close()
    assert [Added(A)] == Taken(queue).pop()
    with pytest.raises(QueueClosed):
        Taken(queue).pop()


@pytest.mark.rule("FIFO-2")
def test_closing_ends_ten_blocked_pops() -> None:
    clock = FakeClock()
    queue = DeltaFIFO(clock)
    ended: list[bool] = []

    def pop() -> None:
        with pytest.raises(QueueClosed):
            Taken(queue).pop()
        ended.append(True)

    threads = [start_thread(f"pop-{number}", pop) for number in range(10)]
    clock.wait_for_waiters(10)
    queue.close()
    for thread in threads:
        thread.join(0.5)
    assert [True] * 10 == ended


@pytest.mark.rule("FIFO-2")
def test_a_pop_gives_up_at_its_time(clock: FakeClock, queue: DeltaFIFO) -> None:
    answers: list[Delta | None] = []
    thread = start_thread("pop", lambda: answers.append(queue.pop(lambda *_: None, until=3.0)))
    clock.wait_for_waiters()
    clock.step(3)
    thread.join(DEADLINE)
    assert [None] == answers


@pytest.mark.rule("FIFO-3", "FIFO-24")
def test_only_the_first_list_is_initial(queue: DeltaFIFO) -> None:
    taken = Taken(queue)
    queue.replace([A], "1")
    queue.replace([A], "2")
    taken.pop(2)
    assert [True, False] == taken.initial


@pytest.mark.rule("FIFO-4")
def test_a_new_queue_has_not_synced(queue: DeltaFIFO) -> None:
    assert not queue.has_synced()
    queue.resync()
    queue.bookmark("1")
    assert not queue.has_synced()


@pytest.mark.rule("FIFO-4")
def test_a_first_event_or_an_empty_list_is_synced_at_once(clock: FakeClock) -> None:
    by_event, by_list = DeltaFIFO(clock), DeltaFIFO(clock)
    by_event.add(A)
    by_list.replace([], "1")
    assert [True, True] == [by_event.has_synced(), by_list.has_synced()]


@pytest.mark.rule("FIFO-4")
def test_a_first_list_is_synced_when_processed(queue: DeltaFIFO) -> None:
    during: list[bool] = []
    queue.replace([A], "1")
    assert not queue.has_synced()
    queue.pop(lambda *_: during.append(queue.has_synced()))
    assert [False] == during
    assert queue.has_synced()
    queue.replace([A, B], "2")
    assert queue.has_synced(), "once synced, for ever"


@pytest.mark.rule("FIFO-5")
def test_a_delta_that_fails_is_not_put_back(queue: DeltaFIFO) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    queue.replace([A], "1")
    queue.pop(fail)
    assert (0, True) == (len(queue), queue.has_synced())


@pytest.mark.rule("FIFO-10")
def test_objects_are_transformed_on_entry_and_failures_are_the_callers(queue: DeltaFIFO) -> None:
    def transform(obj: Object) -> Object:
        if obj is B:
            raise ValueError("cannot")
        return pod_object("transformed")

    queue.set_transform(transform)
    queue.add(A)
    with pytest.raises(ValueError, match="cannot"):
        queue.replace([A, B], "1")
    (delta,) = Taken(queue).pop()
    assert isinstance(delta, Added)
    assert delta.obj.metadata.name == "transformed"
    assert len(queue) == 0


@pytest.mark.rule("FIFO-12")
def test_a_producer_far_ahead_waits_for_the_delta_being_processed() -> None:
    queue = DeltaFIFO(SystemClock())
    release = threading.Event()
    for _ in range(2001):
        queue.add(A)

    def block(*_: object) -> None:
        release.wait(DEADLINE)

    consumer = start_thread("consumer", lambda: queue.pop(block))
    eventually(lambda: len(queue) == 2000)
    producer = start_thread("producer", lambda: queue.add(A))
    producer.join(0.03)
    assert (True, 2000) == (producer.is_alive(), len(queue))
    release.set()
    producer.join(DEADLINE)
    consumer.join(DEADLINE)
    assert len(queue) == 2001


@pytest.mark.rule("FIFO-13")
def test_a_slow_delta_with_many_behind_it_is_logged(
    clock: FakeClock, queue: DeltaFIFO, logs: list[MutableMapping[str, Any]]
) -> None:
    for _ in range(13):
        queue.add(A)
    for seconds in (0.05, 0.2, 0.2):
        queue.pop(lambda *_, slowly=seconds: clock.step(slowly))
    assert [11] == [entry["queued"] for entry in logs]


C = pod_object("c")


@pytest.mark.rule("FIFO-11")
def test_events_of_different_objects_are_processed_together(clock: FakeClock) -> None:
    queue = DeltaFIFO(clock)
    queue.add(A)
    queue.update(B)
    queue.delete(C)
    queue.update(A)
    queue.bookmark("8")
    queue.add(B)
    assert [
        Batch((Added(A), Updated(B), Deleted(C))),
        Updated(A),
        Bookmark("8"),
        Added(B),
    ] == Taken(queue).pop(4)


@pytest.mark.rule("FIFO-11")
def test_a_batch_has_an_end(clock: FakeClock) -> None:
    queue = DeltaFIFO(clock, batch=2)
    for obj in (A, B, C):
        queue.add(obj)
    assert [Batch((Added(A), Added(B))), Added(C)] == Taken(queue).pop(2)


@pytest.mark.rule("FIFO-11")
def test_the_initial_population_is_not_mixed_with_what_follows(clock: FakeClock) -> None:
    queue = DeltaFIFO(clock)
    queue.replace([A], "7")
    queue.add(B)
    queue.update(A)
    taken = Taken(queue)
    assert [ReplacedAll((A,), "7"), Batch((Added(B), Updated(A)))] == taken.pop(2)
    assert [True, False] == taken.initial
