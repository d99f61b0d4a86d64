"""Waiting for other processes: in real time, with a deadline."""

from collections.abc import Callable
from typing import TypeVar

from ports.clock import SystemClock
from ports.stopping import Stop

_T = TypeVar("_T")
_SOONEST, _LATEST = 0.05, 0.2
"""Seconds between checks: more for longer waits, since each check costs CPU here and in an API server."""
_PART = 0.1
"""The fraction of the time waited so far."""

CLOCK = SystemClock()


def eventually(probe: Callable[[], _T], within: float = 30.0, told: Callable[[], object] = lambda: "") -> _T:
    """The first true answer of `probe`. Raises AssertionError with the last one and the message of `told`."""
    begun = CLOCK.now()
    while not (found := probe()):
        waited = CLOCK.now() - begun
        assert waited < within, f"still {found!r} after {within} s; {told()}"
        pause(min(max(_SOONEST, _PART * waited), _LATEST))
    return found


def pause(seconds: float) -> None:
    """Let other threads work."""
    Stop().wait(CLOCK, seconds)
