"""Objects that are only observed, by annotation: everything is read and decided for them, nothing is written.

Not even their status: who else manages them tells it in its own words, and in v1.6's definitions it is no subresource.
What would be written is reported as by `--observe` (docs/migration.md).
"""

import contextlib
import threading
from collections.abc import Iterator

import structlog
from prometheus_client import CollectorRegistry, Gauge
from structlog.contextvars import bound_contextvars

from kube.objects import Object
from kube.resources import Resource
from ports.observation import observing

log = structlog.get_logger(__name__)

OBSERVE = "tidb.pingcap.com/observe"
"""The annotation. Any value but `false` counts: a slip of the pen must not begin to write."""


class ObservedObjects:
    """Knows which objects are only observed, and says so in the log and in a metric. Safe for use by many threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._known: set[tuple[str, str]] = set()
        self._metric = Gauge(
            "tidb_operator_observed",
            f"Objects that are only observed, as their annotation {OBSERVE} asks for.",
            ["kind", "namespace", "name"],
            registry=registry,
        )

    @contextlib.contextmanager
    def sync_of(self, resource: Resource, key: str, owner: Object | None) -> Iterator[None]:
        """One sync for an object, None when it is gone: it changes nothing if the object is only observed."""
        only = owner is not None and owner.metadata.annotations.get(OBSERVE, "false") != "false"
        self._note(resource, key, only)
        said = {"dry_run": True} if only else {}
        with observing(only), bound_contextvars(**said):
            yield

    def _note(self, resource: Resource, key: str, only: bool) -> None:
        place, (namespace, _, name) = (resource.kind, key), key.rpartition("/")
        with self._lock:
            if only == (place in self._known):
                return
            if only:
                self._known.add(place)
                self._metric.labels(resource.kind, namespace, name).set(1)
            else:
                self._known.discard(place)
                self._metric.remove(resource.kind, namespace, name)
        log.info("only observing from now on" if only else "not only observing any more", kind=resource.kind, key=key)
