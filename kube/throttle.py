"""Client-side throttling: a token bucket (informers-workqueue.md REST-1, RL-4)."""

import threading
from dataclasses import dataclass

from ports.clock import Clock
from ports.lazy_log import get_logger
from ports.pace import Bucket, limit
from ports.stopping import Stop

_log = get_logger(__name__)

_WORTH_A_LOG = 0.05
_WORTH_A_WARNING = 1.0
_WARN_EVERY = 60.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per second, and the size of a burst after a pause."""

    qps: float = 50.0
    burst: int = 100


class Throttle:
    """A token bucket, initially full, refilled at `qps` up to `burst`; first come, first served.

    Of 1,000 requests at once, 149 go out in the first second (bench/memories.json). After a restart it is full.
    """

    def __init__(self, rate: Rate, clock: Clock) -> None:
        """Raise ValueError for a rate that allows no requests."""
        if rate.qps <= 0 or rate.burst < 1:
            raise ValueError(f"a rate needs qps > 0 and burst >= 1, not {rate.qps:g} and {rate.burst}")
        self._clock = clock
        self._lock = threading.Lock()
        self._bucket = Bucket(limit(rate.qps, rate.burst), clock.now())
        self._warned_at = float("-inf")

    def take(self, stop: Stop) -> float | None:
        """Wait for a token; return the seconds waited, or None if `stop` was set first."""
        with self._lock:
            delay = self._bucket.take(self._clock.now())
        if delay <= 0:
            return None if stop.is_set() else 0.0
        self._log(delay)
        return None if stop.wait(self._clock, delay) else delay

    def _log(self, delay: float) -> None:
        if delay <= _WORTH_A_LOG:
            return
        now = self._clock.now()
        if delay > _WORTH_A_WARNING and now - self._warned_at >= _WARN_EVERY:
            self._warned_at = now
            _log.warning("waiting before a request", reason="client-side throttling", seconds=round(delay, 3))
        else:
            _log.debug("waiting before a request", reason="client-side throttling", seconds=round(delay, 3))
