"""Thirty clusters from apply to Ready, a minute of idleness, and the start beside a hundred clusters.

The control plane is real; nodes and data plane are the sandbox's, with times close to zero. The peer is v1.6.6,
measured before on a like machine with instant pods and the same 1,000 requests per second.
"""

import time

from bench.figures import note, show
from bench.operator_process import OperatorProcess
from bench.place import Place, awaited, cluster, on_a_place
from kube.resources import NAMESPACES, TIDB_CLUSTERS

CLUSTERS = 30
PEER = "v1.6.6, measured before on a like machine"


def main() -> int:
    """Run all of it. 1 where no control plane was built."""
    return on_a_place(_measure)


def _measure(here: Place) -> None:
    _bring_up(here)
    _start_beside_many(here)


def _bring_up(here: Place) -> None:
    operator = here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        before, cpu = operator.requests(), operator.cpu_seconds()
        started = time.monotonic()  # noqa: TID251  (another process is timed)
        for number in range(CLUSTERS):
            here.client.create(TIDB_CLUSTERS, cluster(f"c{number}"), "default")
        awaited(lambda: here.ready() == CLUSTERS, f"{CLUSTERS} clusters to be Ready")
        show("bringup_30_wall", time.monotonic() - started, 31.2, "s", PEER)  # noqa: TID251
        show("bringup_30_cpu", operator.cpu_seconds() - cpu, 6.6, "s", PEER)
        show("bringup_30_peak_memory", operator.peak_memory(), 123, "MB", PEER)
        spent = operator.requests() - before
        show("bringup_30_requests", spent.total(), 3995, "requests", PEER)
        note(f"requests by method: {dict(spent)}")
        _idle(operator)
    finally:
        operator.stop()


def _idle(operator: OperatorProcess, seconds: float = 60.0) -> None:
    time.sleep(5)  # noqa: TID251  (let the last events arrive)
    before, cpu = operator.requests(), operator.cpu_seconds()
    time.sleep(seconds)  # noqa: TID251
    spent = operator.requests() - before
    show("idle_60s_cpu", operator.cpu_seconds() - cpu, 1.04, "s", PEER)
    show("idle_60s_get", spent["GET"], 510, "requests", PEER)
    show("idle_60s_writes", spent.total() - spent["GET"], 60, "requests, Lease renewals not counted", PEER)


def _start_beside_many(here: Place, present: int = 100) -> None:
    here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "paused"}})
    for number in range(present - CLUSTERS):
        tree = cluster(f"p{number}")
        tree["spec"]["paused"] = True
        tree["metadata"]["namespace"] = "paused"
        here.client.create(TIDB_CLUSTERS, tree, "paused")
    started = time.monotonic()  # noqa: TID251
    operator = here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        show("start_beside_100_wall", time.monotonic() - started, 2.0, "s", "aim")  # noqa: TID251
        show("start_beside_100_peak_memory", operator.peak_memory(), 150, "MB", "aim")
    finally:
        operator.stop()
