"""What wakes actors: a notifier that counts changes per topic.

Whoever changes something notifies its topic. An actor remembers the count of its topics from before it looked; a change
between the look and the wait is therefore never missed.
"""

import threading
from collections import Counter
from collections.abc import Hashable, Iterable

from ports.clock import Clock
from ports.stopping import Stop

STOPPED = "stopped"


class Notifier:
    """Counts notifications per topic and wakes those who wait. Safe for use by many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._counts: Counter[Hashable] = Counter()
        self._total = 0

    @property
    def total(self) -> int:
        """The notifications of all topics: while it stays, nothing has changed."""
        return self._total

    def notify(self, topic: Hashable) -> None:
        """Something about `topic` changed."""
        with self._condition:
            self._counts[topic] += 1
            self._total += 1
            self._condition.notify_all()

    def count(self, topics: Iterable[Hashable]) -> int:
        """The notifications of some topics."""
        with self._condition:
            return self._count(topics)

    def wait(self, topics: tuple[Hashable, ...], seen: int, due: float | None, stop: Stop) -> None:
        """Wait until the topics have more than `seen` notifications, the clock shows `due`, or `stop` is set."""
        with stop.calling(lambda: self.notify(STOPPED)), self._condition:
            while not stop.is_set() and self._count(topics) == seen:
                remaining = None if due is None else due - self._clock.now()
                if remaining is not None and remaining <= 0:
                    return
                self._clock.wait(self._condition, remaining)

    def _count(self, topics: Iterable[Hashable]) -> int:
        return sum(self._counts[topic] for topic in topics)
