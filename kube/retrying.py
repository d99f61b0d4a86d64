"""Throttling and retries around a transport (informers-workqueue.md REST-1 to REST-7).

    Client → RetryingTransport → HttpTransport

A request is repeated if the server requests it (Retry-After), or if a read has lost its connection. A write that the
server may have applied is not repeated.
"""

from collections.abc import Iterator, Mapping
from logging import INFO

from kube.failure_log import FailureLog
from kube.rest_metrics import RequestObserver, Unobserved
from kube.throttle import Throttle
from kube.url_backoff import UrlBackoff
from ports.clock import Clock
from ports.fencing import Fence, OpenFence
from ports.latch import Latch
from ports.lazy_log import get_logger
from ports.stopping import Stop
from ports.transport import (
    ByteStream,
    ConnectionLost,
    Request,
    RequestTimeout,
    Response,
    Transport,
    TransportClosed,
    TransportError,
)

_log = get_logger(__name__)

_ATTEMPTS = 11
"""The first attempt and ten retries (REST-2)."""

_LONGEST_PAUSE = 300.0
"""The longest Retry-After that is obeyed, in seconds: a server must not silence a client for a day."""

_RETRY_PAUSE = 1.0
"""Seconds before a retry over a new connection (REST-4), or for a Retry-After of 0."""


class RetryingTransport:
    """A transport that throttles, obeys Retry-After, and repeats reads whose connection broke."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        throttle: Throttle,
        stop: Stop,
        *,
        fence: Fence | None = None,
        observer: RequestObserver | None = None,
        backoff: UrlBackoff | None = None,
        hurry: Stop | None = None,
    ) -> None:
        """Wrap `transport`. `stop` ends every wait and refuses later requests: set it after the last sync.

        `hurry` only ends the waits between attempts, with the error so far: set it when the last syncs should finish
        instead of waiting minutes for a Retry-After.

        `fence` is asked before each attempt to write (LE-22). `backoff` delays requests to a server that fails.
        """
        self._transport = transport
        self._clock = clock
        self._throttle = throttle
        self._stop = stop
        self._fence = fence or OpenFence()
        self._observer = observer or Unobserved()
        self._backoff = backoff
        self._hurry = hurry or stop
        self._failures = FailureLog(_log, clock)

    def request(self, request: Request) -> Response:
        """Send until there is an answer. Raises TransportError, LeaseExpired; TransportClosed if stopped before
        sending.
        """
        started = self._clock.now()
        try:
            return self._request(request)
        finally:
            self._observer.finished(request, self._clock.now() - started)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Open a watch. If the connection breaks repeatedly, the watch is empty instead of an error (REST-5)."""
        broken: TransportError | None = None
        for attempt in range(_ATTEMPTS):
            if attempt > 0:
                self._take_token(request)
            try:
                answer = self._transport.stream(request, idle_timeout)
            except (ConnectionLost, RequestTimeout) as error:
                self._observe(request, None, attempt)
                broken = error
                if attempt + 1 < _ATTEMPTS and self._pause(_RETRY_PAUSE):
                    raise
                self._failures.failed("could not open the watch", level=INFO, path=request.url, cause=str(error))
                continue
            except TransportError:
                self._observe(request, None, attempt)
                raise
            self._observe(request, answer.status, attempt)
            delay = _retry_after(answer.status, answer.headers)
            if delay is None or attempt + 1 == _ATTEMPTS:
                return answer
            answer.close()
            if self._pause(delay):
                raise TransportClosed(request.method, request.url, "stopping")
        _log.debug("could not open the watch, treating it as ended", path=request.url, cause=str(broken))
        return _EmptyStream()

    def _request(self, request: Request) -> Response:
        earlier: TransportError | None = None
        for attempt in range(_ATTEMPTS):
            self._take_token(request)
            if request.method != "GET":
                self._fence.check()
            try:
                answer = self._transport.request(request)
            except TransportError as error:
                self._observe(request, None, attempt)
                named = _naming(error, earlier)
                if not _may_repeat(request, error) or attempt + 1 == _ATTEMPTS or self._pause(_RETRY_PAUSE):
                    raise named from error
                self._log_retry(request, cause=str(error))
                earlier = earlier or error
                continue
            self._observe(request, answer.status, attempt, len(answer.body) + answer.streamed)
            delay = _retry_after(answer.status, answer.headers)
            if delay is None or attempt + 1 == _ATTEMPTS or self._pause(delay):
                return answer
            self._log_retry(request, status=answer.status)
        raise AssertionError("the last attempt returns or raises")

    def _take_token(self, request: Request) -> None:
        waited = self._throttle.take(self._stop)
        if waited is None:
            raise TransportClosed(request.method, request.url, "stopping")
        self._observer.throttled(request, waited)
        if self._backoff and (wait := self._backoff.remaining()) and self._pause(wait) and self._stop.is_set():
            raise TransportClosed(request.method, request.url, "stopping")

    def _log_retry(self, request: Request, **why: object) -> None:
        self._failures.failed("sending a request again", level=INFO, method=request.method, path=request.url, **why)

    def _pause(self, seconds: float) -> bool:
        """Wait; True if `stop` or `hurry` ended the wait."""
        ended = Latch()
        with self._stop.calling(ended.set), self._hurry.calling(ended.set):
            return ended.wait(self._clock, seconds)

    def _observe(self, request: Request, status: int | None, attempt: int, received: int = 0) -> None:
        self._observer.attempted(request, status, received)
        if self._backoff and status is not None:
            self._backoff.answered(status)
        if attempt > 0:
            self._observer.retried(request, status)


class _EmptyStream:
    """A watch that has ended."""

    status = 200
    headers: Mapping[str, str] = {}

    def __iter__(self) -> Iterator[bytes]:
        return iter(())

    def abort(self) -> None: ...

    def close(self) -> None: ...


def _retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """The seconds after which to retry; None for never (REST-3)."""
    text = headers.get("retry-after", "")
    if (status != 429 and status < 500) or not text.isascii() or not text.isdigit():
        return None
    return min(max(float(text), _RETRY_PAUSE), _LONGEST_PAUSE)


def _may_repeat(request: Request, error: TransportError) -> bool:
    """REST-4: only reads, and only if an established connection broke."""
    return request.method == "GET" and isinstance(error, ConnectionLost)


def _naming(error: TransportError, earlier: TransportError | None) -> TransportError:
    """REST-6: an error that mentions the errors of earlier attempts."""
    if earlier is None:
        return error
    return type(error)(error.method, error.url, f"{error.cause} (earlier: {earlier.cause})")
