"""A leader's local knowledge of its lease (informers-workqueue.md LE-11, LE-22; design.md 3.5)."""

import threading

from ports.clock import Clock
from ports.fencing import LeaseExpired


class LocalLease:
    """A fence: writing is allowed while this process leads and its last renewal is younger than the lease.

    Only the monotonic clock counts, from the moment the renewal was *sent*: no other process can have seen the renewal
    earlier, so none can take over before the lease ends here.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._valid_until = float("-inf")

    def extend(self, sent: float, duration: float) -> None:
        """Record that a renewal for `duration` seconds, sent at `sent`, was accepted."""
        with self._lock:
            self._valid_until = sent + duration

    def drop(self) -> None:
        """Stop leading."""
        with self._lock:
            self._valid_until = float("-inf")

    def is_valid(self) -> bool:
        """True while no other process can be the leader."""
        with self._lock:
            return self._clock.now() < self._valid_until

    def check(self) -> None:
        """Return when writing is allowed. Raises LeaseExpired."""
        if not self.is_valid():
            raise LeaseExpired("this process does not hold a valid leader lease")
