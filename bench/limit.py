"""The number of clusters that one process can manage: it doubles until a change waits for two seconds.

The clusters are at rest, copies of one of 3/3/2 (`bench.copied_clusters`), and change one after another.
"""

import os
import tempfile
from pathlib import Path

from bench.copied_clusters import CopiedClusters, copied, first_cluster
from bench.figures import note
from bench.thousand import Suite

_FIRST = int(os.environ.get("LIMIT_FROM", "1000"))
_LARGEST = 8000
"""Names of clusters have four digits, and this number needs 6 GB of memory with the sandbox's API server."""
_LIMIT = 2.0
"""Seconds from a change to the operator's first write, in the 99th percentile."""


def main() -> int:
    """Run it."""
    count = _FIRST
    with tempfile.TemporaryDirectory() as directory, first_cluster(Path(directory)) as world:
        while count <= _LARGEST:
            with copied(world, count) as clusters:
                longest = _measured(clusters, count)
            if longest > _LIMIT:
                return 0
            count *= 2
    note(f"with {_LARGEST} clusters the limit is not reached")
    return 0


def _measured(clusters: CopiedClusters, count: int) -> float:
    """The 99th percentile of the waits."""
    suite = Suite(clusters, count, "limit")
    operator = suite.start()
    try:
        suite.idle(operator)
        suite.show("memory", operator.cost.memory(), None, "MB")
        return suite.change()
    finally:
        operator.stop()
