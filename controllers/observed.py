"""Objects that are only observed, by annotation: everything is read and decided for them, nothing is written.

Not even their status: who else manages them tells it in its own words, and in v1.6's definitions it is no subresource.
What would be written is reported as by `--observe` (docs/migration.md).
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
import structlog
from prometheus_client import CollectorRegistry, Gauge
from structlog.contextvars import bound_contextvars

from kube.objects import Object
from kube.resources import Resource
from ports.observation import observing
from ports.product import ANNOTATION_PREFIX, METRIC_PREFIX

log = structlog.get_logger(__name__)

OBSERVE = f"{ANNOTATION_PREFIX}/observe"
"""The annotation. Any value but `false` counts: a slip of the pen must not begin to write."""


OnPaused: TypeAlias = Callable[[str], None]
"""Gets the kind and the key of a paused object, e.g. `TidbCluster default/basic`, whose changes are planned."""


class ObservedObjects:
    """Knows which objects are only observed, and says so in the log and in a metric. Safe for use by many threads."""

    def __init__(self, registry: CollectorRegistry, on_paused: OnPaused | None = None) -> None:
        """With `on_paused`, in a process that writes nothing, paused objects are planned for as if they were not."""
        self._on_paused = on_paused
        self._lock = threading.Lock()
        self._known: set[tuple[str, str]] = set()
        self._metric = Gauge(
            f"{METRIC_PREFIX}_observed",
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

    def planned_for(self, resource: Resource, owner: Object | None) -> Object | None:
        """The object to decide for: a paused one is resumed in memory where its changes are to be shown."""
        if owner is None or self._on_paused is None:
            return owner
        tree = owner.decode()
        if tree["spec"].get("paused") is not True:
            return owner
        self._on_paused(f"{resource.kind} {owner.key}")
        return Object(msgspec.json.encode(tree | {"spec": tree["spec"] | {"paused": False}}))

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
