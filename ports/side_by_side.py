"""Concurrent calls, so that several slow servers cost only the time of the slowest.

The real implementation is `Threads`; `sandbox.overlap` is the one for a virtual clock.
"""

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic, Protocol, TypeVar, cast

_MOST = 32
"""The maximum number of helper threads for all callers together."""

_T = TypeVar("_T")
_U = TypeVar("_U")


class SideBySide(Protocol):
    """Runs calls that mostly wait for servers. Thread-safe."""

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """The results, in the order of the calls. After all have ended, raises the error of the first call that failed.

        Calls start in order, each with the caller's context, e.g. whether it only observes.
        """


class InTurn:
    """Runs one call after another, for programs in no hurry."""

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        batch = _Batch(calls)
        batch.work()
        return batch.results()


class Threads:
    """Starts threads for the duration of one `run`, so that none must be stopped when the process ends.

    The caller works as well: if no thread is free, it makes all calls itself, one after another.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._free = threading.BoundedSemaphore(most)

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        batch = _Batch(calls)
        helpers = [helper for _ in calls[1:] if (helper := self._helper(batch.work))]
        batch.work()
        for helper in helpers:
            helper.join()
        return batch.results()

    def _helper(self, work: Callable[[], None]) -> threading.Thread | None:
        """A thread that runs `work` in a copy of the caller's context; None if none can be started."""
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
            # the process may have reached its limit of threads
            self._free.release()
            return None
        return helper


def both(side_by_side: SideBySide, one: Callable[[], _T], other: Callable[[], _U]) -> tuple[_T, _U]:
    """The results of two concurrent calls. Raises like `SideBySide.run`."""
    calls: tuple[Callable[[], _T | _U], ...] = (one, other)
    found = side_by_side.run(calls)
    return cast("_T", found[0]), cast("_U", found[1])


class _Batch(Generic[_T]):
    """The calls of one `run`; each worker takes the next one until none is left."""

    def __init__(self, calls: Sequence[Callable[[], _T]]) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._taken = 0
        self._results: dict[int, _T] = {}
        self._errors: dict[int, BaseException] = {}

    def work(self) -> None:
        """Make calls until none is left."""
        while (number := self._take()) is not None:
            try:
                self._results[number] = self._calls[number]()
            except BaseException as error:
                self._errors[number] = error

    def results(self) -> list[_T]:
        """The results, once all calls have ended. Raises the error of the first call that failed."""
        if self._errors:
            try:
                raise self._errors[min(self._errors)]
            finally:
                # else the error, through its traceback and this frame, would form a reference cycle
                self._errors.clear()
        return [self._results[number] for number in range(len(self._calls))]

    def _take(self) -> int | None:
        with self._lock:
            if self._taken == len(self._calls):
                return None
            self._taken += 1
            return self._taken - 1
