"""Delays before requests to a failing server (informers-workqueue.md REST-8). Off by default."""

import threading
from collections.abc import Mapping

from ports.clock import Clock
from ports.pace import Pace

_BASE = "KUBE_CLIENT_BACKOFF_BASE"
_LONGEST = "KUBE_CLIENT_BACKOFF_DURATION"
"""client-go's environment variables: the first and the longest delay in whole seconds. Both must be set."""

_TOO_MANY_REQUESTS = 429


class UrlBackoff:
    """The delay before the next request: doubled by each server failure, reset by any other answer.

    One suffices for a transport, which talks to one host. Without it a client that asks each second sends a failing
    server 600 requests in ten minutes, not 16 (bench/memories.json). A restart ends the delay. Thread-safe.
    """

    def __init__(self, clock: Clock, pace: Pace) -> None:
        self._clock, self._pace = clock, pace
        self._lock = threading.Lock()
        self._failures = 0
        self._answered_at = 0.0

    def remaining(self) -> float:
        """Seconds to wait before a request."""
        with self._lock:
            return max(0.0, self._answered_at + self._pace.after(self._failures) - self._clock.now())

    def answered(self, status: int) -> None:
        """Record the status of an answer."""
        failed = status >= 500 or status == _TOO_MANY_REQUESTS
        with self._lock:
            self._failures = self._failures + 1 if failed else 0
            self._answered_at = self._clock.now()


def from_environment(environ: Mapping[str, str], clock: Clock) -> UrlBackoff | None:
    """The back-off that the environment configures; None unless both variables are positive whole numbers."""
    base, longest = (environ.get(name, "") for name in (_BASE, _LONGEST))
    if not (base.isascii() and base.isdigit() and longest.isascii() and longest.isdigit()):
        return None
    return UrlBackoff(clock, Pace(float(base), float(longest))) if int(base) and int(longest) else None
