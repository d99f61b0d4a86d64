"""A fact that becomes true once and stays true, and that others can be told of."""

import contextlib
import threading
from collections.abc import Callable, Iterator


class Latch:
    """Starts unset; `set` is for ever. Callbacks run in the thread that sets it, outside its lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Make it true and run the callbacks. Idempotent."""
        with self._lock:
            self._set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        """Whether it is true."""
        return self._set

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Run `callback` when the latch is set while the block runs; at once when it is set already."""
        with self._lock:
            already = self._set
            if not already:
                self._callbacks.append(callback)
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._callbacks.remove(callback)
