"""Thirty clusters from apply to Ready, an idle minute, seventy more, and a restart beside the hundred.

The control plane is real; nodes and data plane are the sandbox's, with times close to zero. Their own CPU time
(`kubernetes_cpu`) is beyond any operator's control and, on two cores, most of the wall time. The peer is v1.6.6:
alternating with this operator if it was built (`make upstream`), otherwise measured earlier on a similar machine, as
are its requests. A figure is the median of three rounds, because single ones differ by a third.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Protocol, TypeAlias

from bench.figures import logs_to_stderr, note, show
from bench.operator_process import Cost
from bench.place import QPS, Place, awaited, cluster, on_a_place
from kube.resources import TIDB_CLUSTERS
from tests.e2e import upstream

_ROUNDS = 3
_STEPS = (30, 100)
"""The number of clusters after each step."""

_MEASURED_BEFORE: Mapping[str, float] = MappingProxyType(
    {
        "bringup_30_wall": 25.6,
        "bringup_30_cpu": 5.5,
        "bringup_30_peak_memory": 125,
        "bringup_30_requests": 3853,
        "idle_60s_cpu": 0.96,
        "idle_60s_get": 510,
        "idle_60s_writes": 60,
        "bringup_70_wall": 84.5,
        "bringup_70_cpu": 15.4,
        "bringup_70_peak_memory": 218,
        "bringup_70_requests": 9160,
    }
)

_AIMS: Mapping[str, float] = MappingProxyType({"start_beside_100_wall": 2.0, "start_beside_100_peak_memory": 150})

_UNITS = {"wall": "s", "cpu": "s", "kubernetes_cpu": "s", "peak_memory": "MB"}

_SETTLE = 15.0
"""Seconds for the last events and status details, which are delayed by up to ten."""

_Figures: TypeAlias = Iterator[tuple[str, float]]


class _Operator(Protocol):
    """A running process."""

    cost: Cost

    def requests(self) -> Counter[str]:
        """The requests to the API server so far, by HTTP method."""


def main() -> int:
    """Run everything, alternating the operators. 1 if no control plane was built."""
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(1, _ROUNDS + 1):
        note(f"round {number} of {_ROUNDS}")
        try:
            theirs += _apart(_theirs) if upstream.BINARY.exists() else []
        except TimeoutError as error:
            note(f"v1.6.6 is left out of this round: {error}")
        ours += _apart(_ours)
    if not ours:
        return 1
    peer, source = _MEASURED_BEFORE, "v1.6.6, measured before on a like machine"
    if theirs:
        # v1.6's metrics do not count requests
        measured = {name: value for name, value in _medians(theirs).items() if name.endswith(tuple(_UNITS))}
        peer, source = {**_MEASURED_BEFORE, **measured}, "v1.6.6 in turns with us, its requests measured before"
    for name, value in _medians(ours).items():
        unit = next((unit for what, unit in _UNITS.items() if name.endswith(what)), "requests")
        show(name, value, *((_AIMS[name], unit, "aim") if name in _AIMS else (peer.get(name), unit, source)))
    return 0


def _apart(measure: Callable[[], dict[str, float]]) -> list[dict[str, float]]:
    """Measure in a separate process, so that the remains of earlier rounds do not matter."""
    with ProcessPoolExecutor(1, get_context("spawn"), logs_to_stderr) as process:
        found = process.submit(measure).result()
    return [found] if found else []


def _medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: median(run[name] for run in runs) for name in runs[0]}


def _ours() -> dict[str, float]:
    """The figures of one round; none if no control plane was built."""
    found: dict[str, float] = {}
    on_a_place(lambda here: found.update(_of_ours(here)))
    return found


def _of_ours(here: Place) -> _Figures:
    operator = here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        yield from _told("ours", _figures(here, operator))
    finally:
        operator.stop()
    yield from _told("ours", _start_beside_many(here))


def _told(who: str, figures: _Figures) -> _Figures:
    for name, value in figures:
        note(f"{who}: {name} {value:.2f}")
        yield name, value


def _theirs() -> dict[str, float]:
    """The figures of v1.6."""
    found: dict[str, float] = {}
    on_a_place(lambda here: found.update(_of_theirs(here)), status_subresource=False)
    return found


class _Theirs:
    """v1.6, whose metrics do not count requests."""

    def __init__(self, pid: int) -> None:
        self.cost = Cost(pid)

    def requests(self) -> Counter[str]:
        return Counter()


def _of_theirs(here: Place) -> _Figures:
    environment = {"KUBECONFIG": str(here.control_plane.kubeconfig()), "NAMESPACE": "default", "HTTP_PROXY": here.proxy}
    clusters = [("default", f"c{number}") for number in range(_STEPS[-1])]
    with (
        tempfile.TemporaryDirectory() as directory,
        upstream.running(Path(directory), environment, clusters, *QPS) as v16,
    ):
        awaited(lambda: "became leader" in v16.said or "successfully acquired lease" in v16.said, "v1.6 to lead")
        yield from _told("v1.6.6", _figures(here, _Theirs(v16.process.pid)))


def _figures(here: Place, operator: _Operator) -> _Figures:
    """The cost of each step."""
    present = 0
    for count in _STEPS:
        yield from _bring_up(here, operator, range(present, count))
        if present == 0:
            yield from _idle(operator)
        present = count


def _bring_up(here: Place, operator: _Operator, numbers: range) -> _Figures:
    name = f"bringup_{len(numbers)}"
    before, cpu, beside = operator.requests(), operator.cost.cpu_seconds(), here.cpu_seconds()
    started = time.monotonic()  # noqa: TID251  (another process is timed)
    for number in numbers:
        here.client.create(TIDB_CLUSTERS, cluster(f"c{number}"), "default")
    here.await_ready(numbers.stop)
    yield f"{name}_wall", time.monotonic() - started  # noqa: TID251
    yield f"{name}_kubernetes_cpu", here.cpu_seconds() - beside
    time.sleep(_SETTLE)  # noqa: TID251
    yield f"{name}_cpu", operator.cost.cpu_seconds() - cpu
    yield f"{name}_peak_memory", operator.cost.peak_memory()
    spent = operator.requests() - before
    yield f"{name}_requests", spent.total()
    note(f"requests by method: {dict(spent)}")


def _idle(operator: _Operator, seconds: float = 60.0) -> _Figures:
    """The cost of an idle period; lease renewals are not counted as writes."""
    before, cpu = operator.requests(), operator.cost.cpu_seconds()
    time.sleep(seconds)  # noqa: TID251
    # before the metrics are read, which also costs CPU
    yield "idle_60s_cpu", operator.cost.cpu_seconds() - cpu
    spent = operator.requests() - before
    yield "idle_60s_get", spent["GET"]
    yield "idle_60s_writes", spent.total() - spent["GET"]


def _start_beside_many(here: Place) -> _Figures:
    started = time.monotonic()  # noqa: TID251
    operator = here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        yield "start_beside_100_wall", time.monotonic() - started  # noqa: TID251
        yield "start_beside_100_peak_memory", operator.cost.peak_memory()
    finally:
        operator.stop()
