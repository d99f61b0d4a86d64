"""Blocking code turn by turn: it has a thread of its own, but runs only while whoever drives it waits.

Who drives it resumes it, and it runs until it yields or has ended. So what waits for time can wait for a clock that its
own driver moves, and one seed is one run.
"""

import threading
from collections.abc import Callable


class Ended(BaseException):
    """Unwinds code that is to run no more; nothing of it may catch this."""


class LockStep:
    """One piece of code. Its thread begins with the first `resume`."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._resumed, self._yielded = threading.Lock(), threading.Lock()
        self._resumed.acquire()
        self._yielded.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.ending = False
        """Whether it is to run no more, or has ended."""
        self._is_over = False

    @property
    def is_here(self) -> bool:
        """Whether the thread that asks is its own."""
        return threading.current_thread() is self._thread

    def resume(self) -> None:
        """Let it run until it yields. Raises what it raises."""
        if not self._thread.ident:
            self._thread.start()
        self._resumed.release()
        self._yielded.acquire()
        if self._is_over:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def yield_control(self) -> None:
        """In its own thread, and not when it is ending: let others run until it is resumed. Raises Ended."""
        self._yielded.release()
        self._resumed.acquire()
        if self.ending:
            raise Ended

    def end(self) -> None:
        """Unwind it, wherever it waits. Idempotent."""
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
