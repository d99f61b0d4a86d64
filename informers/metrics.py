"""Metrics of informers (informers-workqueue.md 8.4, MET-20, MET-21).

A scrape reads gauges from the informers' state, so the hot path only counts events and failures.
"""

import threading
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kube.resources import Resource

LIST_SUCCESS = "success"
LIST_STREAMED = "streamed"
LIST_EXPIRED = "expired"
LIST_ERROR = "error"

WATCH_TIMEOUT = "timeout"
WATCH_EXPIRED = "expired"
WATCH_ERROR = "error"
WATCH_VERY_SHORT = "very_short"
WATCH_STOPPED = "stopped"

_LATENCY_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_VERSION_DIGITS = 15
"""Digits of a resourceVersion that a float64 sample can hold exactly."""


class InformerMetrics:
    """The metric families of all informers of a process. Publishes nothing without a registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        identity = ("name", "group", "version", "resource")
        handler = ("resource", "handler")
        self._lock = threading.Lock()
        self._claimed: set[tuple[str, Resource]] = set()
        self.lists = Counter("informer_lists_total", "Lists by result", ("resource", "result"), registry=registry)
        self.watches = Counter(
            "informer_watches_total", "Ended watches by reason", ("resource", "reason"), registry=registry
        )
        self.last_event = Gauge(
            "informer_last_event_timestamp_seconds", "Time of the last watch event", ("resource",), registry=registry
        )
        self.pending = Gauge(
            "informer_handler_pending", "Notifications waiting for a handler", handler, registry=registry
        )
        self.failures = Counter(
            "informer_handler_failures_total", "Exceptions raised by a handler", handler, registry=registry
        )
        self.index_failures = Counter(
            "informer_index_failures_total",
            "Objects for which an index function raised",
            ("resource", "index"),
            registry=registry,
        )
        self.unreadable = Counter(
            "informer_unreadable_objects_total",
            "Items of lists and watch events that were skipped, because they are no objects or cannot be stored",
            ("resource",),
            registry=registry,
        )
        self.queued = Gauge("informer_queued_items", "Deltas waiting for the store", identity, registry=registry)
        self.latency = Histogram(
            "informer_processing_latency_seconds",
            "Time from taking a delta to having filled the buffers of all handlers",
            identity,
            registry=registry,
            buckets=_LATENCY_BUCKETS,
        )
        self.store_version = Gauge(
            "informer_store_resource_version",
            "The last 15 digits of the store's resourceVersion",
            identity,
            registry=registry,
        )

    def claim(self, name: str, resource: Resource) -> "ResourceMetrics":
        """The metrics of one informer; a second informer with this name and resource publishes nothing (MET-21)."""
        with self._lock:
            taken = (name, resource) in self._claimed
            self._claimed.add((name, resource))
        return ResourceMetrics(InformerMetrics() if taken else self, name, resource)

    def release(self, name: str, resource: Resource) -> None:
        """Let another informer claim this name and resource."""
        with self._lock:
            self._claimed.discard((name, resource))


class ResourceMetrics:
    """The metrics of one informer, with its labels filled in."""

    def __init__(self, families: InformerMetrics, name: str, resource: Resource) -> None:
        self._families = families
        self._name = name
        self._of = resource
        self._resource = str(resource)
        self._identity = (name, resource.group, resource.version, resource.plural)
        self._last_event = families.last_event.labels(self._resource)
        self._latency = families.latency.labels(*self._identity)
        self._unreadable = families.unreadable.labels(self._resource)
        self._lock = threading.Lock()
        self._shown: dict[str, Callable[[], int]] = {}

    def list_ended(self, result: str) -> None:
        """Count a list, by one of the LIST_ results."""
        self._families.lists.labels(self._resource, result).inc()

    def watch_ended(self, reason: str) -> None:
        """Count a watch, by one of the WATCH_ reasons."""
        self._families.watches.labels(self._resource, reason).inc()

    def event_received(self, timestamp: float) -> None:
        """Note a watch event, in seconds since the epoch."""
        self._last_event.set(timestamp)

    def objects_skipped(self, count: int) -> None:
        """Count items that are not objects of the resource."""
        self._unreadable.inc(count)

    def delta_processed(self, seconds: float) -> None:
        """Observe the seconds that a delta took."""
        self._latency.observe(seconds)

    def index_failed(self, index: str) -> None:
        """Count an exception of an index function."""
        self._families.index_failures.labels(self._resource, index).inc()

    def handler_failed(self, handler: str) -> None:
        """Count an exception of a handler."""
        self._families.failures.labels(self._resource, handler).inc()

    def show_handler(self, handler: str, pending: Callable[[], int]) -> None:
        """Publish the number of notifications that wait for a handler, and its failures starting at 0."""
        with self._lock:
            self._shown[handler] = pending
            self._families.pending.labels(self._resource, handler).set_function(pending)
        self._families.failures.labels(self._resource, handler)

    def hide_handler(self, handler: str, pending: Callable[[], int]) -> None:
        """Stop publishing `pending`, unless a newer handler has taken the name."""
        with self._lock:
            if self._shown.get(handler) == pending:
                del self._shown[handler]
                self._families.pending.remove(self._resource, handler)

    def show_state(self, queued: Callable[[], int], resource_version: Callable[[], str]) -> None:
        """Publish the queue's length and the store's version."""
        self._families.queued.labels(*self._identity).set_function(queued)
        self._families.store_version.labels(*self._identity).set_function(lambda: _as_number(resource_version()))

    def release(self) -> None:
        """Stop publishing the state of an informer that has stopped."""
        self._families.queued.remove(*self._identity)
        self._families.store_version.remove(*self._identity)
        self._families.release(self._name, self._of)


def _as_number(resource_version: str) -> int:
    digits = resource_version[-_VERSION_DIGITS:]
    return int(digits) if digits.isdecimal() else 0
