"""How a thread is told to end.

A stop is set once. Whoever blocks in the network registers a callback that ends the blocking call
(informers-workqueue.md TH-10, TH-11): the flag is set first, then the callbacks run.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from ports.clock import Clock


class Stop:
    """A one-way flag that threads wait on and that runs callbacks when it is set."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Set the flag, wake all waiters, run the callbacks. Idempotent."""
        with self._condition:
            if self._set:
                return
            self._set = True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        """Whether the stop was asked for."""
        return self._set

    def wait(self, clock: Clock, timeout: float | None = None) -> bool:
        """Wait until the stop is set or `timeout` seconds have passed; return whether it is set."""
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
        """Run `callback` if the stop is set while the block runs; at once when it is set already."""
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
