"""Timeouts adapted to how long each endpoint has taken (reliability.md R31).

A PD behind a broken network lets every read run into its full timeout. This blocks a worker that other clusters need.
After a time-out, reads of that host and port therefore get only a short timeout until one succeeds. Once in a while a
read gets the full timeout, longer each time, so that an endpoint that is merely slow is found alive. From then on each
request may take twice as long as recent ones took. That includes writes, because the result of an abandoned write is
unknown.
"""

import threading
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from ports.ageing import Ageing
from ports.clock import Clock
from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport

USUAL = 5.0
"""Seconds: the timeout of a request without special urgency. A request with a shorter timeout keeps it."""

LONGEST = 20.0
"""The longest timeout for a slow endpoint, in seconds."""

PROBE_TIMEOUT = 0.5
"""The timeout of a read from a silent endpoint, in seconds."""

FULL_TRY_EVERY = 60.0
"""Seconds between reads of a silent endpoint with a full timeout; grows in proportion to that timeout."""

SLOW = 2.0
"""Seconds for an answer beyond which other clusters should not wait for the next one."""

_REMEMBERED = 1024
"""How many silent or slow endpoints are remembered; clusters are created and deleted."""


@dataclass(slots=True)
class _Endpoint:
    """The recent behaviour of an endpoint, in seconds. While it is silent, `patience` is the next full timeout."""

    takes: float = 0.0
    patience: float = 0.0
    full_try_due: float | None = None

    def allowed(self, request: Request, now: float) -> float:
        if request.timeout < USUAL:
            return min(request.timeout, PROBE_TIMEOUT) if self.full_try_due is not None else request.timeout
        usual = max(request.timeout, min(2 * self.takes, LONGEST))
        if self.full_try_due is None or not request.is_read:
            return usual
        return max(usual, self.patience) if now >= self.full_try_due else PROBE_TIMEOUT

    def timed_out(self, after: float, now: float) -> None:
        if self.full_try_due is None or after >= USUAL:
            self.full_try_due = now + FULL_TRY_EVERY * max(self.patience / USUAL, 1.0)
            self.patience = min(max(2 * after, USUAL), LONGEST)

    def answered(self, after: float) -> None:
        self.takes, self.patience, self.full_try_due = max(after, self.takes / 2), 0.0, None

    @property
    def is_as_usual(self) -> bool:
        return self.full_try_due is None and 2 * self.takes <= USUAL


class AdaptiveTimeoutTransport:
    """Gives each request a timeout that suits its endpoint. Thread-safe.

    Without it reconciles wait for a silent PD for 108 of 300 seconds, not for 55 (bench/memories.json). After a
    restart, one read of each silent endpoint gets the full timeout.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._lock = threading.Lock()
        self._endpoints: Ageing[str, _Endpoint] = Ageing(most=_REMEMBERED)

    def request(self, request: Request) -> Response:
        """Send and read the whole answer, within the adapted timeout. Raises TransportError."""
        name, began = urlsplit(request.url).netloc, self._clock.now()
        with self._lock:
            known = self._endpoints.get(name)
            request = replace(request, timeout=known.allowed(request, began)) if known else request
        try:
            answer = self._transport.request(request)
        except RequestTimeout:
            with self._lock:
                self._endpoints.touch(name, _Endpoint).value.timed_out(request.timeout, self._clock.now())
            raise
        with self._lock:
            self._answered(name, self._clock.now() - began)
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return after the headers. Raises TransportError."""
        return self._transport.stream(request, idle_timeout)

    def _answered(self, name: str, after: float) -> None:
        if self._endpoints.get(name) is None and 2 * after <= USUAL:
            return
        endpoint = self._endpoints.touch(name, _Endpoint).value
        endpoint.answered(after)
        if endpoint.is_as_usual:
            self._endpoints.drop(name)


class OneTimeoutTransport:
    """Sends no more requests to an endpoint after its first time-out.

    For one reconcile of one cluster; its calls may be concurrent. Without it a silent PD gets 120 requests in five
    minutes, not 63 (bench/memories.json).
    """

    def __init__(self, transport: Transport, silent: set[str], slow: set[str], clock: Clock) -> None:
        """`silent` collects the endpoints (`host:port`) that timed out, `slow` those that other clusters should not
        wait for.

        Several transports of one reconcile may share them.
        """
        self._transport = transport
        self._silent = silent
        self._slow = slow
        self._clock = clock

    def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises TransportError, without sending if the endpoint timed out before."""
        endpoint = urlsplit(request.url).netloc
        if endpoint in self._silent:
            raise RequestTimeout(
                request.method, request.url, "not sent: the endpoint did not answer earlier in this reconcile"
            )
        began = self._clock.now()
        try:
            answer = self._transport.request(request)
        except RequestTimeout:
            self._silent.add(endpoint)
            self._slow.add(endpoint)
            raise
        if self._clock.now() - began > SLOW:
            self._slow.add(endpoint)
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return after the headers. Raises TransportError."""
        return self._transport.stream(request, idle_timeout)
