"""Waiting before requests to a server that fails (informers-workqueue.md REST-8). Off unless it is asked for."""

import threading
from collections.abc import Mapping

from ports.clock import Clock

_BASE = "KUBE_CLIENT_BACKOFF_BASE"
_LONGEST = "KUBE_CLIENT_BACKOFF_DURATION"
"""The environment variables of client-go: the first and the longest wait, in whole seconds. Both turn it on."""

_TOO_MANY_REQUESTS = 429


class UrlBackoff:
    """How long the next request must wait: doubled by each failure of the server, forgotten with any other answer.

    A transport speaks to one host, so one is all it needs to keep. Safe for threads.
    """

    def __init__(self, clock: Clock, base: float, longest: float) -> None:
        """`base` and `longest` in seconds."""
        self._clock = clock
        self._base = base
        self._longest = longest
        self._lock = threading.Lock()
        self._wait = 0.0
        self._answered_at = 0.0

    def remaining(self) -> float:
        """Seconds to wait before a request."""
        with self._lock:
            return max(0.0, self._answered_at + self._wait - self._clock.now())

    def answered(self, status: int) -> None:
        """A request got this status."""
        failed = status >= 500 or status == _TOO_MANY_REQUESTS
        with self._lock:
            self._wait = min(2 * self._wait or self._base, self._longest) if failed else 0.0
            self._answered_at = self._clock.now()


def from_environment(environ: Mapping[str, str], clock: Clock) -> UrlBackoff | None:
    """What the environment asks for; None unless it names two positive whole numbers."""
    base, longest = (environ.get(name, "") for name in (_BASE, _LONGEST))
    if not (base.isascii() and base.isdigit() and longest.isascii() and longest.isdigit()):
        return None
    return UrlBackoff(clock, float(base), float(longest)) if int(base) and int(longest) else None
