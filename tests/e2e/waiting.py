"""Waiting for other processes: in real time, with a deadline."""

from collections.abc import Callable
from typing import TypeVar

from ports.clock import SystemClock
from ports.stopping import Stop

_T = TypeVar("_T")
_PAUSE = 0.05

CLOCK = SystemClock()


def eventually(probe: Callable[[], _T], within: float = 30.0, told: Callable[[], object] = lambda: "") -> _T:
    """The first true answer of `probe`. Raises AssertionError with the last one and what `told` says."""
    end = CLOCK.now() + within
    while not (found := probe()):
        assert CLOCK.now() < end, f"still {found!r} after {within} s; {told()}"
        pause(_PAUSE)
    return found


def pause(seconds: float) -> None:
    """Let others work."""
    Stop().wait(CLOCK, seconds)
