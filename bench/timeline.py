"""Rolling restarts: the times when the operator could continue, and when it did.

It could when a pod became Ready, and when the last region leader had left a store. It did with its next effective
write: to a StatefulSet, to the annotations of a pod, to PD or TiDB.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from dataplane.http_transport import USER_AGENT
from informers.factory import SharedInformerFactory
from informers.handlers import ResourceEventHandlerDetailedFuncs
from kube.objects import Object
from kube.resources import PODS, STATEFUL_SETS
from member.observed.pod import Pod
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop

_LOOK = 0.01
"""Seconds between two checks of the data plane."""


class Timeline:
    """Moments observed from outside, in seconds of the monotonic clock. Written by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[float] = []
        self._steps: list[float] = []

    def waits(self) -> list[float]:
        """Seconds from each moment when the operator could continue until it did, except for the last."""
        with self._lock:
            nexts = [(free, next((step for step in sorted(self._steps) if step > free), None)) for free in self._free]
        return [step - free for free, step in nexts if step is not None]

    def could_go_on(self) -> None:
        """Record that the operator's condition has come true."""
        with self._lock:
            self._free.append(_now())

    def went_on(self) -> None:
        """Record that the operator has written."""
        with self._lock:
            self._steps.append(_now())


@contextmanager
def recorded(here: Place, cluster: str) -> Iterator[Timeline]:
    """The timeline of a place's only cluster within the block."""
    timeline, stop, clock = Timeline(), Stop(), SystemClock()
    factory = SharedInformerFactory(here.client, clock, SystemRandomness(), namespace="default")
    factory.informer_for(PODS).add_event_handler(_of_pods(timeline))
    factory.informer_for(STATEFUL_SETS).add_event_handler(_of_stateful_sets(timeline))
    factory.start(stop)
    factory.wait_for_cache_sync(stop)
    looking = threading.Thread(target=_look, args=(here, cluster, timeline, stop), name="look at the data plane")
    looking.start()
    try:
        yield timeline
    finally:
        stop.set()
        looking.join()
        factory.shutdown()


def _of_pods(timeline: Timeline) -> ResourceEventHandlerDetailedFuncs:
    def on_update(old: Object, new: Object) -> None:
        if new.decode_as(Pod).is_ready and not old.decode_as(Pod).is_ready:
            timeline.could_go_on()
        if new.metadata.annotations != old.metadata.annotations:
            timeline.went_on()

    return ResourceEventHandlerDetailedFuncs(_nothing, on_update, _nothing)


def _of_stateful_sets(timeline: Timeline) -> ResourceEventHandlerDetailedFuncs:
    def on_update(old: Object, new: Object) -> None:
        if new.decode()["metadata"]["generation"] != old.decode()["metadata"]["generation"]:
            timeline.went_on()

    return ResourceEventHandlerDetailedFuncs(_nothing, on_update, _nothing)


def _nothing(*_: object) -> None:
    """Do nothing: objects that come and go do not belong to the operator."""


def _look(here: Place, cluster: str, timeline: Timeline, stop: Stop) -> None:
    data_plane, clock = here.nodes.data_plane, SystemClock()
    asked, left = _asked(here), 0
    while not stop.wait(clock, _LOOK):
        found = data_plane.pd_cluster("default", cluster)
        leaders = (
            sum(store.leaders for store in found.stores.all() if store.id in found.stores.evicting) if found else 0
        )
        if left and not leaders:
            timeline.could_go_on()
        if (now := _asked(here)) != asked:
            timeline.went_on()
        asked, left = now, leaders


def _asked(here: Place) -> int:
    """The number of the operator's writes to the data plane."""
    counts = here.nodes.data_plane.network.counts()
    return sum(times for each, times in counts.items() if each.user_agent == USER_AGENT and each.method != "GET")


def _now() -> float:
    return time.monotonic()  # noqa: TID251  (another process is timed)
