"""A processed item rests before its next turn, and all changes meanwhile lead to one turn."""

from ports.clock import FakeClock
from workqueue.priority_queue import PriorityQueue, Rest
from workqueue.timers import Timers


class Resting:
    """A queue whose items rest for a second, and its clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.timers = Timers(self.clock)
        self.queue: PriorityQueue[str] = PriorityQueue(self.timers, rest=Rest(least=1.0, rate=10.0, most=10.0))

    def turn(self, item: str) -> None:
        """Take the item and give it back."""
        assert (item, False) == self.queue.try_get()
        self.queue.done(item)

    def turns(self, count: int) -> None:
        """A turn of this many items, whose names are numbers."""
        for number in range(count):
            self.queue.add(str(number))
            self.turn(str(number))

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.step(seconds)
        self.timers.fire_due()

    @property
    def is_empty(self) -> bool:
        """True if nothing is ready."""
        return len(self.queue) == 0


def test_a_new_item_is_handed_out_at_once() -> None:
    resting = Resting()
    resting.queue.add("a")
    resting.turn("a")
    resting.queue.add("b")
    resting.turn("b")


def test_changes_during_a_rest_lead_to_one_turn_after_it() -> None:
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


def test_an_item_of_a_resync_does_not_rest() -> None:
    """A resync brings everything up: a change that follows it is the first news."""
    resting = Resting()
    resting.queue.add("a", -1)
    resting.turn("a")
    resting.queue.add("a")
    resting.turn("a")
    resting.queue.add("a")
    assert resting.is_empty


def test_a_change_during_the_turn_of_a_resync_is_handed_out_at_once() -> None:
    resting = Resting()
    resting.queue.add("a", -1)
    item, _ = resting.queue.try_get()
    assert item is not None
    resting.queue.add("a")
    resting.queue.done(item)
    resting.turn("a")


def test_a_change_during_a_turn_waits_for_a_rest() -> None:
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


def test_an_item_that_becomes_due_during_a_turn_waits_for_a_rest() -> None:
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


def test_an_items_own_delay_is_kept() -> None:
    resting = Resting()
    resting.queue.add("a")
    assert ("a", False) == resting.queue.try_get()
    resting.queue.add_after("a", 0.1)
    resting.queue.done("a")
    resting.pass_time(0.1)
    resting.turn("a")


def test_an_urgent_item_waits_for_no_rest() -> None:
    resting = Resting()
    resting.turns(30)
    resting.queue.add("0", 1)
    resting.turn("0")


def test_a_resting_item_that_becomes_urgent_is_handed_out_at_once() -> None:
    resting = Resting()
    resting.queue.add("a")
    resting.turn("a")
    resting.queue.add("a")
    resting.queue.add("a", 1)
    resting.turn("a")
    resting.pass_time(1.0)
    assert resting.is_empty


def test_an_item_that_becomes_urgent_during_a_turn_is_handed_out_after_it() -> None:
    resting = Resting()
    resting.queue.add("a")
    assert ("a", False) == resting.queue.try_get()
    resting.queue.add("a", 1)
    resting.queue.done("a")
    resting.turn("a")


def test_a_rest_is_no_retry() -> None:
    resting = Resting()
    resting.queue.add("a")
    resting.turn("a")
    resting.queue.add("a")
    assert 0 == resting.queue.statistics().retries


def test_an_item_that_has_rested_is_forgotten() -> None:
    resting = Resting()
    for number in range(100):
        resting.queue.add(str(number))
        resting.turn(str(number))
        resting.pass_time(2.0)
    assert 1 >= len(resting.queue._resting)


def test_with_many_resting_items_each_rests_for_longer() -> None:
    resting = Resting()
    resting.turns(30)
    for number in range(30):
        resting.queue.add(str(number))
    resting.pass_time(1.0)
    assert 10 == len(resting.queue)
    resting.pass_time(1.95)
    assert 29 == len(resting.queue)


def test_with_many_resting_items_a_shorter_delay_is_lengthened() -> None:
    resting = Resting()
    resting.turns(30)
    resting.queue.add("late")
    assert ("late", False) == resting.queue.try_get()
    resting.queue.add_after("late", 0.5)
    resting.queue.done("late")
    resting.pass_time(3.05)
    assert "late" not in [resting.queue.try_get()[0] for _ in range(len(resting.queue))]
    resting.pass_time(0.1)
    assert ("late", False) == resting.queue.try_get()


def test_with_many_resting_items_low_priority_ones_wait_as_long() -> None:
    resting = Resting()
    resting.turns(50)
    resting.queue.add_with_opts("49", after=3.0)
    resting.pass_time(4.9)
    assert resting.is_empty
    resting.pass_time(0.2)
    resting.turn("49")


def test_no_item_rests_for_longer_than_the_longest_rest() -> None:
    resting = Resting()
    resting.turns(300)
    resting.queue.add("299")
    resting.pass_time(9.9)
    assert resting.is_empty
    resting.pass_time(0.2)
    resting.turn("299")


def test_rests_that_are_over_do_not_count() -> None:
    resting = Resting()
    resting.turns(30)
    resting.pass_time(10.0)
    resting.queue.add("0")
    resting.turn("0")
    resting.queue.add("0")
    resting.pass_time(1.0)
    resting.turn("0")
