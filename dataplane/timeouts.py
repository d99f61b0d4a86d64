"""How long endpoints are waited for: as long as they have been seen to take (reliability.md R31).

A PD that is cut off makes every read wait for its whole timeout, and a worker with it, on which other clusters wait.
So after a request that timed out, reads of that host and port wait only briefly, until one is answered. Once in a while
a read gets all its time, and each time more of it: an endpoint that is merely slow must be found alive. From then on
each request may take twice as long as the last ones took, writes included: who gives one up does not know what becomes
of it.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from ports.clock import Clock
from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport

USUAL = 5.0
"""Seconds that a request is given which is in no hurry; one that is given less keeps its time."""

LONGEST = 20.0
"""Seconds that a slow endpoint may take for an answer."""

PROBE_TIMEOUT = 0.5
"""Seconds that a read of a silent endpoint may take."""

FULL_TRY_EVERY = 60.0
"""Seconds after which a read of a silent endpoint may again take its time; as many times more as that is longer."""

SLOW = 2.0
"""Seconds for an answer after which others should not have to wait for the next one."""

_REMEMBERED = 1024
"""Endpoints kept in mind that were silent or slow; clusters come and go."""


@dataclass(slots=True)
class _Endpoint:
    """What an endpoint was like lately, in seconds. `patience`: what the next full try gets while it is silent."""

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
    """Gives each request the time that its endpoint needs. Safe for use by many threads."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._lock = threading.Lock()
        self._endpoints: OrderedDict[str, _Endpoint] = OrderedDict()

    def request(self, request: Request) -> Response:
        """Send and read the whole answer, maybe in another time than asked for. Raises TransportError."""
        name, began = urlsplit(request.url).netloc, self._clock.now()
        with self._lock:
            known = self._endpoints.get(name)
            request = replace(request, timeout=known.allowed(request, began)) if known else request
        try:
            answer = self._transport.request(request)
        except RequestTimeout:
            with self._lock:
                self._endpoint(name).timed_out(request.timeout, self._clock.now())
            raise
        with self._lock:
            self._answered(name, self._clock.now() - began)
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return once the headers are here. Raises TransportError."""
        return self._transport.stream(request, idle_timeout)

    def _endpoint(self, name: str) -> _Endpoint:
        if name not in self._endpoints and len(self._endpoints) >= _REMEMBERED:
            self._endpoints.popitem(last=False)
        return self._endpoints.setdefault(name, _Endpoint())

    def _answered(self, name: str, after: float) -> None:
        if name not in self._endpoints and 2 * after <= USUAL:
            return
        endpoint = self._endpoint(name)
        endpoint.answered(after)
        if endpoint.is_as_usual:
            del self._endpoints[name]


class OneTimeoutTransport:
    """Gives up an endpoint once it has let a request time out: whoever asks again in the same reconcile waits no more.

    For one reconcile of one cluster, whose calls may go out side by side.
    """

    def __init__(self, transport: Transport, silent: set[str], slow: set[str], clock: Clock) -> None:
        """`silent` collects the endpoints, `host:port`, that timed out, `slow` all that others should not wait for.

        Several transports of a reconcile may share them.
        """
        self._transport = transport
        self._silent = silent
        self._slow = slow
        self._clock = clock

    def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises TransportError, at once for an endpoint that was silent."""
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
        """Send and return once the headers are here. Raises TransportError."""
        return self._transport.stream(request, idle_timeout)
