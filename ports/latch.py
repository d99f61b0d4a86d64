"""A fact that becomes true once and stays true, that threads wait for and that callbacks can be registered for."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from ports.clock import Clock


class Latch:
    """Starts unset; `set` is for ever. Callbacks run in the thread that sets it, outside its lock."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Make it true, wake all waiters, run the callbacks. Idempotent."""
        with self._condition:
            if self._set:
                return
            self._set = True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        """Whether it is true."""
        return self._set

    def wait(self, clock: Clock, timeout: float | None = None) -> bool:
        """Wait until it is true or `timeout` seconds have passed; return whether it is."""
        with self._condition:
            deadline = None if timeout is None else clock.now() + timeout
            while not self._set:
                remaining = None if deadline is None else deadline - clock.now()
                if remaining is not None and remaining <= 0:
                    break
                clock.wait(self._condition, remaining)
            return self._set

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Run `callback` when it becomes true while the block runs; at once when it is true already."""
        with self._condition:
            already = self._set
            if not already:
                self._callbacks.append(callback)
        if already:
            callback()
        try:
            yield
        finally:
            with self._condition, contextlib.suppress(ValueError):
                self._callbacks.remove(callback)
