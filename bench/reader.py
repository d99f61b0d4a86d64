"""`python -m bench.reader KIND KUBECONFIG RESOURCE`: read one resource in a fresh process and say what it cost.

KIND is `ours` (a full informer with its indexes), `raw` (the same download, thrown away) or `kubernetes` (the package's
typed list; pods only). The line of JSON has the wall time of the reading, and CPU time and peak memory (VmHWM) of the
whole process, imports included; for `ours` also the longest stop of a thread that wakes as a lease renewal would.
"""

import json
import re
import resource as usage
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import logs_to_stderr
from informers.factory import SharedInformerFactory
from kube.config import load_kubeconfig
from kube.connecting import connect
from kube.http_transport import HttpTransport
from kube.resources import PODS, TIDB_CLUSTERS
from kube.user_config import load
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import Request

_RESOURCES = {"pods": PODS, "tidbclusters": TIDB_CLUSTERS}
_TICK = 0.005


def main() -> int:
    """Read, and print one line."""
    logs_to_stderr()
    kind, kubeconfig, plural = sys.argv[1:]
    print(json.dumps(_READERS[kind](kubeconfig, plural) | _cost()))  # noqa: T201  (this is the output)
    return 0


def _ours(kubeconfig: str, plural: str) -> dict[str, float]:
    clock, stop = SystemClock(), Stop()
    lease = _LeaseLikeThread()
    lease.start()
    started = clock.now()
    connection = connect(load(kubeconfig, {}, clock), {}, clock, stop)
    factory = SharedInformerFactory(connection.client, clock, SystemRandomness())
    informer = factory.informer_for(_RESOURCES[plural])
    factory.start(stop)
    synced = all(factory.wait_for_cache_sync(stop, 300.0).values())
    seconds = clock.now() - started
    lease.finish()
    stopping = clock.now()
    stop.set()
    connection.transport.close()
    factory.shutdown()
    assert synced, f"{plural} did not sync"
    return {
        "seconds": seconds,
        "objects": len(informer.store),
        "longest_stop": lease.longest_stop,
        "stop_seconds": clock.now() - stopping,
    }


def _raw(kubeconfig: str, plural: str) -> dict[str, float]:
    clock = SystemClock()
    started = clock.now()
    transport = HttpTransport(load_kubeconfig(kubeconfig, clock), {}, clock)
    path = _RESOURCES[plural].path() + "?resourceVersion=0"
    stream = transport.stream(Request("GET", path, {"accept": "application/json"}, timeout=60.0), idle_timeout=60.0)
    received = sum(map(len, stream))
    seconds = clock.now() - started
    stream.close()
    transport.close()
    return {"seconds": seconds, "megabytes": received / 1e6}


def _kubernetes(kubeconfig: str, plural: str) -> dict[str, float]:
    from kubernetes import client, config  # noqa: PLC0415  (half a second and 60 MB that ours must not pay)

    assert plural == "pods", "the package has typed models of built-in resources only"
    clock = SystemClock()
    started = clock.now()
    config.load_kube_config(kubeconfig)  # type: ignore[no-untyped-call]
    listed = client.CoreV1Api().list_pod_for_all_namespaces(resource_version="0")
    return {"seconds": clock.now() - started, "objects": len(listed.items)}


_READERS: dict[str, Callable[[str, str], dict[str, float]]] = {"ours": _ours, "raw": _raw, "kubernetes": _kubernetes}


class _LeaseLikeThread(threading.Thread):
    """Wakes every few milliseconds and records the largest delay."""

    def __init__(self) -> None:
        super().__init__(name="lease-like")
        self.longest_stop = 0.0
        self._ended = threading.Event()

    def run(self) -> None:
        before = time.monotonic()  # noqa: TID251  (lateness in real time is what is measured)
        while not self._ended.wait(_TICK):
            now = time.monotonic()  # noqa: TID251
            self.longest_stop = max(self.longest_stop, now - before - _TICK)
            before = now

    def finish(self) -> None:
        self._ended.set()
        self.join()


def _cost() -> dict[str, float]:
    spent = usage.getrusage(usage.RUSAGE_SELF)
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"), re.MULTILINE)
    assert found, "/proc/self/status has no VmHWM"
    return {"cpu_seconds": spent.ru_utime + spent.ru_stime, "peak_mb": int(found[1]) / 1024}


if __name__ == "__main__":
    sys.exit(main())
