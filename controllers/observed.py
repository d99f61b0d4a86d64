"""Objects with the annotation `observe`: the operator reads and decides for them, but writes nothing.

It does not write their status either: the operator that manages them writes it, and v1.6's definitions have no status
subresource. Writes that the operator holds back are reported as with `--observe` (docs/migration.md).
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
"""The annotation. Any value except `false` turns observation on: a typing error must not start writes."""


OnPaused: TypeAlias = Callable[[str], None]
"""Called with the kind and key of a paused object, e.g. `TidbCluster default/basic`, for which changes are planned."""


class ObservedObjects:
    """Makes syncs of observed objects write nothing, and shows these objects in log and metric. Thread-safe."""

    def __init__(self, registry: CollectorRegistry, on_paused: OnPaused | None = None) -> None:
        """With `on_paused`, in a process that writes nothing, changes of paused objects are planned as well."""
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
        """Hold back the writes of a sync while the block runs if `owner` is only observed; None if it is deleted."""
        only = owner is not None and owner.metadata.annotations.get(OBSERVE, "false") != "false"
        self._note(resource, key, only)
        log_fields = {"dry_run": True} if only else {}
        with observing(only), bound_contextvars(**log_fields):
            yield

    def planned_for(self, resource: Resource, owner: Object | None) -> Object | None:
        """The object to decide for. With `on_paused`, a paused object is resumed in memory, to plan its changes."""
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
        log.info("only observing from now on" if only else "no longer only observing", kind=resource.kind, key=key)
