"""The memory for long answers of all data planes together (docs/security.md).

Each answer has a maximum, and up to 39 syncs run at once, each with the answers of one reconcile: without a common
maximum, hostile servers could make them hold half a gigabyte.

Namespaces share the memory, because a user owns a namespace. An answer takes bytes as they arrive. When none are free,
the namespace that holds most gives way: one of its readings fails, or a reconcile drops an answer that it shares.
Among equal ones the latest answer gives way, so that readings that each hold a part do not wait for each other.
"""

import itertools
import threading
import weakref
from collections import Counter
from collections.abc import Callable

from ports.asking import asker
from ports.transport import Response

SHORT = 1 << 16
"""Bytes. Shorter answers are not counted, so that a cluster with few servers never waits for hostile ones."""

_MOST = 64 << 20
"""Bytes: eight of the longest answers, or the stores of 40,000 TiKVs."""

_NUMBERS = itertools.count()


class AnswerBudget:
    """The bytes that all long answers may have, from the beginning of their reading until they are no longer used.

    Thread-safe.
    """

    def __init__(self, most: int = _MOST) -> None:
        self.most = most
        # a finalizer may run in a thread that holds the lock
        self.changed = threading.Condition(threading.RLock())
        self._rooms: set[Room] = set()
        self._held = 0

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return self._held

    def room(self, cut: Callable[[], None]) -> "Room":
        """An empty room for one answer, which `cut` stops reading. `cut` may be called by any thread."""
        return Room(self, asker(), cut)

    def take(self, room: "Room", count: int, seconds_left: Callable[[], float]) -> bool:
        """Wait for bytes and add them to a room; False if the room must give way, or when no time is left."""
        while True:
            with self.changed:
                if room.gives_way:
                    return False
                if self._held + count <= self.most:
                    self._rooms.add(room)
                    self._held += count
                    room.held += count
                    return True
                other = self._next_to_go(room, count)
                if other is None:
                    left = seconds_left()
                    if left <= 0:
                        return False
                    self.changed.wait(left)
                    continue
                other.gives_way, drop = True, other.drop
                self.changed.notify_all()
            # outside the lock: a reconcile frees its answers under a lock of its own
            if drop:
                drop()

    def give_back(self, room: "Room") -> None:
        """Free the bytes of a room. Idempotent."""
        with self.changed:
            self._held -= room.held
            room.held = 0
            self._rooms.discard(room)
            self.changed.notify_all()

    def _next_to_go(self, room: "Room", count: int) -> "Room | None":
        """The next answer that must give way before a room can have more bytes.

        None if those that give way already suffice, or if the room's own namespace and answer come last.
        """
        staying = [each for each in self._rooms if not each.gives_way]
        if sum(each.held for each in staying) + count <= self.most:
            return None
        shares: Counter[str] = Counter()
        for each in staying:
            shares[each.namespace] += each.held
        own = shares[room.namespace]

        def comes_last(other: Room) -> bool:
            share = shares[other.namespace]
            return share > own + count or (share >= own and other.number > room.number)

        candidates = [each for each in staying if each.drop and comes_last(each)]
        return max(candidates, key=lambda each: (shares[each.namespace], each.number), default=None)


class Room:
    """The bytes of one answer, until `close`, or as long as the answer that keeps them."""

    def __init__(self, budget: AnswerBudget, namespace: str, cut: Callable[[], None]) -> None:
        self._budget = budget
        self.namespace = namespace
        self.number = next(_NUMBERS)
        self.held = 0
        self.gives_way = False
        """True once the bytes are needed for another answer."""
        self.drop: Callable[[], None] | None = cut
        """Lets go of the answer; None while only its reader has it, who decodes it now."""

    def take(self, count: int, seconds_left: Callable[[], float]) -> bool:
        """Add bytes, and wait for them; False if the answer gives way, or when no time is left."""
        return self._budget.take(self, count, seconds_left)

    def keep(self, answer: Response) -> bool:
        """Keep the bytes until the whole answer is no longer used; False if it gives way."""
        with self._budget.changed:
            self.drop = None
            if not self.gives_way:
                weakref.finalize(answer, self.close).atexit = False
        return not self.gives_way

    def drop_with(self, drop: Callable[[], None]) -> None:
        """Call `drop` when the bytes are needed. The answer then counts as later than all that are being read."""
        with self._budget.changed:
            self.drop, self.number = drop, next(_NUMBERS)
            self._budget.changed.notify_all()

    def close(self) -> None:
        """Free the bytes. Idempotent."""
        self._budget.give_back(self)
