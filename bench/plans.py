"""Whether `kubectl tidb plan` comes true on a real control plane, and how well it estimates times.

Ten clusters of 3/3/2 run behind one operator. In each of three rounds the command plans a change of each, then all
changes are made together. A difference in steps, refusals, lowest numbers or gaps is printed and counted. Servers take
longer to start than typical ones, so that the estimates need the clusters' own history.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import msgspec

from bench.figures import note, show
from bench.place import Place, awaited, cluster, on_a_place
from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import Clock
from ports.stopping import Stop
from rehearsal.change import LONGEST
from rehearsal.film import Film, Watcher
from rehearsal.forecast import Forecast, forecast
from sandbox.dataplane.runtime import DataPlane
from sandbox.mirror import Mirror
from sandbox.notifier import Notifier
from sandbox.timings import Timings
from simulate.truth import differences

_TIMINGS = replace(Timings.real(), pd_start=6.0, tikv_start=12.0, tidb_start=9.0)
_LOOK = 0.2
_PATIENCE = 600.0

_ROUNDS: Sequence[Sequence[str]] = (
    (
        "spec.version=v8.5.3",
        "spec.tikv.replicas=4",
        "spec.tidb.replicas=3",
        "spec.tikv.config={log: {level: warn}}",
        "spec.pd.config={log: {level: warn}}",
        "spec.tidb.config={log: {level: warn}}",
        "spec.pd.replicas=5",
        "spec.tikv.requests.cpu=100m",
        "spec.tidb.annotations={team: blue}",
        "spec.ticdc={replicas: 1, baseImage: pingcap/ticdc}",
    ),
    (
        "spec.tidb.replicas=1",
        "spec.tikv.replicas=3",
        "spec.version=v8.5.3",
        "spec.pd.requests.cpu=100m",
        "spec.tikv.annotations={team: blue}",
        "spec.timezone=Europe/Berlin",
        "spec.pd.replicas=3",
        "spec.pd.annotations={team: blue}",
        "spec.tidb.env=[{name: TEAM, value: blue}]",
        "spec.ticdc.config={log-level: warn}",
    ),
    (
        "spec.tikv.replicas=0",
        "spec.suspendAction={suspendStatefulSet: true}",
        "spec.tikv.requests.storage=512Mi",
        "spec.paused=true",
        "spec.tikv.labels={team: blue}",
        "spec.tidb.service.type=NodePort",
        "spec.imagePullPolicy=Always",
        "spec.enablePVReclaim=true",
        "spec.tidb.replicas=4",
        "spec.version=v8.5.4",
    ),
)
"""For each round the change of each cluster: restarts, sizes, a new component, refusals, suspension, no effect."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is seen of the real control plane."""

    mirror: Mirror
    data_plane: DataPlane


def main() -> int:
    """Run it. 1 if no control plane was built."""
    return on_a_place(_measure, _TIMINGS)


def _measure(here: Place) -> None:
    names = [f"plan-{index}" for index in range(len(_ROUNDS[0]))]
    clock, stop = here.nodes.clock, Stop()
    mirror = Mirror(here.client, (TIDB_CLUSTERS, STATEFUL_SETS, PODS), clock, Notifier(clock))
    operator = here.operator("--workers=5")
    try:
        mirror.start(stop)
        awaited(operator.leads, "the operator to lead")
        for name in names:
            here.client.create(TIDB_CLUSTERS, cluster(name), "default")
        here.await_ready(len(names), within=_PATIENCE)
        rounds = _Rounds(here, _Seen(mirror, here.nodes.data_plane), clock)
        for changes in _ROUNDS:
            rounds.run(dict(zip(names, changes, strict=True)))
    finally:
        operator.stop()
        stop.set()
        mirror.join()
    rounds.show()


class _Rounds:
    """The changes so far."""

    def __init__(self, here: Place, seen: _Seen, clock: Clock) -> None:
        self._here, self._seen, self._clock = here, seen, clock
        self._count = self._different = 0
        self._errors: list[float] = []
        self._walls: list[float] = []

    def run(self, changes: Mapping[str, str]) -> None:
        """Plan the changes of clusters, make them together, and compare."""
        awaited(lambda: all(map(self._is_at_rest, changes)), "the clusters to be at rest", within=_PATIENCE)
        planned = {name: self._plan(name, setting) for name, setting in changes.items()}
        began = self._clock.now()
        films = {name: Film(self._seen, TIDB_CLUSTERS, "default", name, began) for name in changes}
        for name, setting in changes.items():
            self._here.client.patch(TIDB_CLUSTERS, name, "default", _patch(setting))
        watcher = Watcher(self._clock, list(films.values()))

        def is_over() -> bool:
            watcher.look()
            return watcher.is_over()

        awaited(is_over, "the changes to end", within=LONGEST, every=_LOOK)
        for name, setting in changes.items():
            self._compare(f"{name} {setting}", planned[name], forecast(films[name].frames))

    def show(self) -> None:
        """Print the figures."""
        show("plans", self._count, None, "changes")
        show("plans_that_differ", self._different, 0, "changes", "aim")
        show("plans_error_of_time_median", median(self._errors), 0.3, "of the time", "aim")
        show("plans_error_of_time_largest", max(self._errors), 0.3, "of the time", "aim")
        show("plan_wall_median", median(self._walls), 3.0, "s", "aim, beside ten clusters")

    def _is_at_rest(self, name: str) -> bool:
        film = Film(self._seen, TIDB_CLUSTERS, "default", name, 0.0)
        return film.frames[-1].is_over

    def _plan(self, name: str, setting: str) -> Forecast:
        """The forecast of the command, as a user runs it."""
        command = [sys.executable, "-m", "cli.tidb", "plan", name, "-n", "default", "--set", setting, "-o", "json"]
        environ = {**os.environ, "KUBECONFIG": str(self._here.control_plane.kubeconfig())}
        began = time.monotonic()  # noqa: TID251  (another process is timed)
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=False)  # noqa: S603
        self._walls.append(time.monotonic() - began)  # noqa: TID251
        (found,) = json.loads(done.stdout)["clusters"]
        return msgspec.convert(found | {"floors": found["lowest"]}, Forecast)

    def _compare(self, what: str, planned: Forecast, happened: Forecast) -> None:
        different = list(differences(planned, happened))
        self._count += 1
        self._different += bool(different)
        for difference in different:
            note(f"{what}: {difference}")
        if happened.steps and planned.steps:
            self._errors.append(abs(planned.seconds - happened.seconds) / happened.seconds)
            note(f"{what}: planned {planned.seconds:.0f} s, took {happened.seconds:.0f} s")


def _patch(setting: str) -> Json:
    """A merge patch of `--set PATH=VALUE`."""
    path, _, value = setting.partition("=")
    tree: object = msgspec.yaml.decode(value)
    for name in reversed(path.split(".")):
        tree = {name: tree}
    assert isinstance(tree, dict)
    return tree
