"""The memory for long answers of all data planes together (docs/security.md).

Each answer has a maximum, and up to 39 syncs run at once, each with the answers of one reconcile: without a common
maximum, hostile servers could make them hold half a gigabyte.
"""

import threading
import weakref

from ports.transport import Response

SHORT = 1 << 16
"""Bytes. Shorter answers are not counted, so that a cluster with few servers never waits for hostile ones."""

_MOST = 64 << 20
"""Bytes: eight of the longest answers, or the stores of 40,000 TiKVs."""


class AnswerBudget:
    """The bytes that all long answers may have, from the beginning of their reading until they are no longer used.

    Thread-safe.
    """

    def __init__(self, most: int = _MOST) -> None:
        self.most = most
        # a finalizer may run in a thread that holds the lock
        self._changed = threading.Condition(threading.RLock())
        self._held = 0

    @property
    def held(self) -> int:
        """The bytes that are reserved now."""
        return self._held

    def reserve(self, count: int, seconds: float) -> "Reservation | None":
        """Reserve bytes for one answer, and wait for them; None if they are not free within `seconds`.

        The whole maximum is reserved at once: answers that each hold a part would wait for each other.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._held + count <= self.most, max(seconds, 0.0)):
                return None
            self._held += count
        return Reservation(self, count)

    def give_back(self, count: int) -> None:
        """Free reserved bytes."""
        with self._changed:
            self._held -= count
            self._changed.notify_all()


class Reservation:
    """Reserved bytes, until `close`, or as long as the answer that keeps them."""

    def __init__(self, budget: AnswerBudget, count: int) -> None:
        self._budget = budget
        self._count = count

    def keep(self, answer: Response) -> None:
        """Keep as many bytes as the answer has until it is no longer used."""
        kept = min(len(answer.body), self._count)
        self._count -= kept
        weakref.finalize(answer, self._budget.give_back, kept).atexit = False

    def close(self) -> None:
        """Free the bytes that no answer keeps. Idempotent."""
        self._budget.give_back(self._count)
        self._count = 0
