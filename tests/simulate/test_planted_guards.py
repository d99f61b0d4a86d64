"""Each guard of the table in docs/rules/silence.md is needed: without it, a silent cell of `tests/silence` acts.

A plant removes all layers of a guard, because each layer alone suffices. A step that no plant reaches is listed with
what holds it instead.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import pytest

import member.evidence
import member.lifecycle.component_sync
import meta.deferred_claims
import meta.orphan_pods
from controllers.job_owners.job_owner import JobOwner
from controllers.simple_kind import Reconcile
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import Resource
from member import components
from member.apply import writes
from member.evidence import Spared, spared
from member.failover import node_failure
from member.lifecycle.workload import Workload
from member.observed.command_annotations import Command
from tests.silence.columns import Column
from tests.silence.scenarios import SCENARIOS, acts, begin, made, run
from tests.silence.table import ROWS, WAITS
from tests.simulate.planting import nothing

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_ROOMS = ("member", "meta", "controllers")

_WATCHED = 120.0
"""Seconds of a silence in which a step without its guard is taken."""

Plant = Any
"""A patch as `mock.patch.object` makes it."""


def _yes(*_: object) -> Spared:
    return spared("", "planted")


async def _gone(*_: object) -> Spared:
    return _yes()


def _none(*_: object) -> None:
    return None


def _everywhere(function: Callable[..., object], value: Callable[..., object]) -> list[Plant]:
    """Replace a function in its module and wherever it was imported."""
    name = function.__name__
    modules = [each for each in sys.modules.values() if each.__name__.partition(".")[0] in _ROOMS]
    return [mock.patch.object(each, name, value) for each in modules if getattr(each, name, None) is function]


def _proven(*names: str) -> list[Plant]:
    """Evidence that is given without any question."""
    return [each for name in names for each in _everywhere(getattr(member.evidence, name), _yes)]


def _workload(name: str, change: Callable[[Workload], Workload]) -> Plant:
    return mock.patch.dict(components._WORKLOADS, {name: change(components._WORKLOADS[name])})


def _drained(name: str) -> Plant:
    """A pod that may go without any question."""
    return _workload(
        name, lambda it: replace(it, scaling=replace(it.scaling, in_=replace(it.scaling.in_, drain=_gone)))
    )


def _unused(name: str) -> Plant:
    """Claims that may go, and pods that may come, without any question."""

    def change(it: Workload) -> Workload:
        return replace(it, scaling=replace(it.scaling, out=replace(it.scaling.out, allowed=_none, volumes_unused=_yes)))

    return _workload(name, change)


def _unprepared(name: str) -> Plant:
    """A roll that asks no server."""
    return _workload(name, lambda it: replace(it, rolling=replace(it.rolling, blocked=_none, prepare=nothing)))


def _ungated() -> Plant:
    """A component that waits for no other."""
    return mock.patch.object(member.lifecycle.component_sync, "_gate", nothing)


def _unkept() -> Plant:
    return mock.patch.object(meta.deferred_claims, "_why_kept", return_value="")


def _unconfirmed() -> list[Plant]:
    """A wish that is believed as the cache shows it."""
    return [
        *_proven("spec_confirmed", "spec_or_wait"),
        *_everywhere(writes.require_owner, _none),
        mock.patch.object(JobOwner, "is_confirmed", return_value=True),
        mock.patch.object(Reconcile, "is_confirmed", return_value=True),
        mock.patch.object(Command, "is_on", return_value=True),
    ]


def _unversioned() -> Plant:
    """Patches that apply to any version of an object."""
    honest = Client.patch

    def patch(client: Client, resource: Resource, name: str, namespace: str, patch: Json, **options: Any) -> Object:
        metadata = {key: value for key, value in patch.get("metadata", {}).items() if key != "resourceVersion"}
        return honest(client, resource, name, namespace, patch | {"metadata": metadata}, **options)

    return mock.patch.object(Client, "patch", patch)


_CONFIRMED = (
    *("pd-scale-in", "tikv-scale-in", "tidb-scale-in", "pump-scale-in", "ticdc-scale-in"),
    *("dm-master-scale-in", "dm-worker-scale-in", "pd-command", "pd-replace-volume", "tikv-replace-volume"),
    *("pd-claim", "dm-worker-claim", "reclaim-policy", "log-task", "files", "log-truncation", "restore", "expiry"),
    "without-data",
)
"""The steps for which a live read of the wish is all that holds them while the cache is old."""


@dataclass(frozen=True)
class Guard:
    """What keeps steps waiting: the plants that remove it, and a silence; by scenario."""

    column: Column
    plants: Mapping[str, Callable[[], Sequence[Plant]]]


GUARDS: Mapping[str, Guard] = {
    "a server says that the pod can leave": Guard(
        Column.SILENT,
        {
            "pd-scale-in": lambda: [_drained("pd")],
            "ticdc-scale-in": lambda: [_drained("ticdc")],
            "dm-master-scale-in": lambda: [_drained("dm-master")],
            "tikv-scale-in": lambda: [_drained("tikv"), _ungated()],
            "pump-scale-in": lambda: [_drained("pump"), _ungated()],
            "dm-worker-scale-in": lambda: [_drained("dm-worker"), _ungated()],
        },
    ),
    "PD has a quorum": Guard(Column.SILENT, {"tidb-scale-in": lambda: [_ungated()]}),
    "a server is asked before a restart": Guard(
        Column.SILENT,
        {
            "pd-roll": lambda: [_unprepared("pd")],
            "dm-master-roll": lambda: [_unprepared("dm-master")],
            "tikv-roll": lambda: [_unprepared("tikv"), _ungated()],
            "primary": lambda: [_unprepared("tso"), _ungated()],
        },
    ),
    "PD or DM says that the owner of the data is gone": Guard(
        Column.SILENT,
        {
            "tikv-scale-out": lambda: [_unused("tikv"), _ungated()],
            "pd-claim": lambda: [_unkept(), *_proven("member_gone")],
            "tikv-claim": lambda: [_unkept(), *_proven("no_store", "store_gone")],
            "dm-worker-claim": lambda: [_unkept(), *_proven("worker_gone")],
        },
    ),
    "the API server, asked live, confirms the wish": Guard(Column.CACHE, dict.fromkeys(_CONFIRMED, _unconfirmed)),
    "a write carries the version that the cache shows": Guard(
        Column.CACHE, dict.fromkeys(("recreation", "prune", "finalizer"), lambda: [*_unconfirmed(), _unversioned()])
    ),
    "the API server, asked live, has no such claim": Guard(
        Column.CACHE, {"orphan": lambda: [mock.patch.object(meta.orphan_pods, "look_up", _yes)]}
    ),
    "the user still gives the machine up": Guard(
        Column.CACHE, {"lost-pod": lambda: _everywhere(node_failure.automatic_or_wait, _yes)}
    ),
}
"""The guards, in the words of the rule."""

HELD: Mapping[str, str] = {
    "unready-roll": "tests/simulate/test_planted_silences.py has a plant for each of its silences",
    "suspension": "acts once the cache shows its own announcement in the status",
    "tikv-command": "acts once the cache shows its own note of the eviction in the status",
    "pd-failover": "a loss has to be seen, and noted in the status, before anything is removed",
    "dm-master-failover": "a loss has to be seen, and noted in the status, before anything is removed",
    "lost-store": "asks PD itself to remove the store, and the lost pod has the same guard",
    "stray-member": "asks PD itself to remove the member",
    "topology": "asks PD itself what to forget",
    "claim-without-volume": "acts once the cache shows that the StatefulSet was deleted",
    "job": "acts once the cache shows its own announcement in the status",
    "on-delete": "never acts",
}
"""What holds the steps that no plant reaches: they ask who is silent, or wait for the cache that is old."""


@contextmanager
def _without(plants: Sequence[Plant]) -> Iterator[None]:
    with ExitStack() as stack:
        for each in plants:
            stack.enter_context(each)
        yield


def _cases() -> Iterator[object]:
    for guard in GUARDS.values():
        for scenario, plants in guard.plants.items():
            yield pytest.param(scenario, guard.column, plants, id=f"{scenario}-{guard.column.name.lower()}")


@pytest.mark.parametrize(("scenario", "column", "plants"), list(_cases()))
def test_step_that_is_taken_in_a_silence_without_its_guard(
    scenario: str, column: Column, plants: Callable[[], Sequence[Plant]]
) -> None:
    world = made(SCENARIOS[scenario])
    try:
        with _without(plants()):
            begin(world, SCENARIOS[scenario], column)
            run(world, _WATCHED)
            assert acts(world, SCENARIOS[scenario]), world.progressing
    finally:
        world.stop()


def test_each_step_that_waits_has_a_plant_or_says_what_holds_it() -> None:
    planted = {scenario for guard in GUARDS.values() for scenario in guard.plants}
    assert {row.scenario for row in ROWS} == planted | HELD.keys()
    assert planted.isdisjoint(HELD)
    cells = {(scenario, guard.column) for guard in GUARDS.values() for scenario in guard.plants}
    assert cells <= {(row.scenario, column) for row in ROWS for column in Column if row.cell(column) == WAITS}
