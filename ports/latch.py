"""A flag that is set once and stays set. Threads can wait for it, and callbacks run when it is set."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.lazy_log import get_logger

_log = get_logger(__name__)

_PATIENCE = 1.0
"""Real seconds that the main thread waits for the callbacks of a latch that it sets."""


class Latch:
    """Starts unset and is set for good. Callbacks run outside its lock before `set` returns.

    If the main thread sets it, another thread runs the callbacks, and `set` waits for them for at most a second: the
    main thread may be in a signal handler and hold the locks that the callbacks need.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._set = False
        self._callbacks: list[Callable[[], None]] = []

    def set(self, *_signal: object) -> None:
        """Set the latch, wake all waiters and run the callbacks; a callback that fails is logged. Idempotent.

        Suitable for `signal.signal`: it ignores the arguments.
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
                # each callback ends something else, so a failure must not skip the others
                _log.exception("callback failed", callback=repr(callback))

    def is_set(self) -> bool:
        """True if the latch is set."""
        return self._set

    def wait(self, clock: Clock, timeout: float | None = None) -> bool:
        """Wait until the latch is set or `timeout` seconds have passed; return True if it is set."""
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
        """Within the block, run `callback` when the latch is set; immediately if it is set already."""
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
