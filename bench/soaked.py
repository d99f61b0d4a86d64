"""`python -m bench.soaked KUBECONFIG`: the process under test of a soak.

A full and a metadata-only informer on all ConfigMaps, a queue and two workers that record the cached objects. Each line
on stdin requests a line of JSON: `sample` for the state of the process, `check` also for a comparison with the server.
The end of stdin ends it.
"""

import json
import os
import re
import sys
import threading
from pathlib import Path

from prometheus_client import CollectorRegistry

from bench.figures import logs_to_stderr
from informers.consistency import digest
from informers.factory import SharedInformerFactory
from informers.handlers import ResourceEventHandlerFuncs
from informers.metrics import LIST_SUCCESS, InformerMetrics
from informers.tombstones import LastKnown
from kube.client import Client
from kube.config import load_kubeconfig
from kube.errors import ApiError
from kube.http_transport import HttpTransport
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import TransportError
from workqueue.queue import Queue

_RESYNC = 30.0
_SILENCE = 10.0
"""Seconds without an answer or event after which a connection counts as dead; long for the pace of a soak."""
_WORKERS = 2


class _Worked:
    """The last object that workers saw, as in a controller: key from the event, state from the cache."""

    def __init__(self, factory: SharedInformerFactory) -> None:
        self.versions: dict[str, str] = {}
        self._store = factory.informer_for(CONFIG_MAPS).store
        self._queue: Queue[str] = Queue(SystemClock())
        factory.informer_for(CONFIG_MAPS).add_event_handler(
            ResourceEventHandlerFuncs(self._add, lambda _, new: self._add(new), self._add)
        )
        self._threads = [threading.Thread(target=self._work, name=f"worker-{n}") for n in range(_WORKERS)]
        for thread in self._threads:
            thread.start()

    def _add(self, obj: LastKnown) -> None:
        self._queue.add(obj.key)

    def _work(self) -> None:
        while (key := self._queue.get()[0]) is not None:
            obj = self._store.get_by_key(key)
            if obj is None:
                self.versions.pop(key, None)
            else:
                self.versions[key] = obj.metadata.resource_version
            self._queue.done(key)

    def stop(self) -> None:
        self._queue.shut_down()
        for thread in self._threads:
            thread.join()


def main() -> int:
    """Run until stdin ends; 1 if a thread did not end."""
    logs_to_stderr()
    clock, stop, registry = SystemClock(), Stop(), CollectorRegistry()
    transport = HttpTransport(load_kubeconfig(sys.argv[1], clock), {}, clock)
    retrying = RetryingTransport(transport, clock, Throttle(Rate(), clock), stop)
    client = Client(retrying, timeout=_SILENCE, watch_silence=_SILENCE)
    metrics = InformerMetrics(registry)
    full, bare = (
        SharedInformerFactory(
            client,
            clock,
            SystemRandomness(),
            default_resync=_RESYNC,
            metrics=metrics,
            name="metadata" if metadata_only else "full",
            metadata_only=metadata_only,
        )
        for metadata_only in (False, True)
    )
    worked = _Worked(full)
    caches = {"full": full, "metadata": bare}
    try:
        for factory in caches.values():
            factory.informer_for(CONFIG_MAPS)
            factory.start(stop)
            factory.wait_for_cache_sync(stop)
        for line in sys.stdin:
            answer: dict[str, object] = _sample(registry, len(full.informer_for(CONFIG_MAPS).store))
            if line.strip() == "check":
                answer |= _check(caches, worked)
            print(json.dumps(answer), flush=True)  # noqa: T201  (for the parent)
    finally:
        stop.set()
        transport.close()
        ended = [factory.shutdown() for factory in caches.values()]
        worked.stop()
    return 0 if all(ended) else 1


def _sample(registry: CollectorRegistry, objects: int) -> dict[str, object]:
    resident = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"), re.MULTILINE)
    assert resident, "/proc/self/status has no VmRSS"
    samples = [sample for family in registry.collect() for sample in family.samples]
    lists = {s.labels["result"]: int(s.value) for s in samples if s.name == "informer_lists_total"}
    watches = {s.labels["reason"]: int(s.value) for s in samples if s.name == "informer_watches_total"}
    return {
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "resident_mb": int(resident[1]) / 1024,
        "objects": objects,
        "lists": lists.get(LIST_SUCCESS, 0),
        "lists_by_result": lists,
        "watches_by_reason": watches,
    }


def _check(caches: dict[str, SharedInformerFactory], worked: _Worked) -> dict[str, object]:
    """Compare each cache with the server, and the workers' objects with the cache."""
    stores = {name: factory.informer_for(CONFIG_MAPS).store.list() for name, factory in caches.items()}
    return {
        "digests": {name: digest(objects) for name, objects in stores.items()},
        "differences": {name: each for name, factory in caches.items() if (each := _difference(factory))},
        "unworked": len(set(worked.versions.items()) ^ set(map(_state, stores["full"]))),
    }


def _difference(factory: SharedInformerFactory) -> str:
    """The difference between a cache and the server, or why it is unknown yet; empty if there is none."""
    try:
        return str(factory.check_consistency()[CONFIG_MAPS] or "")
    except (ApiError, TransportError) as error:
        # a cache that is still behind the server's history, or an idle connection that died silently
        return str(error)


def _state(obj: Object) -> tuple[str, str]:
    return obj.key, obj.metadata.resource_version


if __name__ == "__main__":
    sys.exit(main())
