"""Event processing: events per second on one core, latency from the socket to a worker, and time to stop."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from prometheus_client import CollectorRegistry

from bench.figures import note, show
from bench.streams import SENT, EventTransport, line, trees
from informers.handlers import ResourceEventHandlerFuncs
from informers.index import DEFAULT_INDEXERS
from informers.list_watch import ListWatch
from informers.shared_informer import SharedInformer
from kube.client import Client
from kube.config import ClusterConfig
from kube.http_transport import HttpTransport
from kube.resources import PODS
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import Transport
from tests.controlplane.processes import ControlPlane, require_or_reason
from workqueue.metrics import PrometheusQueueMetrics
from workqueue.queue import Queue

_BATCH = 20_000
_EVENTS, _RATE = 5_000, 500
_BEST_OF = 3
_WATCHES = 20
_PATIENCE = 60.0


def main() -> int:
    """Run the suite. 1 if no control plane was built, after the parts that need none."""
    show("watch_events_one_core", max(_events_per_second() for _ in range(_BEST_OF)), 20_000, "events/s", "aim")
    _latency()
    if reason := require_or_reason():
        note(reason)
        return 1
    with tempfile.TemporaryDirectory() as directory:
        control_plane = ControlPlane(Path(directory))
        try:
            control_plane.start_api()
            seconds = [_stop_seconds(control_plane.kubeconfig()) for _ in range(_BEST_OF)]
        finally:
            control_plane.stop()
    show("stop_with_20_watches", median(seconds), 1.0, "s", "aim")
    return 0


def _events_per_second() -> float:
    """Events of 9 KB from memory through client, reflector, queue and store with three indexes to one handler."""
    pods = trees()
    chunks = [line(number, pods) for number in range(_BATCH)]
    note(f"{_BATCH} events of {len(chunks[-1])} bytes")
    handled, everything = 0, threading.Event()

    def count(*_: object) -> None:
        nonlocal handled
        handled += 1
        if handled == _BATCH:
            everything.set()

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        started = time.perf_counter()
        with _following(EventTransport(chunks), ResourceEventHandlerFuncs(count, count)):
            _must(everything.wait(_PATIENCE), "every event to be handled")
            return _BATCH / (time.perf_counter() - started)
    finally:
        os.sched_setaffinity(0, cores)


def _latency() -> None:
    """The latency from another process's socket to the key in a worker."""
    command = [sys.executable, "-m", "bench.streams", str(_EVENTS), str(_RATE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            assert server.stdout
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            latencies = sorted(_measured_latencies(HttpTransport(ClusterConfig(url, "bench"), {}, SystemClock())))
        finally:
            server.kill()
    show("wire_to_worker_p50", median(latencies) * 1000, 1.0, "ms", "aim")
    show("wire_to_worker_p99", quantiles(latencies, n=100)[98] * 1000, 10.0, "ms", "aim")


def _measured_latencies(transport: HttpTransport) -> list[float]:
    queue: Queue[str] = Queue(SystemClock(), name="bench", metrics=PrometheusQueueMetrics(CollectorRegistry()))
    latencies: list[float] = []
    everything = threading.Event()

    def work(informer: SharedInformer) -> None:
        while True:
            key, _ = queue.get()
            if key is None:
                return
            arrived = time.monotonic()  # noqa: TID251  (one clock for two processes)
            pod = informer.store.get_by_key(key)
            queue.done(key)
            if pod is not None:
                latencies.append(arrived - float(pod.metadata.annotations[SENT]))
            if len(latencies) >= _EVENTS * 0.99:
                everything.set()

    handler = ResourceEventHandlerFuncs(lambda obj: queue.add(obj.key), lambda _, obj: queue.add(obj.key))
    with _following(transport, handler) as informer:
        worker = threading.Thread(target=work, args=(informer,), name="worker")
        worker.start()
        try:
            _must(everything.wait(_PATIENCE), "every event to reach the worker")
        finally:
            queue.shut_down()
            worker.join()
            transport.close()
    return latencies


@contextmanager
def _following(transport: Transport, handler: ResourceEventHandlerFuncs) -> Iterator[SharedInformer]:
    stop = Stop()
    informer = SharedInformer(
        ListWatch(Client(transport), PODS), SystemClock(), SystemRandomness(), indexers=DEFAULT_INDEXERS
    )
    informer.add_event_handler(handler)
    thread = threading.Thread(target=informer.run, args=(stop,), name="informer")
    thread.start()
    try:
        yield informer
    finally:
        stop.set()
        thread.join()


def _stop_seconds(kubeconfig: Path) -> float:
    """Seconds from SIGTERM to the exit of a process with open watches."""
    command = [sys.executable, "-m", "bench.watcher", str(kubeconfig), str(_WATCHES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout
            _must(process.stdout.readline() == "watching\n", "the watches to be open")
            started = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            _must(process.wait(_PATIENCE) == 0, "a clean exit")
            return time.perf_counter() - started
        finally:
            process.kill()


def _must(happened: bool, what: str) -> None:
    if not happened:
        raise RuntimeError(f"{what} did not happen")
