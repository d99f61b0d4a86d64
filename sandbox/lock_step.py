"""Blocking code turn by turn: it has its own thread, but runs only while its driver waits.

The driver resumes it, and it runs until it yields or has ended. Code that waits for time can therefore wait for a clock
that its own driver moves, and a seed determines a run.
"""

import threading
from collections.abc import Callable


class Ended(BaseException):
    """Unwinds code that must not continue; the code must not catch this."""


class LockStep:
    """A piece of code. Its thread starts with the first `resume`."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._resumed, self._yielded = threading.Lock(), threading.Lock()
        self._resumed.acquire()
        self._yielded.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.ending = False
        """True if it must not continue, or has ended."""
        self._is_over = False

    @property
    def is_here(self) -> bool:
        """True in its own thread."""
        return threading.current_thread() is self._thread

    def resume(self) -> None:
        """Run it until it yields. Raises its exceptions."""
        if not self._thread.ident:
            self._thread.start()
        self._resumed.release()
        self._yielded.acquire()
        if self._is_over:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def yield_control(self) -> None:
        """In its own thread, unless it is ending: let others run until it is resumed. Raises Ended."""
        self._yielded.release()
        self._resumed.acquire()
        if self.ending:
            raise Ended

    def end(self) -> None:
        """Unwind it wherever it waits. Idempotent."""
        self.ending = True
        if self._thread.is_alive():
            self.resume()

    def _run(self) -> None:
        self._resumed.acquire()
        try:
            self._work()
        except Ended:
            pass
        except BaseException as error:
            self._error = error
        self.ending = self._is_over = True
        self._yielded.release()
