"""A fact that becomes true once and stays true, that threads wait for and that callbacks can be registered for."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import structlog

from ports.clock import Clock
from ports.failures import ANY_FAILURE

_log = structlog.get_logger(__name__)

_PATIENCE = 1.0
"""Real seconds that the main thread waits for the callbacks of a latch that it sets."""


class Latch:
    """Starts unset; `set` is for ever. Callbacks run outside its lock before `set` returns.

    The main thread has them run in another one, and waits for that a second at most: it may be in a signal handler, in
    the middle of code that holds the very locks that the callbacks need.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self, *_signal: object) -> None:
        """Make it true, wake all waiters, run the callbacks; one that fails is logged. Idempotent.

        Can be given to `signal.signal`, whose arguments it ignores.
        """
        if self._set:
            return
        self._set = True
        if threading.current_thread() is not threading.main_thread():
            self._announce()
            return
        thread = threading.Thread(target=self._announce, name="latch")
        thread.start()
        thread.join(_PATIENCE)

    def _announce(self) -> None:
        with self._condition:
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            try:
                callback()
            except ANY_FAILURE:
                # each ends something else that would go on for ever
                _log.exception("callback failed", callback=repr(callback))

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
