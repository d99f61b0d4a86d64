"""Concurrent calls in one thread on a virtual clock: together they take as long as the longest.

Each call runs to its end before the next begins. Its waits do not move the world but put the call ahead of the clock
(`ahead`). After all calls, the caller waits once, for the longest. A seed still determines a run, and every call sees
the state at the common start.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

_AHEAD: ContextVar[float | None] = ContextVar("ahead of the clock", default=None)

_T = TypeVar("_T")


def ahead() -> float:
    """Seconds by which the running call is ahead of the clock; 0 outside of such calls."""
    return _AHEAD.get() or 0.0


def overlapping(wait: Callable[[float], object]) -> Callable[[float], None]:
    """`wait`, but concurrent calls get ahead of the clock instead."""

    def wait_or_get_ahead(seconds: float) -> None:
        so_far = _AHEAD.get()
        if so_far is None:
            wait(seconds)
        else:
            _AHEAD.set(so_far + seconds)

    return wait_or_get_ahead


class Overlapping:
    """Implements `SideBySide`; `wait` lets the world continue."""

    def __init__(self, wait: Callable[[float], object]) -> None:
        self._wait = overlapping(wait)

    def run(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
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
