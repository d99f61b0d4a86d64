"""Thirty clusters from apply to Ready, a minute of idleness, seventy more, and the start beside the hundred.

The control plane is real; nodes and data plane are the sandbox's, with times close to zero. The peer is v1.6.6,
measured before on a like machine with instant pods and the same 1,000 requests per second.
"""

import time
from dataclasses import dataclass

from bench.figures import note, show
from bench.operator_process import OperatorProcess
from bench.place import Place, awaited, cluster, on_a_place
from kube.resources import TIDB_CLUSTERS

PEER = "v1.6.6, measured before on a like machine"

_SETTLE = 5.0
"""Seconds in which the last events and details of the status arrive."""


@dataclass(frozen=True, slots=True)
class _Peer:
    """What so many clusters cost v1.6.6: seconds, seconds of CPU, MB at most, requests."""

    wall: float
    cpu: float
    memory: float
    requests: int


_STEPS = {30: _Peer(25.6, 5.5, 125, 3853), 100: _Peer(84.5, 15.4, 218, 9160)}
"""How many clusters there are after each step, and the cost of the step."""


def main() -> int:
    """Run all of it. 1 where no control plane was built."""
    return on_a_place(_measure)


def _measure(here: Place) -> None:
    operator = here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        present = 0
        for count, peer in _STEPS.items():
            _bring_up(here, operator, range(present, count), peer)
            if present == 0:
                _idle(operator)
            present = count
    finally:
        operator.stop()
    _start_beside_many(here)


def _bring_up(here: Place, operator: OperatorProcess, numbers: range, peer: _Peer) -> None:
    name = f"bringup_{len(numbers)}"
    before, cpu = operator.requests(), operator.cpu_seconds()
    started = time.monotonic()  # noqa: TID251  (another process is timed)
    for number in numbers:
        here.client.create(TIDB_CLUSTERS, cluster(f"c{number}"), "default")
    awaited(lambda: here.ready() == numbers.stop, f"{numbers.stop} clusters to be Ready")
    show(f"{name}_wall", time.monotonic() - started, peer.wall, "s", PEER)  # noqa: TID251
    time.sleep(_SETTLE)  # noqa: TID251
    show(f"{name}_cpu", operator.cpu_seconds() - cpu, peer.cpu, "s", PEER)
    show(f"{name}_peak_memory", operator.peak_memory(), peer.memory, "MB", PEER)
    spent = operator.requests() - before
    show(f"{name}_requests", spent.total(), peer.requests, "requests", PEER)
    note(f"requests by method: {dict(spent)}")


def _idle(operator: OperatorProcess, seconds: float = 60.0) -> None:
    before, cpu = operator.requests(), operator.cpu_seconds()
    time.sleep(seconds)  # noqa: TID251
    spent = operator.requests() - before
    show("idle_60s_cpu", operator.cpu_seconds() - cpu, 0.96, "s", PEER)
    show("idle_60s_get", spent["GET"], 510, "requests", PEER)
    show("idle_60s_writes", spent.total() - spent["GET"], 60, "requests, Lease renewals not counted", PEER)


def _start_beside_many(here: Place) -> None:
    started = time.monotonic()  # noqa: TID251
    operator = here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        show("start_beside_100_wall", time.monotonic() - started, 2.0, "s", "aim")  # noqa: TID251
        show("start_beside_100_peak_memory", operator.peak_memory(), 150, "MB", "aim")
    finally:
        operator.stop()
