"""Metrics of requests: an observer of every attempt, and client-go's series (informers-workqueue.md 8.3)."""

from typing import Protocol
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Histogram

from ports.transport import Request

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class RequestObserver(Protocol):
    """Observes requests in the threads that send them. Must be fast and must not raise."""

    def attempted(self, request: Request, status: int | None, received: int) -> None:
        """An attempt ended, with a status and the size of the answer in bytes, or with None after a transport error."""

    def retried(self, request: Request, status: int | None) -> None:
        """The last reported attempt was a retry."""

    def throttled(self, request: Request, seconds: float) -> None:
        """The request waited for the throttle."""

    def finished(self, request: Request, seconds: float) -> None:
        """A request other than a watch ended; `seconds` include throttling and retries."""


class Unobserved:
    """Ignores everything."""

    def attempted(self, request: Request, status: int | None, received: int) -> None: ...

    def retried(self, request: Request, status: int | None) -> None: ...

    def throttled(self, request: Request, seconds: float) -> None: ...

    def finished(self, request: Request, seconds: float) -> None: ...


class PrometheusObserver:
    """The `rest_client_*` series of one API server."""

    def __init__(self, registry: CollectorRegistry, server: str) -> None:
        """Register the series, labelled with host and port of a URL as in client-go. One observer per registry."""
        self._host = urlsplit(server).netloc or "none"
        self._requests = Counter(
            "rest_client_requests_total", "Attempts by status code.", ["code", "method", "host"], registry=registry
        )
        self._retries = Counter(
            "rest_client_request_retries_total",
            "Attempts after the first.",
            ["code", "verb", "host"],
            registry=registry,
        )
        self._duration = _histogram(
            "rest_client_request_duration_seconds", "Whole requests, retries included.", _SECONDS, registry
        )
        self._throttled = _histogram(
            "rest_client_rate_limiter_duration_seconds", "Waiting for a token.", _SECONDS, registry
        )
        self._sent = _histogram("rest_client_request_size_bytes", "Bodies sent.", _BYTES, registry)
        self._received = _histogram("rest_client_response_size_bytes", "Bodies received.", _BYTES, registry)

    def attempted(self, request: Request, status: int | None, received: int) -> None:
        """Count the attempt and its bytes."""
        self._requests.labels(_code(status), request.method, self._host).inc()
        self._sent.labels(request.method, self._host).observe(len(request.body or b""))
        if status is not None:
            self._received.labels(request.method, self._host).observe(received)

    def retried(self, request: Request, status: int | None) -> None:
        """Count the retry."""
        self._retries.labels(_code(status), request.method, self._host).inc()

    def throttled(self, request: Request, seconds: float) -> None:
        """Record the wait."""
        self._throttled.labels(request.method, self._host).observe(seconds)

    def finished(self, request: Request, seconds: float) -> None:
        """Record the duration of the whole call."""
        self._duration.labels(request.method, self._host).observe(seconds)


def _histogram(name: str, text: str, buckets: tuple[float, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(name, text, ["verb", "host"], buckets=buckets, registry=registry)


def _code(status: int | None) -> str:
    return "<error>" if status is None else str(status)
