"""Calls that go out side by side, so that several slow servers cost the time of the slowest.

The real implementation is `Threads`; `sandbox.overlap` is the one for a stepped clock.
"""

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic, Protocol, TypeVar, cast

_MOST = 32
"""Threads that may help at a time, for all callers together."""

_T = TypeVar("_T")
_U = TypeVar("_U")


class SideBySide(Protocol):
    """Runs calls that only wait for others. Safe for use by many threads."""

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """The results, in the order of the calls. Raises what the first call that failed raised, after all have ended.

        The calls begin in their order. What they read of the context of the caller, such as whether it only observes,
        is the caller's.
        """


class InTurn:
    """One call after another, for programs that have no need to hurry."""

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """See `SideBySide`."""
        batch = _Batch(calls)
        batch.work()
        return batch.results()


class Threads:
    """Threads that live as long as one `run`, so that none is left to stop when the process ends.

    The caller works, too: where all threads are taken, it makes the calls itself, one after another.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._free = threading.BoundedSemaphore(most)

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """See `SideBySide`."""
        batch = _Batch(calls)
        helpers = [helper for _ in calls[1:] if (helper := self._helper(batch.work))]
        batch.work()
        for helper in helpers:
            helper.join()
        return batch.results()

    def _helper(self, work: Callable[[], None]) -> threading.Thread | None:
        """A thread that has begun to work in a copy of the caller's context; None where there is none to be had."""
        if not self._free.acquire(blocking=False):
            return None
        context = copy_context()

        def help_out() -> None:
            try:
                context.run(work)
            finally:
                self._free.release()

        helper = threading.Thread(target=help_out, name="side-by-side")
        try:
            helper.start()
        except RuntimeError:
            # the process may have no more threads
            self._free.release()
            return None
        return helper


def both(side_by_side: SideBySide, one: Callable[[], _T], other: Callable[[], _U]) -> tuple[_T, _U]:
    """The results of two calls that go out side by side. Raises as `SideBySide.run`."""
    calls: tuple[Callable[[], _T | _U], ...] = (one, other)
    found = side_by_side.run(calls)
    return cast("_T", found[0]), cast("_U", found[1])


class _Batch(Generic[_T]):
    """Calls of one `run`, which each worker takes one by one."""

    def __init__(self, calls: Sequence[Callable[[], _T]]) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._taken = 0
        self._results: dict[int, _T] = {}
        self._errors: dict[int, BaseException] = {}

    def work(self) -> None:
        """Make calls until none is left to take."""
        while (number := self._take()) is not None:
            try:
                self._results[number] = self._calls[number]()
            except BaseException as error:
                self._errors[number] = error

    def results(self) -> list[_T]:
        """What the calls returned, once all have ended. Raises what the first one that failed raised."""
        if self._errors:
            try:
                raise self._errors[min(self._errors)]
            finally:
                # else the error and this frame, which is in its traceback, keep each other, and what the error keeps
                self._errors.clear()
        return [self._results[number] for number in range(len(self._calls))]

    def _take(self) -> int | None:
        with self._lock:
            if self._taken == len(self._calls):
                return None
            self._taken += 1
            return self._taken - 1
