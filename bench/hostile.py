"""Clusters whose servers are hostile: how long another cluster waits for a change (reliability.md R31).

Measures the time from the answer to the user's patch to the operator's first write for it, one change after another.
First all servers are honest, and 34 clusters are changed at once. Then their servers answer as no server should, and
the clusters are changed again. In the end the operator knows which clusters are slow. The operator may use 256 MiB,
which the kernel enforces (RLIMIT_DATA); it fails if that is not so, or if the operator has ended.

The honest servers and the API server share this process; the hostile servers have one of their own.
"""

import os
import re
import tempfile
from pathlib import Path

from bench.figures import note, show
from bench.isolation import percentile
from bench.operator_process import Cost
from tests.security.hostile_clusters import MOST_MEMORY, Scene, scene, wait_for_change

_CHANGES = 100
_MIB = 1 << 20
_AT_FIRST = 10
"""The changes in the first seconds after 34 clusters have been changed, when no cluster is known to be slow."""


def main() -> int:
    """Measure the waits and the memory, and print the figures; 1 if the operator did not survive within its limit."""
    with tempfile.TemporaryDirectory() as directory, scene(Path(directory)) as here:
        honest = _waits(here, _CHANGES)
        here.change_all("error", 3)
        busy = _waits(here, _AT_FIRST)
        here.await_ready()
        queued = _queued(here)
        here.turn()
        first = _waits(here, _AT_FIRST)
        seconds, keys = (now - then for now, then in zip(_queued(here), queued, strict=True))
        before = Cost(here.operator.pid).cpu_seconds()
        later = _waits(here, _CHANGES)
        spent = Cost(here.operator.pid).cpu_seconds() - before
        survived = here.operator.is_running and here.operator.most_data == MOST_MEMORY
        memory = here.operator.peak_memory / _MIB
    peer = "the same with honest servers"
    note(f"{len(here.network.modes)} hostile clusters; {spent:.1f} s of CPU; load {os.getloadavg()[0]:.1f}")
    show("hostile_first_longest", max(first), max(busy), "s", peer)
    show("hostile_first_queued", seconds / keys, None, "s", "")
    show("hostile_p50", percentile(later, 50), percentile(honest, 50), "s", peer)
    show("hostile_p99", percentile(later, 99), percentile(honest, 99), "s", peer)
    show("hostile_longest", max(later), 2.0, "s", "aim")
    show("hostile_peak_memory", memory, MOST_MEMORY / _MIB, "MiB", "limit")
    return 0 if survived else 1


def _queued(here: Scene) -> tuple[float, float]:
    """The seconds that all keys of TidbClusters have waited for a worker, and the number of these keys."""
    _, page = here.operator.page("/metrics")
    found = dict(re.findall(r'^workqueue_queue_duration_seconds_(\w+){name="tidbcluster"} (.*)$', page, re.MULTILINE))
    return float(found["sum"]), float(found["count"])


def _waits(here: Scene, count: int) -> list[float]:
    """The wait after each change, in seconds."""
    return [wait_for_change(here.client) for _ in range(count)]
