"""One defect for each silence, which a cell of the table in docs/rules/silence.md shows (tests/silence)."""

from dataclasses import replace

import pytest

import dataplane.timeouts
import member.lifecycle.roll
import member.lifecycle.roll_view
import member.pd.rolling
import member.pd.scaling
import meta.volumes
from controllers.job_owners.job_owner import JobOwner
from controllers.simple_kind import Reconcile
from kube.objects import Object
from member import evidence
from member.context import ClusterContext, ReconcileContext
from member.evidence import Spared, Stopped, spared
from member.observed.nodes import Activity
from member.pd.component import PD
from tests.silence import test_cells
from tests.silence.columns import Column
from tests.silence.scenarios import SCENARIOS, acts, begin, made, run
from tests.silence.table import ROWS
from tests.simulate.planting import nothing, plant_workload

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def _taken(scenario: str, column: Column, seconds: float = 60.0) -> bool:
    """Whether the operator takes a step within a silence."""
    world = made(SCENARIOS[scenario])
    try:
        begin(world, SCENARIOS[scenario], column)
        run(world, seconds)
        return bool(acts(world, SCENARIOS[scenario]))
    finally:
        world.stop()


def test_silent_pd_that_has_nothing_against_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = replace(PD.rolling, blocked=lambda _: None, prepare=nothing)
    plant_workload(monkeypatch, replace(PD, rolling=careless))
    assert _taken("pd-roll", Column.SILENT)


def test_slow_pd_that_is_given_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataplane.timeouts, "LONGEST", dataplane.timeouts.USUAL)
    assert not _taken("tikv-claim", Column.SLOW, 400.0)


def test_members_that_count_for_the_quorum_although_they_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.pd.rolling, "_without_quorum", lambda *_: None)
    assert _taken("unready-roll", Column.HALF)


def test_quorum_that_is_inferred_from_ready_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = replace(PD.rolling, spare=_spared)
    plant_workload(monkeypatch, replace(PD, rolling=careless))
    assert _taken("unready-roll", Column.MINORITY)


def test_pod_that_counts_as_stopped_because_the_operator_reaches_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(_: ClusterContext, __: str, pod: str) -> Stopped:
        return Stopped(evidence._LIVE_READ, f"{pod} does not answer")

    monkeypatch.setattr(member.lifecycle.roll, "stopped", careless)
    assert _taken("unready-roll", Column.OPERATOR)


def test_reports_a_pod_that_counts_as_stopped_because_its_node_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(_: ClusterContext, __: str, ___: Object) -> Activity:
        return Activity.STOPPED

    monkeypatch.setattr(member.lifecycle.roll_view, "cached_activity", careless)
    assert _taken("unready-roll", Column.NODE)


def test_wish_that_is_not_confirmed_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meta.volumes, "spec_confirmed", lambda _: spared("", "planted"))
    assert _taken("reclaim-policy", Column.CACHE)


@pytest.mark.parametrize("scenario", ["expiry", "files", "log-task", "log-truncation", "restore"])
def test_owner_of_jobs_that_is_not_confirmed_live(monkeypatch: pytest.MonkeyPatch, scenario: str) -> None:
    monkeypatch.setattr(JobOwner, "is_confirmed", lambda _: True)
    assert _taken(scenario, Column.CACHE)


def test_owner_of_objects_without_data_that_is_not_confirmed_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reconcile, "is_confirmed", lambda _: True)
    assert _taken("without-data", Column.CACHE)


def test_decision_that_raises_instead_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(member.pd.scaling, "voters", broken)
    row = next(row for row in ROWS if row.scenario == "pd-scale-in")
    with pytest.raises(AssertionError, match="RuntimeError: planted"):
        test_cells.test_a_silence_x_a_destructive_step(row, Column.HALF)


async def _spared(_: ReconcileContext, pod: str) -> Spared:
    return spared(pod, "planted")
