"""Waiting until all items of a queue are done (informers-workqueue.md WQ-10..13)."""

import threading
from collections.abc import Callable

from ports.clock import Clock


class Drain:
    """Lets threads wait until a queue is drained. Call its methods with the queue's lock held."""

    def __init__(self, clock: Clock, lock: threading.Lock, is_drained: Callable[[], bool]) -> None:
        self._clock = clock
        self._changed = threading.Condition(lock)
        self._is_drained = is_drained
        self._wanted = False

    def wait(self, timeout: float | None) -> bool:
        """Wait until the queue is drained, `give_up` is called or `timeout` seconds pass; True if drained."""
        self._wanted = True
        deadline = None if timeout is None else self._clock.now() + timeout
        while self._wanted and not self._is_drained():
            remaining = None if deadline is None else deadline - self._clock.now()
            if remaining is not None and remaining <= 0:
                break
            self._clock.wait(self._changed, remaining)
        return self._is_drained()

    def notice(self) -> None:
        """Wake the waiting threads if the item that is now done was the last one."""
        if self._is_drained():
            self._changed.notify_all()

    def give_up(self) -> None:
        """Wake the waiting threads although items are left."""
        self._wanted = False
        self._changed.notify_all()
