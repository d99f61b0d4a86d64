"""A thousand clusters of 3/3/2: start, memory, idleness, changes (also beside rolls), and the loss of one of 3 shards.

In front of the sandbox's API server they are copies of one cluster (`bench.copied_clusters`), THOUSAND_CLUSTERS of
them; on the real control plane THOUSAND_REAL are brought up, pod by pod. In both the operator is a separate process
with its usual flags.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.copied_clusters import copied, first_cluster, name_of
from bench.figures import note, show
from bench.isolation import change, percentile
from bench.operator_process import OperatorProcess
from bench.place import QUICK, Place, awaited, cluster, on_a_place
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import SERVICES, TIDB_CLUSTERS
from kube.sharding import shard_of
from sandbox.conditions import holds

_COPIED = int(os.environ.get("THOUSAND_CLUSTERS", "1000"))
_REAL = int(os.environ.get("THOUSAND_REAL", "300"))
_CHANGES = int(os.environ.get("THOUSAND_CHANGES", "200"))
_ROLLS = 100
"""The number of clusters that restart all pods while other clusters change; at most a third of all."""
_BURST = 10.0
"""Seconds in which the operator begins all rolls."""
_IDLE = 60.0
_PODS_OF_A_NODE = 100
_AT_ONCE = 30
"""The number of clusters brought up concurrently."""
_PATIENT = replace(QUICK, dependency_retry=1.0, script_second=0.1)
"""With thousands of processes, waiting ones must leave CPU time to the others."""
_SHARDS = 3
_PATIENCE = 3600.0
_SELDOM = 3.0
"""Seconds between two reads of the metrics, a page of megabytes."""
_KILLED = "change=killed"
_CHANGE: Json = {"spec": {"pd": {"service": {"labels": {"change": "killed"}}}}}
_RESTART: Json = {"spec": {"annotations": {"change": "restart"}}}
_SYNCS = 'controller_runtime_reconcile_total{controller="tidbcluster",result="success"}'


class _Clusters(Protocol):
    @property
    def client(self) -> Client:
        """The administrator's client."""

    def operator(self, *flags: str) -> OperatorProcess:
        """Start a controller-manager."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The measurements with a number of clusters; `world` is a part of the figures' names."""

    here: _Clusters
    count: int
    world: str

    def show(self, name: str, ours: float, aim: float | None, unit: str) -> None:
        show(f"thousand_{self.world}_{self.count}_{name}", ours, aim, unit, "aim" if aim is not None else "")

    def start(self) -> OperatorProcess:
        """Start a process for all clusters; returns once it leads and its caches are full."""
        started = _now()
        operator = self.here.operator()
        awaited(operator.leads, "the operator to lead", within=_PATIENCE)
        self.show("start", _now() - started, 15.0, "s")
        self.show("start_cpu", operator.cost.cpu_seconds(), None, "s")
        self._await(lambda: operator.sample(_SYNCS) >= self.count, "a look at each")
        self.show("start_until_each_was_looked_at", _now() - started, None, "s")
        self.show("start_until_each_was_looked_at_cpu", operator.cost.cpu_seconds(), None, "s")
        return operator

    def idle(self, operator: OperatorProcess) -> None:
        """Measure a period without changes."""
        before, cpu = operator.requests(), operator.cost.cpu_seconds()
        time.sleep(_IDLE)  # noqa: TID251  (another process is timed)
        spent = operator.requests() - before
        self.show("idle_60s_writes", spent.total() - spent["GET"], 0, "requests")
        self.show("idle_60s_cpu", operator.cost.cpu_seconds() - cpu, None, "s")

    def change(self) -> float:
        """Measure one change after another; return the 99th percentile of the waits in seconds."""
        return self._change("change", range(self.count), aim=1.0)

    def _change(self, name: str, clusters: Sequence[int], aim: float) -> float:
        waits = [change(self.here.client, name_of(clusters[each % len(clusters)]), each) for each in range(_CHANGES)]
        self.show(f"{name}_p50", percentile(waits, 50), None, "s")
        self.show(f"{name}_p99", percentile(waits, 99), aim, "s")
        return percentile(waits, 99)

    def change_beside_rolls(self, operator: OperatorProcess) -> None:
        """Measure changes while other clusters restart their pods. Raises RuntimeError if the rolls end before."""
        rolls, client = min(_ROLLS, self.count // 3), self.here.client
        for number in range(rolls):
            client.patch(TIDB_CLUSTERS, name_of(number), "default", _RESTART)
        time.sleep(_BURST)  # noqa: TID251  (another process is timed)
        started, cpu = _now(), operator.cost.cpu_seconds()
        self._change("rolling_change", range(rolls, self.count), aim=0.5)
        cores = (operator.cost.cpu_seconds() - cpu) / (_now() - started)
        names = [name_of(number) for number in range(rolls)]
        under_way = sum(not holds(client.get(TIDB_CLUSTERS, name, "default").decode(), "Ready") for name in names)
        if not under_way:
            raise RuntimeError(f"all {rolls} rolls ended before the last of {_CHANGES} changes")
        note(f"{under_way} of {rolls} clusters still rolled after the last change")
        self.show("rolling_cores", cores, None, "cores")

    def kill_a_shard(self) -> None:
        """Start three processes, kill one, and change all of its clusters."""
        operators = [self.here.operator(f"--shards={_SHARDS}") for _ in range(_SHARDS)]
        try:
            evenly = [1] * _SHARDS
            self._await(lambda: evenly == list(map(_held, operators)), "a shard for each")
            # other shards' keys count as well: they are dropped immediately
            self._await(lambda: min(operator.sample(_SYNCS) for operator in operators) >= self.count, "a look at each")
            lost = _shard_held_by(operators[0])
            operators[0].kill()
            self._time_take_over({name_of(each) for each in range(self.count)}, lost)
        finally:
            for operator in operators:
                operator.stop()

    def _time_take_over(self, names: set[str], lost: int) -> None:
        killed, client = _now(), self.here.client
        unserved = {each for each in names if shard_of(f"default/{each}", _SHARDS) == lost}
        note(f"{len(unserved)} clusters were of the shard whose holder was killed")
        since = client.list_page(SERVICES, "default", label_selector=_KILLED).resource_version
        for name in unserved:
            client.patch(TIDB_CLUSTERS, name, "default", _CHANGE)
        started, first = len(unserved), 0.0
        # one request, because polling the sandbox's server would cost more than the measured work
        watch = client.watch(
            SERVICES, "default", resource_version=since, timeout_seconds=int(_PATIENCE), label_selector=_KILLED
        )
        with contextlib.closing(watch):
            for event in watch:
                if isinstance(event.object, Object):
                    unserved.discard(event.object.metadata.name.removesuffix("-pd"))
                first = first or (_now() - killed if len(unserved) < started else 0.0)
                if not unserved:
                    break
        self.show("shard_killed_first_served", first, 20.0, "s")
        self.show("shard_killed_all_served", _now() - killed, 20.0, "s")

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        awaited(condition, what, within=_PATIENCE, every=_SELDOM)


def main() -> int:
    """Run both. 1 if no control plane was built."""
    with tempfile.TemporaryDirectory() as directory, first_cluster(Path(directory)) as world:
        with copied(world, 1) as alone:
            base = _memory_beside(Suite(alone, 1, "sandbox"))
        with copied(world, _COPIED) as many:
            _measure(Suite(many, _COPIED, "sandbox"), base)
    nodes = _REAL * 8 // _PODS_OF_A_NODE + 3
    return on_a_place(_bring_up, timings=_PATIENT, nodes=nodes) if _REAL else 0


def _memory_beside(suite: Suite) -> float:
    operator = suite.start()
    try:
        return operator.cost.memory()
    finally:
        operator.stop()


def _measure(suite: Suite, base: float) -> None:
    operator = suite.start()
    try:
        suite.idle(operator)
        grown = (operator.cost.memory() - base) / max(suite.count - 1, 1)
        suite.show("memory", operator.cost.memory(), None, "MB")
        suite.show("memory_per_cluster", grown, 1.0, "MB")
        suite.change()
    finally:
        operator.stop()
    suite.kill_a_shard()


def _bring_up(here: Place) -> None:
    suite, operator = Suite(here, _REAL, "real"), here.operator()
    try:
        awaited(operator.leads, "the operator to lead")
        base, started = operator.cost.memory(), _now()
        for first in range(0, _REAL, _AT_ONCE):
            wave = range(first, min(first + _AT_ONCE, _REAL))
            for number in wave:
                here.client.create(TIDB_CLUSTERS, cluster(name_of(number)), "default")
            here.await_ready(wave.stop, _PATIENCE)
        suite.show("ready", _now() - started, None, "s")
        time.sleep(_IDLE)  # noqa: TID251  (the last details of the status arrive)
    finally:
        operator.stop()
    _measure(suite, base)
    operator = suite.start()
    try:
        suite.change_beside_rolls(operator)
    finally:
        operator.stop()


def _held(operator: OperatorProcess) -> int:
    return int(operator.sample("tidb_operator_shards_held"))


def _shard_held_by(operator: OperatorProcess) -> int:
    base = "tidb-controller-manager"
    names: list[tuple[int, str]] = [(0, base), *((n, f"{base}.shard-{n}") for n in range(1, _SHARDS))]
    return next(n for n, name in names if operator.sample(f'leader_election_master_status{{name="{name}"}}') == 1.0)


def _now() -> float:
    return time.monotonic()  # noqa: TID251  (another process is timed)
