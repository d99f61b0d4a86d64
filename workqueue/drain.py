"""Waiting until a queue has nothing left (informers-workqueue.md WQ-10..13)."""

import threading
from collections.abc import Callable

from ports.clock import Clock


class Drain:
    """Any number of threads that wait for the end of a queue's work. All calls are made under the queue's lock."""

    def __init__(self, clock: Clock, lock: threading.Lock, is_drained: Callable[[], bool]) -> None:
        self._clock = clock
        self._changed = threading.Condition(lock)
        self._is_drained = is_drained
        self._wanted = False

    def wait(self, timeout: float | None) -> bool:
        """Wait until drained, given up, or `timeout` seconds have passed; return whether it is drained."""
        self._wanted = True
        deadline = None if timeout is None else self._clock.now() + timeout
        while self._wanted and not self._is_drained():
            remaining = None if deadline is None else deadline - self._clock.now()
            if remaining is not None and remaining <= 0:
                break
            self._clock.wait(self._changed, remaining)
        return self._is_drained()

    def notice(self) -> None:
        """An item is done: wake everybody when it was the last one."""
        if self._is_drained():
            self._changed.notify_all()

    def give_up(self) -> None:
        """Let nobody wait any longer."""
        self._wanted = False
        self._changed.notify_all()
