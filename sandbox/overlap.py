"""Calls side by side in one thread, on a clock that others move: together they take as long as the longest of them.

Each call runs to its end before the next one begins. While it runs, its waits do not let the world go on: they put the
call ahead of the clock, as `ahead` says. When all have ended, the caller waits once, for the longest. One seed stays
one run, and every call is answered with what was so when all were sent.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

_AHEAD: ContextVar[float | None] = ContextVar("ahead of the clock", default=None)

_T = TypeVar("_T")


def ahead() -> float:
    """Seconds by which the call that runs is ahead of the clock; 0 outside of such calls."""
    return _AHEAD.get() or 0.0


def overlapping(wait: Callable[[float], object]) -> Callable[[float], None]:
    """`wait`, but for calls side by side, which are ahead of the clock instead."""

    def wait_or_get_ahead(seconds: float) -> None:
        so_far = _AHEAD.get()
        if so_far is None:
            wait(seconds)
        else:
            _AHEAD.set(so_far + seconds)

    return wait_or_get_ahead


class Overlapping:
    """See `SideBySide`; `wait` lets the world go on."""

    def __init__(self, wait: Callable[[float], object]) -> None:
        self._wait = overlapping(wait)

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """See `SideBySide`."""
        results: list[_T] = []
        errors: list[Exception] = []
        began, longest = ahead(), 0.0
        for call in calls:
            token = _AHEAD.set(began)
            try:
                results.append(call())
            except Exception as error:
                errors.append(error)
            finally:
                longest = max(longest, ahead() - began)
                _AHEAD.reset(token)
        if longest:
            self._wait(longest)
        if errors:
            raise errors[0]
        return results
