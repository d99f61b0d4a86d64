"""Whether work has had to do with the outside, so that one can tell what followed from its inputs alone.

Who sends something, or tells the time, notes it; whoever watches learns of what its own thread has done meanwhile.
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
    """How many there were: requests, reads included, statements, events, looks at the clock."""

    count: int = 0


_WATCHED: ContextVar[Effects | None] = ContextVar("effects", default=None)


@contextlib.contextmanager
def watched() -> Iterator[Effects]:
    """What this thread does inside."""
    effects = Effects()
    token = _WATCHED.set(effects)
    try:
        yield effects
    finally:
        _WATCHED.reset(token)


def note() -> None:
    """Something is about to be sent, or the time is told."""
    effects = _WATCHED.get()
    if effects is not None:
        effects.count += 1


class NotedClock:
    """A clock whose readings are noted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        """See `Clock`."""
        note()
        return self._clock.now()

    def wall(self) -> datetime:
        """See `Clock`."""
        note()
        return self._clock.wall()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """See `Clock`."""
        self._clock.wait(condition, timeout)
