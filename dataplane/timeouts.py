"""Less patience with endpoints that let us wait in vain (reliability.md R31).

A PD that is cut off makes every read wait for its whole timeout, and a worker with it, on which other clusters wait.
So after a read that timed out, further reads of that host and port wait only briefly, until one is answered. Once in a
while a read gets all its time again: an endpoint that is merely slow must be found alive.
"""

import threading
from collections import OrderedDict
from dataclasses import replace
from urllib.parse import urlsplit

from ports.clock import Clock
from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport

PROBE_TIMEOUT = 0.5
"""Seconds that a read of a silent endpoint may take."""

FULL_TRY_EVERY = 60.0
"""Seconds after which a read of a silent endpoint may again take the time it asks for."""

_REMEMBERED = 1024
"""Silent endpoints kept in mind; clusters come and go."""


class AdaptiveTimeoutTransport:
    """Shortens reads of endpoints that were silent; writes are sent as they are. Safe for use by many threads."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._lock = threading.Lock()
        self._full_try_due: OrderedDict[str, float] = OrderedDict()

    def request(self, request: Request) -> Response:
        """Send and read the whole answer, maybe in less time than asked for. Raises TransportError."""
        endpoint = urlsplit(request.url).netloc
        if request.method == "GET":
            request = replace(request, timeout=self._allowed(endpoint, request.timeout))
        try:
            answer = self._transport.request(request)
        except RequestTimeout:
            self._was_silent(endpoint)
            raise
        self._answered(endpoint)
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return once the headers are here. Raises TransportError."""
        return self._transport.stream(request, idle_timeout)

    def _allowed(self, endpoint: str, wanted: float) -> float:
        with self._lock:
            due = self._full_try_due.get(endpoint)
            if due is None:
                return wanted
            now = self._clock.now()
            if now < due:
                return min(wanted, PROBE_TIMEOUT)
            self._full_try_due[endpoint] = now + FULL_TRY_EVERY
            return wanted

    def _was_silent(self, endpoint: str) -> None:
        with self._lock:
            self._full_try_due.setdefault(endpoint, self._clock.now() + FULL_TRY_EVERY)
            if len(self._full_try_due) > _REMEMBERED:
                self._full_try_due.popitem(last=False)

    def _answered(self, endpoint: str) -> None:
        with self._lock:
            self._full_try_due.pop(endpoint, None)


class OneTimeoutTransport:
    """Gives up an endpoint once it has let a request time out: whoever asks again in the same reconcile waits no more.

    For one reconcile of one cluster, so for one thread.
    """

    def __init__(self, transport: Transport, silent: set[str]) -> None:
        """`silent` collects the endpoints, `host:port`; several transports of a reconcile may share it."""
        self._transport = transport
        self._silent = silent

    def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises TransportError, at once for an endpoint that was silent."""
        endpoint = urlsplit(request.url).netloc
        if endpoint in self._silent:
            raise RequestTimeout(
                request.method, request.url, "not sent: the endpoint did not answer earlier in this reconcile"
            )
        try:
            return self._transport.request(request)
        except RequestTimeout:
            self._silent.add(endpoint)
            raise

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return once the headers are here. Raises TransportError."""
        return self._transport.stream(request, idle_timeout)
