"""The order in which a priority queue hands out its items (informers-workqueue.md PQ-3, PQ-4)."""

from bisect import insort
from collections import OrderedDict
from collections.abc import Container, Hashable, Iterator
from typing import Generic, TypeVar

H = TypeVar("H", bound=Hashable)


class ByPriority(Generic[H]):
    """Highest priority first; among equals, first come, first served."""

    def __init__(self) -> None:
        self._levels: dict[int, OrderedDict[H, None]] = {}
        self._priorities: list[int] = []
        """The keys of the levels, ascending."""

    def push(self, item: H, priority: int) -> None:
        """Append a new item to its level."""
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = OrderedDict()
            insort(self._priorities, priority)
        level[item] = None

    def remove(self, item: H, priority: int) -> None:
        """Remove an item that was pushed with this priority."""
        level = self._levels[priority]
        del level[item]
        if not level:
            del self._levels[priority]
            self._priorities.remove(priority)

    def first(self, busy: Container[H]) -> H | None:
        """The next item that is not `busy`, without removing it. Skips busy items one by one: they are few."""
        return next(self.heads(busy), None)

    def heads(self, busy: Container[H]) -> Iterator[H]:
        """The next item of each level that is not `busy`, from the highest level down."""
        for priority in reversed(self._priorities):
            for item in self._levels[priority]:
                if item not in busy:
                    yield item
                    break
