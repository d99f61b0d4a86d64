"""A hundred clusters, five of them with a black-holed PD: how long the others wait for a change (reliability.md R31).

Measures the time from the answer to the user's patch to the operator's first write for it, one change after another,
while five workers also handle the silent clusters.
"""

import statistics
import time

from bench.figures import note, show
from bench.place import Place, awaited, cluster, on_a_place
from kube.client import Client
from kube.resources import SERVICES, TIDB_CLUSTERS
from sandbox.dataplane.faults import Fault, Trouble

_CLUSTERS = 100
_SILENT = 5
_CHANGES = 300
_PAUSE = 0.2
"""Seconds between two changes."""


def main() -> int:
    """Run it. 1 if no control plane was built."""
    return on_a_place(_measure)


def _measure(here: Place) -> None:
    operator = here.operator("--workers=5")
    try:
        awaited(operator.leads, "the operator to lead")
        for number in range(_CLUSTERS):
            here.client.create(TIDB_CLUSTERS, cluster(f"c{number}", pd=1, tikv=1, tidb=1), "default")
        here.await_ready(_CLUSTERS, within=600.0)
        before = _waits(here)
        for number in range(_SILENT):
            target = f"default/c{number}-pd-*"
            here.nodes.data_plane.network.inject(Fault(Trouble.BLACK_HOLE, target=target, origin="/"))
        during = _waits(here)
    finally:
        operator.stop()
    note(f"{_CHANGES} changes each; without silent clusters p50 {percentile(before, 50):.3f} s")
    show("isolation_p50", percentile(during, 50), percentile(before, 50), "s", "the same without silent clusters")
    show("isolation_p99", percentile(during, 99), 1.0, "s", "aim")
    show("isolation_longest", max(during), max(before), "s", "the same without silent clusters")


def _waits(here: Place) -> list[float]:
    """The wait after each change, in seconds."""
    return [change(here.client, f"c{_SILENT + number % (_CLUSTERS - _SILENT)}", number) for number in range(_CHANGES)]


def change(client: Client, name: str, number: int) -> float:
    """Change a cluster; return the seconds from the answer to the operator's first write. Raises TimeoutError."""
    value = str(time.monotonic_ns())
    patch = {"spec": {"pd": {"service": {"labels": {"change": value}}}}}
    client.patch(TIDB_CLUSTERS, name, "default", patch)
    started = time.monotonic()  # noqa: TID251

    def arrived() -> bool:
        labels = client.get(SERVICES, f"{name}-pd", "default").metadata.labels
        return labels.get("change") == value

    awaited(arrived, f"change {number} of {name}", every=0.005)
    wait = time.monotonic() - started  # noqa: TID251
    time.sleep(_PAUSE)  # noqa: TID251
    return wait


def percentile(waits: list[float], percent: int) -> float:
    """A percentile of at least two waits."""
    return statistics.quantiles(waits, n=100)[percent - 1]
