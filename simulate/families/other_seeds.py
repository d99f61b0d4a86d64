"""Random plans about monitors, initializers, dashboards and NG Monitoring.

`other/17` is the plan of a seed: users create one, often with a mistake, change, delete and recreate it, among faults
of machines, other clients and the operator. It ends Ready with nothing left to do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kube.objects import Json
from kube.resources import TIDB_DASHBOARDS, TIDB_INITIALIZERS, TIDB_MONITORS, TIDB_NG_MONITORINGS, Resource
from ports.randomness import Randomness
from simulate.engine.other_kinds import BESIDE, changed, deleted, made, spec_of_kind
from simulate.engine.plan import Edit, Plan
from simulate.engine.trees import merged
from simulate.engine.worlds import NAME
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.mistakes import MISSING, NO_IMAGE
from simulate.families.random_edits import Edits, Users
from simulate.families.seeds import budget, fault, in_order, time

_CLUSTER = "tiny"
_UNNOTICED = (5.0, 60.0)
"""The minimum and maximum seconds until the user notices a mistake."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of the spec, and its correction; without one it stays."""

    spec: Json
    back: Json | None = None


_NOWHERE: Json = {"nodeSelector": {"no-such": "label"}}
_SOMEWHERE: Json = {"nodeSelector": None}
_NO_ROOM: Json = {"requests": {"cpu": "10000"}}
_ROOM: Json = {"requests": {"cpu": None}}


def _within(part: str, changes: Sequence[_Change]) -> Iterator[_Change]:
    for change in changes:
        yield _Change({part: change.spec}, None if change.back is None else {part: change.back})


_OF_ANY = (
    _Change(_NOWHERE, _SOMEWHERE),
    _Change({"annotations": {"team": "a"}}),
    _Change({"labels": {"team": "a"}}),
)
_OF_WORKLOADS = (*_OF_ANY, _Change({"version": MISSING}, {"version": "v8.5.2"}), _Change({"version": "v8.5.3"}))

_CHANGES: Mapping[Resource, Sequence[_Change]] = {
    TIDB_MONITORS: (
        *_OF_ANY,
        _Change({"prometheus": {"version": MISSING}}, {"prometheus": {"version": "v2.53.5"}}),
        _Change({"prometheus": _NO_ROOM}, {"prometheus": _ROOM}),
        _Change({"grafana": {"version": MISSING}}, {"grafana": {"version": "7.5.11"}}),
        _Change({"grafana": {"version": "7.5.12"}}),
        _Change({"grafana": {"username": "root"}}),
        _Change({"prometheus": {"logLevel": "debug"}}),
        _Change({"prometheus": {"reserveDays": 3}}),
        _Change({"replicas": 2}),
        _Change({"shards": 2}, {"shards": 1}),
        _Change({"clusters": [{"name": "nobodys"}]}, {"clusters": [{"name": "basic"}]}),
    ),
    TIDB_INITIALIZERS: (
        _Change({"image": f"tnir/mysqlclient:{MISSING}"}, {"image": "tnir/mysqlclient"}),
        _Change({"cluster": {"name": "nobodys"}}, {"cluster": {"name": "basic"}}),
        _Change({"initSql": "CREATE DATABASE IF NOT EXISTS other;"}),
    ),
    TIDB_DASHBOARDS: (*_OF_WORKLOADS, _Change(_NO_ROOM, _ROOM)),
    TIDB_NG_MONITORINGS: (
        *_within("ngMonitoring", (*_OF_WORKLOADS, _Change(_NO_ROOM, _ROOM))),
        _Change({"paused": True}, {"paused": False}),
    ),
}
"""The users' changes of each kind."""

_PODS: Mapping[Resource, str] = {
    TIDB_MONITORS: f"{BESIDE}-monitor-0",
    TIDB_INITIALIZERS: f"{NAME}-tidb-initializer-*",
    TIDB_DASHBOARDS: f"{BESIDE}-tidb-dashboard-0",
    TIDB_NG_MONITORINGS: f"{BESIDE}-ng-monitoring-0",
}

_MAY_FAIL = {f"{TIDB_INITIALIZERS}/{BESIDE}": ("Done", "InitializationFailed")}
"""Kinds that may suffer faults: SQL is not repeated automatically."""

_MADE = 1.0
"""Seconds after which the object is created."""


def _plan(name: str, draw: Randomness) -> Plan:
    users = _Users(draw, pick(draw, [*_CHANGES]))
    edits = [*users.make(), *(edit for _ in range(draw.integer(0, 3)) for edit in users.edits())]
    faults = tuple(fault(_Targets(draw, _CLUSTER, own=_PODS[users.kind])) for _ in range(draw.integer(0, 3)))
    return Plan(
        name=name,
        cluster=_CLUSTER,
        budget=budget(edits),
        edits=in_order(edits),
        given=(NO_IMAGE,),
        faults=faults,
        reference=False,
        ends_beside=_MAY_FAIL if faults else {},
    )


@dataclass(frozen=True)
class _Targets(Users):
    """The targets of faults: the kind's own pod as often as the cluster's."""

    own: str = ""

    def pod(self, component: str = "") -> str:
        return super().pod(component) if component or self.draw.integer(0, 1) else self.own


@dataclass(frozen=True, slots=True)
class _Users:
    """The users of one object."""

    draw: Randomness
    kind: Resource

    def make(self) -> Edits:
        """Create it, sometimes with a mistake that is corrected later."""
        mistakes = [change for change in _CHANGES[self.kind] if change.back is not None]
        if self.draw.integer(0, 1):
            return (made(_MADE, self.kind),)
        mistake = pick(self.draw, mistakes)
        wrong = made(_MADE, self.kind, merged(spec_of_kind(self.kind), mistake.spec))
        return wrong, self._change(_MADE + between(self.draw, *_UNNOTICED), mistake.back)

    def edits(self) -> Edits:
        """Change it, for good or for a time, or recreate it."""
        at = round(_MADE + 1.0 + time(self.draw), 2)
        later = round(at + between(self.draw, *_UNNOTICED), 2)
        if self.draw.integer(1, 6) == 1:
            return deleted(at, self.kind), made(later, self.kind)
        change = pick(self.draw, _CHANGES[self.kind])
        first = self._change(at, change.spec)
        return (first,) if change.back is None else (first, self._change(later, change.back))

    def _change(self, at: float, spec: Json | None) -> Edit:
        return changed(round(at, 2), self.kind, **(spec or {}))


FAMILY = of_seeds("other", 400, _plan)
