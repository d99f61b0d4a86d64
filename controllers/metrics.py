"""Prometheus metrics of controllers (informers-workqueue.md 8.2), with the names and labels of v1.6."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.registry import CollectorRegistry

from member.outcome import Outcome
from ports.product import METRIC_PREFIX

SyncOutcome = Literal["success", "requeue", "error"]

# fmt: off
_SYNC_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on


class ControllerMetrics:
    """The series of all controllers of one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Also turns off `_created` series for the whole process: prometheus_client has no finer switch (MET-14)."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._controllers: set[str] = set()
        labels = ("controller",)
        self._total = Counter(
            "controller_runtime_reconcile", "Syncs by result.", ("controller", "result"), registry=registry
        )
        self._errors = Counter(
            "controller_runtime_reconcile_errors",
            "Syncs that failed, not counting expected waits.",
            labels,
            registry=registry,
        )
        self._seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long a sync takes.",
            labels,
            registry=registry,
            buckets=_SYNC_SECONDS,
        )
        self._workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers of a controller.", labels, registry=registry
        )
        self._active = Gauge(
            "controller_runtime_active_workers", "Workers that are inside a sync.", labels, registry=registry
        )
        self._throttled = Counter(
            f"{METRIC_PREFIX}_throttled_retries",
            "Retries delayed by the controller's shared rate limit.",
            labels,
            registry=registry,
        )

    def of(self, controller: str) -> "SyncMetrics":
        """The series of one controller, initially 0, so that `rate()` works from the first scrape (MET-10).

        Raises ValueError if another controller has the name, as v1.6's schedules have the name of backups (MET-13).
        """
        if controller in self._controllers:
            raise ValueError(f"controller {controller!r} is already registered: choose another name")
        self._controllers.add(controller)
        return SyncMetrics(
            results={
                "success": self._total.labels(controller, "success"),
                "requeue": self._total.labels(controller, "requeue"),
                "error": self._total.labels(controller, "error"),
            },
            errors=self._errors.labels(controller),
            seconds=self._seconds.labels(controller),
            workers=self._workers.labels(controller),
            active=self._active.labels(controller),
            throttled=self._throttled.labels(controller),
        )


@dataclass(frozen=True, slots=True)
class SyncMetrics:
    """The series of one controller."""

    results: dict[SyncOutcome, Counter]
    errors: Counter
    seconds: Histogram
    workers: Gauge
    active: Gauge
    throttled: Counter

    def set_workers(self, count: int) -> None:
        """Set the number of workers of the controller."""
        self.workers.set(count)

    @contextmanager
    def one_active(self) -> Iterator[None]:
        """Count a worker as active for the duration of the block (MET-12)."""
        self.active.inc()
        try:
            yield
        finally:
            self.active.dec()

    def record(self, outcome: SyncOutcome, seconds: float) -> None:
        """Count a sync and its duration."""
        self.results[outcome].inc()
        self.seconds.observe(seconds)
        if outcome == "error":
            self.errors.inc()

    def record_throttled(self, _seconds: float) -> None:
        """Count a retry that the controller's shared rate limit delayed (RL-9)."""
        self.throttled.inc()


class ObjectMetrics(Protocol):
    """Metrics of single objects of a kind."""

    def note_sync(self, namespace: str, name: str, outcomes: Mapping[str, Outcome]) -> None:
        """Report the outcomes of an object's stages at the end of a sync."""

    def forget(self, namespace: str, name: str) -> None:
        """Remove the series of a deleted object."""


class NoObjectMetrics:
    """No metrics, for kinds that have none."""

    def note_sync(self, namespace: str, name: str, outcomes: Mapping[str, Outcome]) -> None:
        """Do nothing."""

    def forget(self, namespace: str, name: str) -> None:
        """Do nothing."""


NO_OBJECT_METRICS = NoObjectMetrics()
