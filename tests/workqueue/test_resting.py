"""What was just processed rests before its next turn: what happens meanwhile is one turn."""

from ports.clock import FakeClock
from workqueue.priority_queue import PriorityQueue
from workqueue.timers import Timers


class Resting:
    """A queue whose items rest for a second, and its clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.timers = Timers(self.clock)
        self.queue: PriorityQueue[str] = PriorityQueue(self.timers, rest=1.0)

    def turn(self, item: str) -> None:
        """Take the item and give it back."""
        assert (item, False) == self.queue.try_get()
        self.queue.done(item)

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.step(seconds)
        self.timers.fire_due()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is ready."""
        return len(self.queue) == 0


def test_what_is_new_is_handed_out_at_once() -> None:
    resting = Resting()
    resting.queue.add("a")
    resting.turn("a")
    resting.queue.add("b")
    resting.turn("b")


def test_what_happens_during_a_rest_is_one_turn_after_it() -> None:
    resting = Resting()
    resting.queue.add("a")
    resting.turn("a")
    for _ in range(4):
        resting.pass_time(0.2)
        resting.queue.add("a")
    assert resting.is_empty
    resting.pass_time(0.2)
    resting.turn("a")
    resting.pass_time(2.0)
    assert resting.is_empty


def test_what_happens_during_a_turn_waits_for_a_rest() -> None:
    resting = Resting()
    resting.queue.add("a")
    assert ("a", False) == resting.queue.try_get()
    resting.queue.add("a")
    resting.queue.done("a")
    assert resting.is_empty
    resting.pass_time(1.0)
    resting.turn("a")


def test_after_a_long_turn_it_rests_as_well() -> None:
    resting = Resting()
    resting.queue.add("a")
    assert ("a", False) == resting.queue.try_get()
    resting.queue.add("a")
    resting.pass_time(1.5)
    resting.queue.done("a")
    assert resting.is_empty
    resting.pass_time(1.0)
    resting.turn("a")


def test_what_becomes_due_during_a_turn_waits_for_a_rest() -> None:
    resting = Resting()
    resting.queue.add_after("a", 0.1)
    resting.queue.add("a")
    assert ("a", False) == resting.queue.try_get()
    resting.queue.add_after("a", 0.1)
    resting.pass_time(0.2)
    resting.queue.done("a")
    assert resting.is_empty
    resting.pass_time(1.0)
    resting.turn("a")


def test_news_during_a_turn_keeps_its_priority_through_the_rest() -> None:
    resting = Resting()
    resting.queue.add_with_opts("a", priority=-100)
    assert ("a", -100, False) == resting.queue.get_with_priority()
    resting.queue.add("a")
    resting.queue.done("a")
    resting.queue.add_with_opts("b", priority=-1)
    resting.pass_time(1.0)
    assert ("a", 0, False) == resting.queue.get_with_priority()


def test_a_delay_of_its_own_is_kept() -> None:
    resting = Resting()
    resting.queue.add("a")
    assert ("a", False) == resting.queue.try_get()
    resting.queue.add_after("a", 0.1)
    resting.queue.done("a")
    resting.pass_time(0.1)
    resting.turn("a")


def test_a_rest_is_no_retry() -> None:
    resting = Resting()
    resting.queue.add("a")
    resting.turn("a")
    resting.queue.add("a")
    assert 0 == resting.queue.statistics().retries


def test_who_has_rested_is_forgotten() -> None:
    resting = Resting()
    for number in range(100):
        resting.queue.add(str(number))
        resting.turn(str(number))
        resting.pass_time(2.0)
    assert 1 >= len(resting.queue._resting)
