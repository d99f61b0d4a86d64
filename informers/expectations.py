"""Counting what was asked for and not seen yet (informers-workqueue.md EXP-2).

A controller that creates or deletes several objects at once must not do so again before the cache shows them. It says
what to expect, its event handlers say what came, and a sync whose expectations are open creates and deletes nothing.
`informers.version_barrier` needs no handlers, where versions are numbers.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from ports.clock import Clock

_TIMEOUT = 300.0
"""Seconds after which nobody waits any more: an event may have been missed."""


@dataclass(slots=True)
class _Expected:
    since: float
    creations: int = 0
    deletions: set[str] = field(default_factory=set)


class Expectations:
    """What is expected for each controller key. Safe for threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._expected: dict[str, _Expected] = {}

    def expect_creations(self, key: str, count: int) -> None:
        """Begin to wait for so many creations, and for nothing else. Say `creation_observed` for one that failed."""
        self._set(key, _Expected(self._clock.now(), creations=count))

    def expect_deletions(self, key: str, uids: Iterable[str]) -> None:
        """Begin to wait for the deletions of these objects, and for nothing else."""
        self._set(key, _Expected(self._clock.now(), deletions=set(uids)))

    def creation_observed(self, key: str) -> None:
        """One came, or will never come."""
        with self._lock:
            if expected := self._expected.get(key):
                expected.creations -= 1

    def deletion_observed(self, key: str, uid: str) -> None:
        """The object is gone, or is going; told more than once, it counts once."""
        with self._lock:
            if expected := self._expected.get(key):
                expected.deletions.discard(uid)

    def satisfied(self, key: str) -> bool:
        """Whether everything came, nothing was expected, or it took more than five minutes."""
        with self._lock:
            expected = self._expected.get(key)
            if expected is None:
                return True
            fulfilled = expected.creations <= 0 and not expected.deletions
            return fulfilled or self._clock.now() - expected.since > _TIMEOUT

    def forget(self, key: str) -> None:
        """Drop the record of an owner that is gone."""
        with self._lock:
            self._expected.pop(key, None)

    def _set(self, key: str, expected: _Expected) -> None:
        with self._lock:
            self._expected[key] = expected
