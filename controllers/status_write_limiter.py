"""A limit on status writes and failing reconciles of one object, so that none of them repeats without a pause.

Each write of a status enqueues its object. If two observations differ each time, for example because every other call
reaches a PD member that has fallen behind, writes would follow each other as fast as the API server answers (R19). The
same happens if two processes write one status: a second operator, or an old leader that still runs (FP9). The queue's
back-off does not prevent this, because an event of the object ends it.
"""

from ports.clock import Clock
from ports.pace import Bucket, Pace

PACE = Pace(0.5, 0.5, at_once=30)
"""Thirty writes of one status without a wait, more than any step of an operation needs; then two per second."""

FAILURE = 3.0
"""The number of writes that a failed reconcile counts as: a failing key is tried less than once a second (R13).

Each failure in a row also lowers the maximum that can be saved up by this number; otherwise a burst of failures would
follow a quiet minute.
"""

_INSTANT = 0.0005
"""Seconds that may be missing after a wait, because of rounding errors."""


class StatusWriteLimiter:
    """The number of writes that one object has left. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bucket = Bucket(PACE, clock.now())
        self._failures = 0

    def wrote(self) -> None:
        """Count a write."""
        self._take(1.0)

    def failed(self) -> None:
        """Count a failed reconcile: the events of its writes enqueue the key at once, despite the back-off."""
        self._take(FAILURE)
        self._failures += 1

    def worked(self) -> None:
        """End a row of failures after a reconcile without one."""
        if self._failures:
            self._take(0.0)
            self._failures = 0

    def pause(self) -> float:
        """The seconds to wait before the next reconcile of this object; 0 while it has writes left."""
        pause = self._bucket.pause(self._clock.now(), self._most())
        return pause if pause > _INSTANT else 0.0

    def _take(self, writes: float) -> None:
        self._bucket.take(self._clock.now(), writes, self._most())

    def _most(self) -> float:
        return max(PACE.at_once - FAILURE * self._failures, 1.0)
