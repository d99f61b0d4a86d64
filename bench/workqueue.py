"""The work queue with its metrics: one thread, many threads, and 200,000 waiting items.

client-go's figures are from its own benchmarks on a similar machine; the others are targets.
"""

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest

from bench.figures import show
from ports.clock import FakeClock, SystemClock
from workqueue.delaying_queue import DelayingQueue
from workqueue.metrics import PrometheusQueueMetrics
from workqueue.priority_queue import PriorityQueue
from workqueue.queue import Queue
from workqueue.timers import Timers

_KEYS = [f"namespace/cluster-{number}" for number in range(100)]
_WORKERS = 5
_WAITING = 200_000
_BEST_OF = 5
_PAGE_MB = 4096 / 1e6


def main() -> int:
    """Run the suite."""
    for kind, make in _KINDS.items():
        show(f"{kind}_add_get_done", min(_one_thread(make) for _ in range(_BEST_OF)), 6.0, "us", "aim; client-go 0.2")
        fastest = max(_many_threads(make) for _ in range(_BEST_OF))
        show(f"{kind}_1_producer_5_workers", fastest, 50_000, "items/s", "aim")
    _delayed()
    return 0


def _queue(registry: CollectorRegistry) -> Queue[str]:
    return Queue(SystemClock(), name="bench", metrics=PrometheusQueueMetrics(registry))


def _priority_queue(registry: CollectorRegistry) -> PriorityQueue[str]:
    return PriorityQueue(Timers(SystemClock()), name="bench", metrics=PrometheusQueueMetrics(registry))


_AnyQueue: TypeAlias = Queue[str] | PriorityQueue[str]
_Make: TypeAlias = Callable[[CollectorRegistry], _AnyQueue]
_KINDS: dict[str, _Make] = {"queue": _queue, "priority_queue": _priority_queue}


def _one_thread(make: _Make, rounds: int = 500) -> float:
    """Microseconds to add, get and finish an item."""
    registry = CollectorRegistry()
    queue = make(registry)
    started = time.perf_counter()
    for _ in range(rounds):
        for key in _KEYS:
            queue.add(key)
        for _ in _KEYS:
            item, _ = queue.get()
            assert item is not None
            queue.done(item)
    seconds = time.perf_counter() - started
    assert registry.get_sample_value("workqueue_adds_total", {"name": "bench"}) == rounds * len(_KEYS)
    return seconds / (rounds * len(_KEYS)) * 1e6


def _many_threads(make: _Make, items: int = 100_000) -> float:
    """Items per second from one producer through five workers, all different."""
    registry = CollectorRegistry()
    queue = make(registry)
    threads = [threading.Thread(target=_work, args=(queue,), name=f"worker-{number}") for number in range(_WORKERS)]
    for thread in threads:
        thread.start()
    started = time.perf_counter()
    for number in range(items):
        queue.add(f"namespace/cluster-{number}")
    queue.shut_down_with_drain()
    seconds = time.perf_counter() - started
    for thread in threads:
        thread.join()
    assert b"workqueue_work_duration_seconds_count" in generate_latest(registry)
    return items / seconds


def _work(queue: _AnyQueue) -> None:
    while True:
        item, ended = queue.get()
        if ended or item is None:
            return
        queue.done(item)


def _delayed() -> None:
    """The cost of an item among 200,000 waiting ones, from add_after to the ready queue."""
    clock = FakeClock()
    timers = Timers(clock)
    queue: DelayingQueue[str] = DelayingQueue(timers, name="bench", metrics=PrometheusQueueMetrics(CollectorRegistry()))
    items = [f"namespace/cluster-{number}" for number in range(_WAITING)]
    gc.collect()
    memory = _resident_mb()
    started = time.perf_counter()
    for number, item in enumerate(items):
        # spread over ten minutes, unordered
        queue.add_after(item, 1.0 + number * 7919 % 600_000 / 1000)
    seconds = time.perf_counter() - started
    show("queue_200000_waiting_memory", _resident_mb() - memory, None, "MB")
    clock.step(601.0)
    started = time.perf_counter()
    timers.fire_due()
    seconds += time.perf_counter() - started
    assert len(queue) == _WAITING
    show("queue_add_after_and_fire", seconds / _WAITING * 1e6, 20.0, "us", "aim; client-go 5.6")


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * _PAGE_MB
