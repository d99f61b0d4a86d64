"""What actors sleep on: a bell that rings per topic.

Whoever changes something rings its topic. An actor remembers how often its topics had rung before it looked;
a ring between the look and the wait is therefore never missed.
"""

import threading
from collections import Counter
from collections.abc import Hashable, Iterable

from ports.clock import Clock
from ports.stopping import Stop

STOPPED = "stopped"


class Bell:
    """Counts rings per topic and wakes those who wait. Safe for use by many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._rings: Counter[Hashable] = Counter()
        self._total = 0

    @property
    def total(self) -> int:
        """How often all topics have rung altogether: while it stays, no topic has rung."""
        return self._total

    def ring(self, topic: Hashable) -> None:
        """Something about `topic` changed."""
        with self._condition:
            self._rings[topic] += 1
            self._total += 1
            self._condition.notify_all()

    def count(self, topics: Iterable[Hashable]) -> int:
        """How often the topics have rung altogether."""
        with self._condition:
            return self._count(topics)

    def wait(self, topics: tuple[Hashable, ...], heard: int, due: float | None, stop: Stop) -> None:
        """Wait until the topics have rung more often than `heard`, the clock shows `due`, or `stop` is set."""
        with stop.calling(lambda: self.ring(STOPPED)), self._condition:
            while not stop.is_set() and self._count(topics) == heard:
                remaining = None if due is None else due - self._clock.now()
                if remaining is not None and remaining <= 0:
                    return
                self._clock.wait(self._condition, remaining)

    def _count(self, topics: Iterable[Hashable]) -> int:
        return sum(self._rings[topic] for topic in topics)
