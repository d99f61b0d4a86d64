"""A count of a thread's contacts with the outside, to recognise work whose result depends on its inputs alone.

Code that sends a request or reads the time records it; `watched` counts the records of its own thread.
"""

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from ports.clock import Clock


@dataclass(slots=True)
class Effects:
    """The number of requests (including reads), SQL statements, events and clock readings."""

    count: int = 0


_WATCHED: ContextVar[Effects | None] = ContextVar("effects", default=None)


@contextlib.contextmanager
def watched() -> Iterator[Effects]:
    """Count the effects of this thread within the block."""
    effects = Effects()
    token = _WATCHED.set(effects)
    try:
        yield effects
    finally:
        _WATCHED.reset(token)


def note() -> None:
    """Record that this thread is about to send something, or reads the time."""
    effects = _WATCHED.get()
    if effects is not None:
        effects.count += 1


class NotedClock:
    """A clock that records every reading as an effect."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        note()
        return self._clock.now()

    def wall(self) -> datetime:
        note()
        return self._clock.wall()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        self._clock.wait(condition, timeout)
