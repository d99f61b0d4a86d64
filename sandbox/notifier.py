"""The notifier that wakes actors: it counts changes per topic.

A component that changes something notifies its topic. An actor remembers the counts of its topics from before its
reads, so that a change between the reads and the wait is never missed.
"""

import threading
from collections import Counter
from collections.abc import Hashable, Iterable

from ports.clock import Clock
from ports.stopping import Stop


class Notifier:
    """Counts notifications per topic and wakes those who wait for it. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[Hashable] = Counter()
        self.total = 0
        """The notifications of all topics: while it is unchanged, nothing has changed."""
        self._waiting: dict[threading.Condition, frozenset[Hashable]] = {}
        """The waiting actors and their topics; each has its own condition, so that a change wakes no other."""

    def notify(self, topic: Hashable) -> None:
        """Record a change of `topic`."""
        with self._lock:
            self._counts[topic] += 1
            self.total += 1
            for condition, topics in self._waiting.items():
                if topic in topics:
                    condition.notify_all()

    def count(self, topics: Iterable[Hashable]) -> int:
        """The notifications of some topics."""
        with self._lock:
            return self._count(topics)

    def wait(self, topics: tuple[Hashable, ...], seen: int, due: float | None, stop: Stop) -> None:
        """Wait until the topics have more than `seen` notifications, the clock reaches `due`, or `stop` is set."""
        condition = threading.Condition(self._lock)

        def wake() -> None:
            with condition:
                condition.notify_all()

        with stop.calling(wake), condition:
            self._waiting[condition] = frozenset(topics)
            try:
                while not stop.is_set() and self._count(topics) == seen:
                    remaining = None if due is None else due - self._clock.now()
                    if remaining is not None and remaining <= 0:
                        return
                    self._clock.wait(condition, remaining)
            finally:
                del self._waiting[condition]

    def _count(self, topics: Iterable[Hashable]) -> int:
        return sum(self._counts[topic] for topic in topics)
