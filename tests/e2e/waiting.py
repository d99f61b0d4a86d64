"""Waiting for other processes: in real time, with a deadline."""

from collections.abc import Callable
from typing import TypeVar

from ports.clock import SystemClock
from ports.stopping import Stop

_T = TypeVar("_T")
_SOONEST, _LATEST = 0.05, 0.2
"""Seconds until one looks again: more for what takes longer, since each look costs CPU here and in an API server."""
_PART = 0.1
"""Of the time that was waited so far."""

CLOCK = SystemClock()


def eventually(probe: Callable[[], _T], within: float = 30.0, told: Callable[[], object] = lambda: "") -> _T:
    """The first true answer of `probe`. Raises AssertionError with the last one and what `told` says."""
    begun = CLOCK.now()
    while not (found := probe()):
        waited = CLOCK.now() - begun
        assert waited < within, f"still {found!r} after {within} s; {told()}"
        pause(min(max(_SOONEST, _PART * waited), _LATEST))
    return found


def pause(seconds: float) -> None:
    """Let others work."""
    Stop().wait(CLOCK, seconds)
