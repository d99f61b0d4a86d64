"""What Kubernetes said last of things that do not start: read now and then, and not before they have had some time."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from ports.clock import Clock

_PATIENCE = 10.0
"""Seconds for which nothing is read: most things just take so long."""

_EVERY = 30.0
_FORGOTTEN = 3600.0


@dataclass(slots=True)
class _Known:
    since: float
    asked: float
    read_at: float = -inf
    text: str = ""


class Complaints:
    """Those of one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(self, key: str, read: Callable[[], str], clock: Clock) -> str:
        """What is said of `key`, which does not start, empty when nothing; `read` is called when that is due."""
        now = clock.now()
        self._known = {each: known for each, known in self._known.items() if now - known.asked <= _FORGOTTEN}
        known = self._known.setdefault(key, _Known(now, now))
        known.asked = now
        if now - known.since >= _PATIENCE and now - known.read_at >= _EVERY:
            known.read_at, known.text = now, read()
        return known.text
