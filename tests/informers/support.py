"""Common parts of this room's tests."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator

from informers.list_watch import ListWatch
from informers.shared_informer import SharedInformer
from informers.threads import start_thread
from informers.tombstones import DeletedFinalStateUnknown, LastKnown
from kube.objects import Json, Object
from ports.clock import Clock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from tests.informers.fake_source import FakeSource, pod

DEADLINE = 5.0


def as_object(tree: Json) -> Object:
    """A tree as the cache holds it."""
    return Object(json.dumps(tree).encode())


def pod_object(name: str, version: str = "1", namespace: str = "ns", **labels: str) -> Object:
    """A pod of some version as the cache holds it."""
    tree = pod(name, namespace, **labels)
    tree["metadata"]["resourceVersion"] = version
    return as_object(tree)


def eventually(holds: Callable[[], bool], what: str = "") -> None:
    """Wait in real time until something holds that another thread brings about."""
    tick = threading.Event()
    for _ in range(int(DEADLINE / 0.002)):
        if holds():
            return
        tick.wait(0.002)
    raise AssertionError(f"did not happen within {DEADLINE} s: {what or holds}")


class Recorder:
    """A handler that records notifications as short texts: `add ns/a@1`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.initial: list[bool] = []
        self._condition = threading.Condition()

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        self.initial.append(is_in_initial_list)
        self._tell(f"add {_short(obj)}")

    def on_update(self, old: Object, new: Object) -> None:
        self._tell(f"update {_short(old)} {_short(new)}")

    def on_delete(self, obj: LastKnown) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            self._tell(f"tombstone {_short(obj.obj) if obj.obj else obj.key}")
        else:
            self._tell(f"delete {_short(obj)}")

    def wait_for(self, count: int) -> list[str]:
        """Wait for at least `count` notifications; return all of them."""
        with self._condition:
            if not self._condition.wait_for(lambda: len(self.told) >= count, DEADLINE):
                raise AssertionError(f"told {self.told}, expected {count}")
            return list(self.told)

    def _tell(self, text: str) -> None:
        with self._condition:
            self.told.append(text)
            self._condition.notify_all()


def _short(obj: Object) -> str:
    return f"{obj.metadata.name}@{obj.metadata.resource_version}"


def informer_of(source: FakeSource, clock: Clock, resync: float = 0.0, *, streaming: bool = False) -> SharedInformer:
    """An informer of everything a source has."""
    return SharedInformer(
        ListWatch(source.client(), source.resource),
        clock,
        SeededRandomness(1),
        default_resync=resync,
        streaming=streaming,
    )


@contextlib.contextmanager
def running(informer: SharedInformer) -> Iterator[Stop]:
    """Run an informer in a thread while the block runs; it has synced when the block begins."""
    with starting(informer) as stop:
        eventually(informer.has_synced, "sync")
        yield stop


@contextlib.contextmanager
def starting(informer: SharedInformer) -> Iterator[Stop]:
    """Run an informer in a thread while the block runs."""
    stop = Stop()
    thread = start_thread("informer", lambda: informer.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        thread.join(DEADLINE)
    assert not thread.is_alive(), "the informer did not stop"
