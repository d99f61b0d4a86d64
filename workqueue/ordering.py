"""In which order a queue hands out its items (informers-workqueue.md WQ-18, PQ-3, PQ-4)."""

from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Container, Hashable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class Order(Protocol[T]):
    """Holds the items that are ready. The queue calls it under its own lock and never pushes an item twice."""

    def touch(self, item: T) -> None:
        """An item that is held was added once more."""

    def push(self, item: T) -> None:
        """Take an item."""

    def pop(self) -> T:
        """Give up the next item. Called only when there is one."""

    def __len__(self) -> int:
        """How many items are held."""


class Fifo(Generic[T]):
    """First come, first served; adding again moves nothing."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self.push = self._items.append
        self.pop = self._items.popleft

    def touch(self, item: T) -> None:
        """Keep the item's place."""

    def __len__(self) -> int:
        """How many items are held."""
        return len(self._items)


class ByPriority(Generic[H]):
    """The highest priority first; first come, first served among equals. No `Order`: it is told priorities."""

    def __init__(self) -> None:
        self._levels: dict[int, OrderedDict[H, None]] = {}
        self._priorities: list[int] = []
        """Those of the levels, ascending."""

    def push(self, item: H, priority: int) -> None:
        """Put an item that is not held at the end of its level."""
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = OrderedDict()
            insort(self._priorities, priority)
        level[item] = None

    def remove(self, item: H, priority: int) -> None:
        """Give up an item, which is held with this priority."""
        level = self._levels[priority]
        del level[item]
        if not level:
            del self._levels[priority]
            self._priorities.remove(priority)

    def first(self, busy: Container[H]) -> H | None:
        """The next item that is not `busy`, left where it is. Passes over busy ones one by one: they are few."""
        for priority in reversed(self._priorities):
            for item in self._levels[priority]:
                if item not in busy:
                    return item
        return None
