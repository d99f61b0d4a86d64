"""Concurrent calls, so that several slow servers cost only the time of the slowest.

The real implementation is `Threads`; `sandbox.overlap` is the one for a virtual clock.
"""

import threading
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

from ports.clock import Clock

_MOST = 32
"""The maximum number of helper threads for all callers together."""

_LATE = 0.05
"""Seconds after which threads make the calls that are left. Most servers answer all calls sooner, and threads cost
more than such calls."""

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


class _Timer(Protocol):
    def cancel(self) -> None: ...


class DelayedCalls(Protocol):
    """Makes calls when they are due, on another thread. `workqueue.timers.Timers` is one."""

    clock: Clock

    def call_at(self, due: float, call: Callable[[], None]) -> _Timer: ...


class Threads:
    """The caller makes one call after another; when that takes long, new threads make the calls that are left.

    Threads end with the `run`, so that none must be stopped when the process ends. If no thread is free, the caller
    makes all calls itself.
    """

    def __init__(self, timers: DelayedCalls, most: int = _MOST) -> None:
        self._timers = timers
        self._free = threading.BoundedSemaphore(most)

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        batch = _Batch(calls)
        if len(calls) < 2:
            batch.work()
            return batch.results()
        due = self._timers.clock.now() + _LATE
        timer = self._timers.call_at(due, partial(self._help, batch, copy_context()))
        batch.work()
        timer.cancel()
        return batch.results()

    def _help(self, batch: "_Batch[Any]", context: Context) -> None:
        """Start a thread for each call that is left; each runs in a copy of the caller's context."""
        with batch.helping:
            for _ in range(batch.left):
                helper = self._helper(partial(context.copy().run, batch.work))
                if helper is None:
                    return
                batch.helpers.append(helper)

    def _helper(self, work: Callable[[], None]) -> threading.Thread | None:
        """A thread that runs `work`; None if none can be started."""
        if not self._free.acquire(blocking=False):
            return None

        def help_out() -> None:
            try:
                work()
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
    """The calls of one `run`; the caller and its helpers each take the next one until none is left."""

    def __init__(self, calls: Sequence[Callable[[], _T]]) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self.helping = threading.Lock()
        """Held while helpers start."""
        self.helpers: list[threading.Thread] = []
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

    @property
    def left(self) -> int:
        """The number of calls that have not begun."""
        return len(self._calls) - self._taken

    def results(self) -> list[_T]:
        """Wait until all calls have ended, and return the results. Raises the error of the first call that failed."""
        # no call is left, so no further helper starts
        with self.helping:
            helpers = tuple(self.helpers)
        for helper in helpers:
            helper.join()
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
