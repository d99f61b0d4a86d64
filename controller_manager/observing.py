"""A process that only observes (`--observe`): it works as usual, but reports its writes instead of sending them.

Run beside the operator that manages the clusters, it shows what taking them over would change (docs/migration.md). The
status is left out, because every operator writes it in its own words.
"""

import threading
from collections.abc import Callable, Mapping

import msgspec
import structlog
from prometheus_client import Counter

from kube.dry_run import PlannedWrite
from kube.field_change import first_difference
from kube.objects import Json
from kube.semantic import covers
from ports.clock import Clock
from ports.fencing import OpenFence
from ports.product import METRIC_PREFIX
from ports.stopping import Stop

log = structlog.get_logger(__name__)

_STATUS = "status"
_OF_THE_SERVER = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"})

DRY_RUN: Mapping[str, object] = {"dry_run": True}
"""In each log line: the logged creations and patches were not sent."""

OnPlanned = Callable[[PlannedWrite], None]


class PlannedWrites:
    """Reports each planned write once: in the log, in a metric, and to a callback. Thread-safe."""

    def __init__(self, on_planned: OnPlanned = lambda _: None, on_paused: Callable[[str], None] | None = None) -> None:
        """`on_paused` is the callback of `controllers.observed.ObservedObjects`; `metric` is in no registry yet."""
        self.on_paused = on_paused
        self._on_planned = on_planned
        self._lock = threading.Lock()
        self._known: set[bytes] = set()
        self.metric = Counter(
            f"{METRIC_PREFIX}_planned_writes",
            "Different writes that were left out, with --observe or for objects that are only observed.",
            ["verb", "resource"],
            registry=None,
        )

    def add(self, write: PlannedWrite) -> None:
        """Record a planned write to Kubernetes."""
        before, after = comparable(write.before), comparable(write.after)
        if write.subresource == _STATUS or (write.verb != "delete" and before == after):
            return
        if not self._is_new(msgspec.json.encode([write.verb, write.resource, write.namespace, write.name, after])):
            return
        self.metric.labels(write.verb, write.resource).inc()
        change = first_difference(before or {}, after or {}, "", covers) if before and after else None
        what = {"resource": write.resource, "namespace": write.namespace, "name": write.name}
        log.info("would write", verb=write.verb, **what, **({"change": str(change)} if change else {}))
        self._on_planned(write)

    def add_call(self, method: str, url: str) -> None:
        """Record a planned call of a cluster's component."""
        if self._is_new(msgspec.json.encode([method, url])):
            self.metric.labels(method, "").inc()
            log.info("would call", method=method, url=url)
            self._on_planned(PlannedWrite(method, url, "", "", "", None, None))

    def _is_new(self, key: bytes) -> bool:
        with self._lock:
            is_new = key not in self._known
            self._known.add(key)
        return is_new


def comparable(tree: Json | None) -> Json | None:
    """An object without its status and the server's fields, for comparison."""
    if tree is None:
        return None
    meta = {key: value for key, value in tree["metadata"].items() if key not in _OF_THE_SERVER}
    return {key: value for key, value in tree.items() if key != _STATUS} | {"metadata": meta}


class NoElection:
    """Replaces leader election: an observer needs no Lease, and works immediately beside the leader."""

    def __init__(self, clock: Clock, started: Callable[[], object]) -> None:
        self.lease = OpenFence()
        self._clock = clock
        self._started = started

    def run(self, stop: Stop) -> None:
        """Start, and wait for the end."""
        log.info("only observing: nothing is written")
        self._started()
        stop.wait(self._clock)

    def is_healthy(self) -> bool:
        """Return True: there is no Lease to lose."""
        return True
